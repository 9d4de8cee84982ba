"""Periods of the dashboard: calendar days in the installation's time zone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models.types import LazyText

from .summaries import day_of

DEFAULT_PERIOD = "7d"
CUSTOM = "custom"
MAX_DAYS = 400
PERIODS: dict[str, tuple[int, LazyText]] = {
    "1d": (1, _("Today")),
    "7d": (7, _("7 days")),
    "30d": (30, _("30 days")),
    "90d": (90, _("90 days")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Days from the first to the last; `until` cuts the last one short.

    `since` is only for the list of an hour's runs.
    """

    first: date
    last: date
    until: datetime | None = None
    since: datetime | None = None

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
    def is_open(self) -> bool:
        """Whether it hasn't ended yet."""
        return self.until is None and self.last >= day_of(timezone.now())

    def before(self, now: datetime) -> "Window":
        """Return as many days before; if today is in it, up to the same time of day."""
        back = timedelta(days=self.length)
        until = now - back if self.is_open else None
        return Window(first=self.first - back, last=self.last - back, until=until)


def day_start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min), timezone.get_default_timezone())


def last_days(count: int, now: datetime) -> Window:
    today = day_of(now)
    return Window(first=today - timedelta(days=count - 1), last=today)


def parse(parameters: Mapping[str, str], now: datetime) -> tuple[str, Window]:
    """Return the chosen period with its days; anything unreadable is the default."""
    first = parse_day(parameters.get("from", ""))
    last = parse_day(parameters.get("to", ""))
    if first or last:
        return CUSTOM, _between(first or last, last or first, now)
    key = parameters.get("period", "")
    key = key if key in PERIODS else DEFAULT_PERIOD
    return key, last_days(PERIODS[key][0], now)


def parse_against(parameters: Mapping[str, str], now: datetime) -> Window | None:
    """Return the period to compare with, if one was chosen."""
    first = parse_day(parameters.get("vs_from", ""))
    last = parse_day(parameters.get("vs_to", ""))
    return _between(first or last, last or first, now) if first or last else None


def _between(first: date | None, last: date | None, now: datetime) -> Window:
    today = day_of(now)
    start, end = first or today, last or today
    start, end = min(start, end, today), min(max(start, end), today)
    return Window(first=max(start, end - timedelta(days=MAX_DAYS - 1)), last=end)


def parse_day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None
    return day if day and 1970 < day.year < 3000 else None
