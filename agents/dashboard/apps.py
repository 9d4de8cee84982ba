from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DashboardConfig(AppConfig):
    name = "agents.dashboard"
    label = "dashboard"
    verbose_name = _("Dashboard")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from django.db.models.signals import post_delete, post_save, pre_delete

        from agents.models import HiddenTopic, Run
        from agents.review.models import Rating, Review

        from . import (
            background,  # noqa: F401  (has periodic jobs)
            deletion,
            filters,
        )

        filters.register()
        pre_delete.connect(deletion.keep_figures_of_run, sender=Run)
        post_delete.connect(deletion.on_topic_shown, sender=HiddenTopic)
        for model in (Rating, Review):
            post_save.connect(deletion.on_feedback, sender=model)
            post_delete.connect(deletion.on_feedback, sender=model)
