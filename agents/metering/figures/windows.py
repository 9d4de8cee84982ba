"""Periods of figures: calendar days in the installation's time zone, or the last hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import ceil

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models.types import LazyText

from .summaries import day_of

DEFAULT_PERIOD = "7d"
CUSTOM = "custom"
MAX_DAYS = 400
HOUR = timedelta(hours=1)
PERIODS: dict[str, tuple[int, LazyText]] = {
    "1d": (1, _("Today")),
    "7d": (7, _("7 days")),
    "30d": (30, _("30 days")),
    "90d": (90, _("90 days")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Days from the first to the last; `since` and `until` cut these two short.

    A chart has a point per day, or per `bucket`.
    """

    first: date
    last: date
    until: datetime | None = None
    since: datetime | None = None
    bucket: timedelta | None = None

    @property
    def start(self) -> datetime:
        return self.since or day_start(self.first)

    @property
    def end(self) -> datetime:
        return self.until or day_start(self.last + timedelta(days=1))

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range(self.length)]

    @property
    def edges(self) -> list[datetime]:
        """Where the buckets that have begun begin: in UTC, so that all are equally long."""
        start = self.start.astimezone(UTC)
        span = min(self.end, timezone.now()) - start
        bucket = self.bucket or timedelta(days=1)
        return [start + bucket * number for number in range(max(1, ceil(span / bucket)))]

    @property
    def is_open(self) -> bool:
        """Whether it hasn't ended yet."""
        return self.until is None and self.last >= day_of(timezone.now())

    def before(self, current_time: datetime) -> "Window":
        """Return as much time before; if today is in it, up to the same time of day."""
        if self.since is not None:
            return between(self.since - (self.end - self.since), self.since)
        back = timedelta(days=self.length)
        until = current_time - back if self.is_open else None
        return Window(first=self.first - back, last=self.last - back, until=until)


def day_start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min), timezone.get_default_timezone())


def last_days(count: int, current_time: datetime, bucket: timedelta | None = None) -> Window:
    today = day_of(current_time)
    return Window(first=today - timedelta(days=count - 1), last=today, bucket=bucket)


def between(since: datetime, until: datetime, bucket: timedelta | None = None) -> Window:
    return Window(
        first=day_of(since), last=day_of(until), since=since, until=until, bucket=bucket
    )


def parse(parameters: Mapping[str, str], current_time: datetime) -> tuple[str, Window]:
    """Return the chosen period with its days; anything unreadable is the default."""
    first = parse_day(parameters.get("from", ""))
    last = parse_day(parameters.get("to", ""))
    if first or last:
        return CUSTOM, _days(first or last, last or first, current_time)
    key = parameters.get("period", "")
    key = key if key in PERIODS else DEFAULT_PERIOD
    count = PERIODS[key][0]
    return key, last_days(count, current_time, HOUR if count == 1 else None)


def parse_against(parameters: Mapping[str, str], current_time: datetime) -> Window | None:
    """Return the period to compare with, if one was chosen."""
    first = parse_day(parameters.get("vs_from", ""))
    last = parse_day(parameters.get("vs_to", ""))
    return _days(first or last, last or first, current_time) if first or last else None


def _days(first: date | None, last: date | None, current_time: datetime) -> Window:
    today = day_of(current_time)
    chosen = (first or today, last or today)
    end = min(max(chosen), today)
    start = max(min(*chosen, today), end - timedelta(days=MAX_DAYS - 1))
    return Window(first=start, last=end, bucket=HOUR if start == end else None)


def parse_day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None
    return day if day and 1970 < day.year < 3000 else None
