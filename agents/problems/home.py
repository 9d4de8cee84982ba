"""Open problems as lines of the console's home."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.console.home.problems import MAX_PROBLEMS
from agents.console.home.problems import Problem as Line

from . import presentation
from .models import VIEW_PERMISSION, Problem

AMBER_KINDS = {
    *(Problem.Kind.GUARDRAIL, Problem.Kind.STEP_LIMIT, Problem.Kind.TOOL_LIMIT),
    *(Problem.Kind.LOOP, Problem.Kind.RATING, Problem.Kind.REJECTED, Problem.Kind.REPLAN_LIMIT),
}


def load_lines(user: User, since: datetime) -> list[Line] | None:
    """Return the open problems of a period, or None if this user can't see problems."""
    if not user.has_perm(VIEW_PERMISSION):
        return None
    rows = Problem.objects.for_user(user).open().filter(last_seen__gte=since)
    return list(_lines(rows[:MAX_PROBLEMS]))


def _lines(problems: Iterable[Problem]) -> Iterator[Line]:
    for problem in problems:
        count = problem.count
        times = ngettext("%(count)d time", "%(count)d times", count) % {"count": count}
        parts = [problem.agent_name, presentation.subject_label(problem), times]
        yield Line(
            title=presentation.title(problem),
            sentence=" · ".join(part for part in parts if part),
            at=problem.last_seen,
            icon=presentation.icon_name(problem),
            tone="amber" if problem.kind in AMBER_KINDS else "red",
            action=_("View problem"),
            url=reverse("admin:problems_problem_change", args=[problem.pk]),
        )
