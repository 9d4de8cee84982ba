from django.contrib.admin.apps import AdminConfig


class ConsoleConfig(AdminConfig):
    default_site = "project.console.Console"
