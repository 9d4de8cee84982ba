import os

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from agents import sinks
from agents.engine import faults


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = _("Agents")

    def ready(self) -> None:
        try:
            faults.arm(os.environ)
        except ValueError as error:
            raise ImproperlyConfigured(error) from error
        if sinks.are_wanted(settings.ENVIRONMENT):
            from agents import telemetry  # needs the rows, which are there only now

            telemetry.start(settings.ENVIRONMENT)
