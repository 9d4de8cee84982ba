from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProblemsConfig(AppConfig):
    name = "agents.insight.problems"
    verbose_name = _("Problems")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from agents.console.home import problems as home_card
        from agents.review.run_list import grouping

        from . import (
            collector,  # noqa: F401  (has periodic jobs)
            home,
            run_groups,
        )

        home_card.use_groups(home.load_lines)
        grouping.register(run_groups.BY_PROBLEM)
