"""Where patterns fired, and how often they were right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from agents import audit
from agents.display import trace_url
from agents.models import GuardrailHit, GuardrailVerdict

A_PAGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Of the hits that were judged, how many were right."""

    hits: int = 0
    judged: int = 0
    right: int = 0

    @property
    def percent(self) -> int | None:
        return round(100 * self.right / self.judged) if self.judged else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    hits: Sequence[GuardrailHit]
    older: int | None  # the last one here: older ones come after it


def listed(user: Any, pattern: int | None = None, before: int | None = None) -> Page:
    """The newest first, as far as this person may see their runs."""
    hits = GuardrailHit.objects.for_user(user).select_related("pattern", "verdict__by")
    hits = hits.filter(pattern=pattern) if pattern is not None else hits
    hits = hits.filter(pk__lt=before) if before is not None else hits
    found = list(hits.order_by("-pk")[: A_PAGE + 1])
    for hit in found:
        hit.href = f"{trace_url(hit.run_id)}?step={hit.step}"
    is_more = len(found) > A_PAGE
    return Page(hits=found[:A_PAGE], older=found[A_PAGE - 1].pk if is_more else None)


def judge(user: Any, hit: GuardrailHit, is_right: bool | None) -> None:
    """The last word counts; None takes it back."""
    if is_right is None:
        GuardrailVerdict.objects.filter(hit=hit).delete()
    else:
        word = {"is_right": is_right, "by": user}
        GuardrailVerdict.objects.update_or_create(word, hit=hit)
    audit.record(user, audit.HIT_JUDGED, hit.run, rule=hit.pattern.name, is_right=is_right)


def precision(patterns: Sequence[int]) -> dict[int, Precision]:
    """Of each of these patterns."""
    hits = GuardrailHit.objects.filter(pattern__in=patterns).order_by()
    verdicts = GuardrailVerdict.objects.filter(hit__pattern__in=patterns).order_by()
    counted = dict(hits.values_list("pattern").annotate(n=Count("pk")))
    words = verdicts.values_list("hit__pattern").annotate(
        judged=Count("pk"), right=Count("pk", filter=Q(is_right=True))
    )
    judged = {pk: (all_, right) for pk, all_, right in words}
    return {
        pk: Precision(
            hits=counted.get(pk, 0),
            judged=judged.get(pk, (0, 0))[0],
            right=judged.get(pk, (0, 0))[1],
        )
        for pk in patterns
    }
