from django.contrib import admin


class ConsoleAdmin(admin.ModelAdmin):
    """A page of the console: what all of them have in common."""
