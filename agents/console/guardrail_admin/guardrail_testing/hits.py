"""Guardrail hits, and how often they were right."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from django.db import transaction
from django.db.models import F, Func, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.access import audit
from agents.models import GuardrailHit, GuardrailPattern, GuardrailVerdict
from agents.models.types import AnyUser
from agents.web.presentation import trace_url

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

PAGE_SIZE = 50
VERDICTS = {"right": True, "wrong": False, "open": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How many of the judged hits were right."""

    hits: int = 0
    judged: int = 0
    right: int = 0

    @property
    def percent(self) -> int | None:
        return round(100 * self.right / self.judged) if self.judged else None

    @property
    def wrong(self) -> int:
        return self.judged - self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPage:
    hits: Sequence[GuardrailHit]
    older: int | None  # last one on this page; older ones follow


@dataclass(frozen=True, slots=True, kw_only=True)
class HitFilter:
    """Which hits; None or an empty value means all."""

    pattern: GuardrailPattern | None = None
    stage: str | None = None
    action: str | None = None
    verdict: str | None = None
    days: int | None = None


def filter_hits(user: AnyUser, hit_filter: HitFilter) -> QuerySet[GuardrailHit]:
    """Return hits of runs this user can see."""
    hits = GuardrailHit.objects.for_user(user)
    if hit_filter.pattern is not None:
        hits = hits.filter(pattern=hit_filter.pattern)
    if hit_filter.stage:
        hits = hits.filter(stage=hit_filter.stage)
    if hit_filter.action:
        hits = hits.filter(action=hit_filter.action)
    if hit_filter.verdict:
        is_right = VERDICTS.get(hit_filter.verdict)
        is_open = Q(verdict__isnull=True)
        hits = hits.filter(is_open if is_right is None else Q(verdict__is_right=is_right))
    if hit_filter.days:
        hits = hits.filter(at__gte=timezone.now() - timedelta(days=hit_filter.days))
    return hits


def list_hits(hits: QuerySet[GuardrailHit], before_pk: int | None = None) -> HitPage:
    """Return a page of these hits, newest first."""
    hits = hits.select_related("pattern", "verdict__by")
    hits = hits.filter(pk__lt=before_pk) if before_pk is not None else hits
    rows = list(hits.order_by("-pk")[: PAGE_SIZE + 1])
    for hit in rows:
        vars(hit)["href"] = f"{trace_url(hit.run_id)}#step-{hit.step}"
    is_more = len(rows) > PAGE_SIZE
    return HitPage(hits=rows[:PAGE_SIZE], older=rows[PAGE_SIZE - 1].pk if is_more else None)


@transaction.atomic
def judge(user: AnyUser, hit: GuardrailHit, is_right: bool | None) -> None:
    """Save the latest verdict; None removes it."""
    if is_right is None:
        GuardrailVerdict.objects.filter(hit=hit).delete()
    else:
        verdict = {"is_right": is_right, "by": user}
        GuardrailVerdict.objects.update_or_create(verdict, hit=hit)
    audit.record(user, audit.HIT_JUDGED, hit.run, rule=hit.pattern.name, is_right=is_right)


class HitCounts(TypedDict):
    hit_count: int
    judged: int
    right: int


CountedPattern: TypeAlias = "WithAnnotations[GuardrailPattern, HitCounts]"


def with_counts(patterns: QuerySet[GuardrailPattern]) -> "QuerySet[CountedPattern]":
    """Annotate patterns with `hit_count`, `judged` and `right`."""
    hits = GuardrailHit.objects.filter(pattern=OuterRef("pk"))
    judged = GuardrailVerdict.objects.filter(hit__pattern=OuterRef("pk"))
    right = judged.filter(is_right=True)
    return patterns.annotate(
        hit_count=_count_subquery(hits),
        judged=_count_subquery(judged),
        right=_count_subquery(right),
    )


def _count_subquery(rows: QuerySet) -> Coalesce:
    alone = rows.order_by().annotate(n=Func(F("pk"), function="COUNT")).values("n")
    return Coalesce(Subquery(alone, output_field=IntegerField()), 0)


def precision(hits: QuerySet[GuardrailHit]) -> Precision:
    """Return how many of these hits were judged, and how many of them were right."""
    judged = GuardrailVerdict.objects.filter(hit__in=hits)
    right = judged.filter(is_right=True).count()
    return Precision(hits=hits.count(), judged=judged.count(), right=right)
