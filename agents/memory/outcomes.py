"""Counts how runs with an experience went, and drops experiences that do harm."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from agents.models import Experience, ExperienceRun, Run

from .experiences import expiry

# Harmful in at least two runs, and more often than helpful.
MIN_HARMFUL = 2
MIN_PEOPLE = 2  # who say so of an experience that others use
FEEDBACK_DAYS = 30
MAX_USES = 2_000  # of each kind in one pass
# Reasons of a bad rating that say nothing about what the agent was told.
UNRELATED_REASONS = ("slow", "long", "brief")
Outcome = ExperienceRun.Outcome
Role = ExperienceRun.Role


def record_use(run: int, experiences: Iterable[int]) -> None:
    """Note which experiences a run got; a resumed run has them already."""
    ExperienceRun.objects.bulk_create(
        [ExperienceRun(experience_id=pk, run_id=run, role=Role.USED) for pk in experiences],
        ignore_conflicts=True,
    )


def count() -> None:
    """Bring the counters up to date with the feedback of the last weeks."""
    # Uses whose outcome may have changed: new, rated, or with one to withdraw.
    time = timezone.now()
    recent = ExperienceRun.objects.filter(
        role=Role.USED, created_at__gt=time - timedelta(days=FEEDBACK_DAYS)
    ).order_by("-pk")
    has_feedback = Q(ratings__isnull=False) | Q(review__isnull=False)
    rated_runs = Run.objects.filter(has_feedback, pk=OuterRef("run")).order_by()
    use_ids: set[int] = set()
    for rows in (
        recent.filter(created_at__gt=time - timedelta(days=1)),
        recent.filter(Exists(rated_runs)),
        recent.exclude(outcome=Outcome.UNKNOWN),
    ):
        use_ids.update(rows.values_list("pk", flat=True)[:MAX_USES])
    uses = ExperienceRun.objects.filter(pk__in=use_ids)
    runs = Run.objects.filter(pk__in=set(uses.values_list("run_id", flat=True)))
    bad = set(harmful_runs(runs).values_list("pk", flat=True))
    good = set(helpful_runs(runs).values_list("pk", flat=True)) - bad
    changed = {
        *_set_outcome(uses.filter(run__in=bad), Outcome.HARMFUL),
        *_set_outcome(uses.filter(run__in=good), Outcome.HELPFUL),
        *_set_outcome(uses.exclude(run__in=good | bad), Outcome.UNKNOWN),
    }
    if changed:
        _recount(changed)


def helpful_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return those of these runs that their user rated as good, or a reviewer as correct."""
    rated = Q(ratings__is_good=True, ratings__user=F("user"))
    return runs.filter(rated | Q(review__verdict="correct")).order_by()


def harmful_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return those of these runs that were rated as bad, corrected, or answered again."""
    rated = Q(ratings__is_good=False, ratings__user=F("user"))
    rated &= ~Q(ratings__reason__in=UNRELATED_REASONS)
    again = Run.objects.filter(
        topic=OuterRef("topic"), query=OuterRef("query"), user=OuterRef("user")
    ).filter(pk__gt=OuterRef("pk"))
    judged = Q(review__verdict__in=["wrong", "unsafe"])
    return runs.filter(rated | judged | Q(Exists(again))).order_by()


def _set_outcome(uses: QuerySet[ExperienceRun], outcome: str) -> set[int]:
    """Save the outcome of these uses; return the experiences that it changes."""
    changed = dict(uses.exclude(outcome=outcome).values_list("pk", "experience_id"))
    ExperienceRun.objects.filter(pk__in=changed).update(outcome=outcome)
    return set(changed.values())


def _recount(experiences: set[int]) -> None:
    used = Q(evidence__role=Role.USED)
    rows: Iterable[Any] = Experience.objects.filter(pk__in=experiences).annotate(
        good=Count("evidence", filter=used & Q(evidence__outcome=Outcome.HELPFUL)),
        bad=Count("evidence", filter=used & Q(evidence__outcome=Outcome.HARMFUL)),
        people=Count(
            "evidence__run__user",
            filter=used & Q(evidence__outcome=Outcome.HARMFUL),
            distinct=True,
        ),
    )
    for row in rows:
        values: dict[str, object] = {"helpful": row.good, "harmful": row.bad}
        if row.good > row.helpful and row.expires_at is not None:
            values["expires_at"] = expiry(timezone.now())
        is_active = row.status == Experience.Status.ACTIVE
        # One person's ratings don't take away what a reviewer approved for others.
        is_own = row.scope == Experience.Scope.PERSON
        is_agreed = is_own or row.people >= MIN_PEOPLE
        if is_active and is_agreed and is_doing_harm(row.good, row.bad):
            values |= {
                "status": Experience.Status.OFF,
                "off_reason": Experience.OffReason.HARMFUL,
            }
        Experience.objects.filter(pk=row.pk).update(**values)


def is_doing_harm(helpful: int, harmful: int) -> bool:
    """Whether an experience is dropped."""
    return harmful >= MIN_HARMFUL and harmful > helpful
