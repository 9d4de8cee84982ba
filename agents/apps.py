import os

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from agents.engine import faults


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = _("Agents")

    def ready(self) -> None:
        try:
            faults.arm(os.environ)
        except ValueError as error:
            raise ImproperlyConfigured(error) from error
