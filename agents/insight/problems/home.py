"""Open problems as lines of the console's home."""

from datetime import datetime

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.console.home.problems import MAX_PROBLEMS
from agents.console.home.problems import Problem as Line

from . import presentation
from .models import VIEW_PERMISSION, Problem

Kind = Problem.Kind
AMBER_KINDS = {
    Kind.GUARDRAIL,
    Kind.STEP_LIMIT,
    Kind.TOOL_LIMIT,
    Kind.LOOP,
    Kind.RATING,
    Kind.REJECTED,
    Kind.REPLAN_LIMIT,
}


def load_lines(user: User, since: datetime) -> list[Line] | None:
    """Return the open problems of a period, or None if this user can't see problems."""
    if not user.has_perm(VIEW_PERMISSION):
        return None
    problems = Problem.objects.for_user(user).open().filter(last_seen__gte=since)
    lines = []
    for problem in problems[:MAX_PROBLEMS]:
        count = problem.count
        times = ngettext("%(count)d time", "%(count)d times", count) % {"count": count}
        facts = [problem.agent_name, presentation.subject_label(problem), times]
        line = Line(
            title=presentation.title(problem),
            sentence=" · ".join(filter(None, facts)),
            at=problem.last_seen,
            icon=presentation.icon_name(problem),
            tone="amber" if problem.kind in AMBER_KINDS else "red",
            action=_("View problem"),
            url=reverse("admin:problems_problem_change", args=[problem.pk]),
        )
        lines.append(line)
    return lines
