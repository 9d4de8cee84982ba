from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ExperimentsConfig(AppConfig):
    name = "agents.review.experiments"
    verbose_name = _("Experiments")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from agents import runs
        from agents.models.runs.runs import EXPERIMENT_TOPIC_PREFIX

        from . import service
        from .sources import recorded_runs

        runs.use_source(EXPERIMENT_TOPIC_PREFIX, recorded_runs.events)
        runs.on_finished(service.on_finished)
