from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SuggestionsConfig(AppConfig):
    name = "agents.suggestions"
    verbose_name = _("Suggestions")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from agents import runs

        from . import background

        runs.on_finished(background.thread.start_if_due)
