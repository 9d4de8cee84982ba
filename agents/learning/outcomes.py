"""Counts how runs with an experience went, and drops experiences that do harm."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from agents.models import Experience, ExperienceRun, Run

from . import store

# Harmful in at least two runs, and more often than helpful.
MIN_HARMFUL = 2
FEEDBACK_DAYS = 30
# Reasons of a bad rating that say nothing about what the agent was told.
UNRELATED_REASONS = ("slow", "long", "brief")
Outcome, Role = ExperienceRun.Outcome, ExperienceRun.Role


def record_use(run: int, experiences: Iterable[int]) -> None:
    """Note which experiences a run got; a resumed run has them already."""
    ExperienceRun.objects.bulk_create(
        [ExperienceRun(experience_id=pk, run_id=run, role=Role.USED) for pk in experiences],
        ignore_conflicts=True,
    )


def count() -> None:
    """Bring the counters up to date with the feedback of the last weeks."""
    since = timezone.now() - timedelta(days=FEEDBACK_DAYS)
    recent = ExperienceRun.objects.filter(role=Role.USED, created_at__gt=since)
    changed = {
        *_set_outcome(recent, Outcome.HARMFUL, harmful_runs()),
        *_set_outcome(recent, Outcome.HELPFUL, helpful_runs().exclude(pk__in=harmful_runs())),
        *_set_outcome(recent, Outcome.UNKNOWN, _unrated_runs()),
    }
    if changed:
        _recount(changed)


def helpful_runs() -> QuerySet[Run]:
    """Return runs whose user rated them as good, or a reviewer as correct."""
    rated = Q(ratings__is_good=True, ratings__user=F("user"))
    return Run.objects.filter(rated | Q(review__verdict="correct")).order_by()


def harmful_runs() -> QuerySet[Run]:
    """Return runs that were rated as bad, corrected, or answered again."""
    rated = Q(ratings__is_good=False, ratings__user=F("user"))
    rated &= ~Q(ratings__reason__in=UNRELATED_REASONS)
    again = Run.objects.filter(
        topic=OuterRef("topic"), query=OuterRef("query"), user=OuterRef("user")
    ).filter(pk__gt=OuterRef("pk"))
    judged = Q(review__verdict__in=["wrong", "unsafe"])
    return Run.objects.filter(rated | judged | Q(Exists(again))).order_by()


def _unrated_runs() -> QuerySet[Run]:
    """Return runs without feedback, also those whose feedback was withdrawn."""
    good, bad = helpful_runs().values("pk"), harmful_runs().values("pk")
    return Run.objects.exclude(pk__in=good).exclude(pk__in=bad).order_by()


def _set_outcome(uses: QuerySet[ExperienceRun], outcome: str, runs: QuerySet[Run]) -> set[int]:
    """Save the outcome of these runs; return the experiences that it changes."""
    found = uses.filter(run__in=runs.values("pk")).exclude(outcome=outcome)
    changed = dict(found.values_list("pk", "experience_id"))
    ExperienceRun.objects.filter(pk__in=changed).update(outcome=outcome)
    return set(changed.values())


def _recount(experiences: set[int]) -> None:
    used = Q(evidence__role=Role.USED)
    rows = Experience.objects.filter(pk__in=experiences).annotate(
        good=Count("evidence", filter=used & Q(evidence__outcome=Outcome.HELPFUL)),
        bad=Count("evidence", filter=used & Q(evidence__outcome=Outcome.HARMFUL)),
    )
    for row in rows:
        values: dict[str, object] = {"helpful": row.good, "harmful": row.bad}
        if row.good > row.helpful and row.expires_at is not None:
            values["expires_at"] = store.expiry(timezone.now())
        is_active = row.status == Experience.Status.ACTIVE
        if is_active and is_doing_harm(row.good, row.bad):
            values |= {
                "status": Experience.Status.OFF,
                "off_reason": Experience.OffReason.HARMFUL,
            }
        Experience.objects.filter(pk=row.pk).update(**values)


def is_doing_harm(helpful: int, harmful: int) -> bool:
    """Whether an experience is dropped."""
    return harmful >= MIN_HARMFUL and harmful > helpful
