from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FiguresConfig(AppConfig):
    name = "agents.metering.figures"
    label = "dashboard"
    verbose_name = _("Dashboard")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from django.db.models.signals import post_delete, pre_delete

        from agents.models import HiddenTopic, Run

        from . import (
            deletion,
            rollups,  # noqa: F401  (has periodic jobs)
        )

        pre_delete.connect(deletion.keep_figures_of_run, sender=Run)
        post_delete.connect(deletion.on_topic_shown, sender=HiddenTopic)
