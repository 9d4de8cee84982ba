"""Failed runs of the trace list in groups: one for each problem."""

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from agents.models import Run
from agents.review.run_list.grouping import Grouping, Heading

from . import presentation
from .models import VIEW_PERMISSION, Problem, ProblemRun


def _occurrences(user: User) -> QuerySet[ProblemRun]:
    return ProblemRun.objects.filter(problem__in=Problem.objects.for_user(user))


def _load_headings(user: User, pks: Collection[int]) -> dict[int, Heading]:
    return {
        problem.pk: Heading(
            title=presentation.title(problem),
            url=reverse("admin:problems_problem_change", args=[problem.pk]),
        )
        for problem in Problem.objects.for_user(user).filter(pk__in=pks)
    }


BY_PROBLEM = Grouping(
    name="problem",
    label=_("Problem"),
    # A run with several problems is listed with the first.
    key=lambda user: Subquery(
        _occurrences(user).filter(run=OuterRef("pk")).order_by("pk").values("problem")[:1]
    ),
    load_headings=_load_headings,
    is_available=lambda user: user.has_perm(VIEW_PERMISSION),
    only=lambda user: Q(status=Run.Status.FAILED) | Q(pk__in=_occurrences(user).values("run")),
    rest=_("No problem found yet"),
)
