"""How often rules matched, day by day, as small charts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import ngettext

from agents.models import GuardrailHit

DAYS = 30
WEEK = 7
BAR_WIDTH = 3
GAP = 1
HEIGHT = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: int
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Hits per day of the last 30 days, oldest first."""

    days: Sequence[date]
    counts: Sequence[int]

    @property
    def month(self) -> int:
        return sum(self.counts)

    @property
    def week(self) -> int:
        return sum(self.counts[-WEEK:])

    @property
    def width(self) -> int:
        return len(self.counts) * (BAR_WIDTH + GAP) - GAP

    @property
    def height(self) -> int:
        return HEIGHT

    @property
    def bar_width(self) -> int:
        return BAR_WIDTH

    @property
    def words(self) -> str:
        """What a screen reader says."""
        sentence = ngettext(
            "%(month)s hit in 30 days, %(week)s in 7 days",
            "%(month)s hits in 30 days, %(week)s in 7 days",
            self.month,
        )
        return sentence % {"month": self.month, "week": self.week}

    @property
    def bars(self) -> list[Bar]:
        max_count = max(self.counts, default=0)
        bars = []
        for number, (day, count) in enumerate(zip(self.days, self.counts, strict=True)):
            if not count:
                continue
            # A single hit beside many is still visible.
            height = max(2.0, round(HEIGHT * count / max_count, 1))
            title = f"{date_format(day, 'SHORT_DATE_FORMAT')}: {count}"
            x = number * (BAR_WIDTH + GAP)
            bars.append(Bar(x=x, y=HEIGHT - height, height=height, title=title))
        return bars


def trends_of(patterns: Iterable[int]) -> dict[int, Trend]:
    """Return the trend of each rule, also of those without hits."""
    keys = list(patterns)
    hits = GuardrailHit.objects.filter(pattern__in=keys)
    counts: dict[tuple[int, date], int] = {
        (row["pattern"], row["day"]): row["n"]
        for row in _by_day(hits).values("pattern", "day").annotate(n=Count("pk"))
    }
    days = _days()
    return {
        key: Trend(days=days, counts=[counts.get((key, day), 0) for day in days])
        for key in keys
    }


def trend_of(hits: QuerySet[GuardrailHit]) -> Trend:
    """Return the trend of these hits together."""
    rows = _by_day(hits).values("day").annotate(n=Count("pk"))
    counts = {row["day"]: row["n"] for row in rows}
    days = _days()
    return Trend(days=days, counts=[counts.get(day, 0) for day in days])


def _by_day(hits: QuerySet[GuardrailHit]) -> QuerySet[Any]:
    since = timezone.now() - timedelta(days=DAYS)
    return hits.order_by().filter(at__gte=since).annotate(day=TruncDate("at"))


def _days() -> list[date]:
    today = timezone.localdate()
    return [today - timedelta(days=ago) for ago in range(DAYS - 1, -1, -1)]
