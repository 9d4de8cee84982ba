from django.apps import AppConfig
from django.utils.translation import pgettext_lazy


class SuggestionsConfig(AppConfig):
    name = "agents.insight.suggestions"
    verbose_name = pgettext_lazy("improvements", "Suggestions")

    def ready(self) -> None:
        # It needs the models, which are only loaded now.
        from . import store  # noqa: F401  (has periodic jobs)
