"""Formats moments for the page's user: relative where recent, absolute on hover.

Templates use the tag `timestamp` and, inside a sentence, the filters `datetime_text` and
`date_text`. `static/js/dates.js` keeps relative times current.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.utils import dateformat, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext_lazy, pgettext

RELATIVE_DAYS = 7
DASH = "—"
UNITS = (
    (
        86_400,
        ngettext_lazy("%(count)d day ago", "%(count)d days ago", "count"),
        ngettext_lazy("in %(count)d day", "in %(count)d days", "count"),
    ),
    (
        3600,
        ngettext_lazy("%(count)d hour ago", "%(count)d hours ago", "count"),
        ngettext_lazy("in %(count)d hour", "in %(count)d hours", "count"),
    ),
    (
        60,
        ngettext_lazy("%(count)d minute ago", "%(count)d minutes ago", "count"),
        ngettext_lazy("in %(count)d minute", "in %(count)d minutes", "count"),
    ),
)

ISO = "iso"
DAY_FIRST = "dmy"
MONTH_FIRST = "mdy"
# With and without the year.
FORMATS = {
    ISO: ("Y-m-d", "Y-m-d"),
    DAY_FIRST: ("d/m/Y", "d/m"),
    MONTH_FIRST: ("m/d/Y", "m/d"),
}
LANGUAGE_FORMATS = {"en": ("M j, Y", "M j"), "ja": ("Y年n月j日", "n月j日")}
JAPANESE_HALVES = ("午前", "午後")


@dataclass(frozen=True, slots=True)
class DateStyle:
    """How a user wants dates: a date format, by default the language's, and a clock."""

    date_format: str = ""
    is_half_day: bool = False  # 12-hour clock

    def date_pattern(self, *, has_year: bool) -> str:
        by_language = LANGUAGE_FORMATS.get(_language(), LANGUAGE_FORMATS["en"])
        return FORMATS.get(self.date_format, by_language)[0 if has_year else 1]

    def clock(self, moment: datetime, *, has_seconds: bool) -> str:
        if not self.is_half_day:
            return f"{moment:%H:%M:%S}" if has_seconds else f"{moment:%H:%M}"
        digits = dateformat.format(moment, "g:i:s" if has_seconds else "g:i")
        if _language() == "ja":
            return f"{JAPANESE_HALVES[moment.hour >= 12]}{digits}"
        return f"{digits} {'PM' if moment.hour >= 12 else 'AM'}"


DEFAULT_STYLE = DateStyle()
_style: ContextVar[DateStyle] = ContextVar("date_style", default=DEFAULT_STYLE)


@contextmanager
def override(style: DateStyle) -> Iterator[None]:
    """Use this style within the context."""
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


def activate(style: DateStyle) -> None:
    """Use this style for the rest of the request."""
    _style.set(style)


def date_text(moment: datetime | None) -> str:
    """Format the day: Nov 17, 2026."""
    if moment is None:
        return DASH
    return day_text(timezone.localtime(moment).date())


def day_text(day: date) -> str:
    """Format a day of the calendar, which has no time zone: Nov 17, 2026."""
    return _format_day(day, _style.get().date_pattern(has_year=True), get_language())


def short_date_text(moment: datetime) -> str:
    """Format the day without the year: Nov 17."""
    pattern = _style.get().date_pattern(has_year=False)
    return _format_day(timezone.localtime(moment).date(), pattern, get_language())


def time_text(moment: datetime) -> str:
    """Format the time of day: 10:25."""
    return _style.get().clock(timezone.localtime(moment), has_seconds=False)


def datetime_text(moment: datetime | None) -> str:
    """Format day and time, for use inside a sentence: Nov 17, 2026, 10:25."""
    return DASH if moment is None else _absolute(moment)


def timestamp(moment: datetime | None, kind: str = "relative") -> SafeString:
    """Render a moment with its exact time and time zone on hover.

    `relative`: 5 minutes ago, up to a week. `clock`: the time of day, with the date if it isn't
    today. `day`: the date. `full`: date and time. `exact`: with seconds.
    """
    if moment is None:
        return SafeString(DASH)
    local = timezone.localtime(moment)
    current_time = timezone.localtime()
    exact_text = _absolute(local, has_seconds=True)
    if kind == "exact":
        text = exact_text
    elif kind == "full":
        text = _absolute(local)
    elif kind == "day":
        text = date_text(local)
    elif kind == "clock" and local.date() == current_time.date():
        text = time_text(local)
    elif kind == "relative" and abs(current_time - local) < timedelta(days=RELATIVE_DAYS):
        text = relative_text(local, current_time)
    else:
        text = _absolute(local, has_year=local.year != current_time.year)
    return format_html(
        '<time datetime="{}" title="{}" data-moment="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        f"{exact_text} ({_zone_name(local)})",
        kind,
        text,
    )


def relative_text(moment: datetime, current_time: datetime) -> str:
    """Format the distance to now in one unit, in the words of the browser's Intl."""
    seconds = int((current_time - moment).total_seconds())
    for size, ago, ahead in UNITS:
        if abs(seconds) >= size:
            return (ago if seconds > 0 else ahead) % {"count": abs(seconds) // size}
    return pgettext("time", "now")


def _absolute(moment: datetime, *, has_seconds: bool = False, has_year: bool = True) -> str:
    local = timezone.localtime(moment)
    style = _style.get()
    day = _format_day(local.date(), style.date_pattern(has_year=has_year), get_language())
    clock = style.clock(local, has_seconds=has_seconds)
    is_worded = style.date_format not in FORMATS and _language() == "en"
    return f"{day}, {clock}" if is_worded else f"{day} {clock}"


@lru_cache(maxsize=1024)
def _format_day(day: date, pattern: str, language: str | None) -> str:
    """Format a day in the active language; a page has many moments of few days."""
    return dateformat.format(day, pattern)


def _zone_name(local: datetime) -> str:
    """Return the zone and its offset then: Asia/Tokyo, UTC+09:00."""
    name = local.tzinfo.key if isinstance(local.tzinfo, ZoneInfo) else local.tzname() or ""
    digits = f"{local:%z}"
    offset = f"UTC{digits[:3]}:{digits[3:5]}" if local.utcoffset() else "UTC"
    return offset if name == offset else f"{name}, {offset}"


def _language() -> str:
    return (get_language() or "en").partition("-")[0]
