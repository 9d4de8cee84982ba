"""Parses values of filter terms by type, and says what is accepted."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

MAX_NUMBER = 1e15
VALID_YEARS = range(1970, 3000)
NUMBER = re.compile(r"(\d+)(?:\.(\d+))?")
UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(rf"({NUMBER.pattern})\s*(ms|s|min|m|h|d)?")
RELATIVE_TIME = re.compile(r"-(\d+)([mhd])")
COMPARISON = re.compile(r"(>=|<=|>|<)?(.*)", re.DOTALL)
DAYS_AGO = {"today": 0, "今日": 0, "yesterday": 1, "昨日": 1}

ValueParser = Callable[[str], Any]


class BadValue(Exception):
    """Raised when a field doesn't accept a value; the message says what it accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range; an open end is None."""

    low: Any = None
    high: Any = None
    has_low: bool = True
    has_high: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePattern:
    """A whole name or, with a star, a prefix."""

    text: str
    is_beginning: bool = False


def parse_name(text: str) -> NamePattern:
    return NamePattern(text=text.removesuffix("*"), is_beginning=text.endswith("*"))


def parse_text(text: str) -> str:
    return text


def choice_parser(choices: Mapping[str, Any]) -> ValueParser:
    """Return a parser for these choices, by value or label."""

    def read(text: str) -> str:
        folded = text.casefold()
        for name, label in choices.items():
            if folded in (name, str(label).casefold()):
                return name
        raise BadValue(_("Use one of: %(choices)s.") % {"choices": ", ".join(choices)})

    return read


def parse_number(text: str) -> Range:
    return _parse_range(text, _read_number, _("Enter a number, e.g. 5, >5, <=5 or 2..8."))


def parse_cost(text: str) -> Range:
    bare = text.replace("$", "").replace("US", "")
    return _parse_range(bare, _read_number, _("Enter an amount in USD, e.g. >0.01 or 0.5..2."))


def parse_duration(text: str) -> Range:
    return _parse_range(
        text, _read_duration, _("Enter a duration, e.g. >5s, <300ms or 1m..1h.")
    )


def parse_day(text: str) -> Range:
    """Parse a day or range of days into start and end times."""
    first, dots, last = text.partition("..")
    try:
        begin, end = _read_day(first)
        if last:
            _begin, end = _read_day(last)
    except (ValueError, OverflowError) as error:
        takes = _("Enter a date, e.g. 2026-11-01, today, yesterday, -7d or -12h.")
        raise BadValue(takes) from error
    is_open = bool(dots) and not last
    return Range(low=begin, high=None if is_open else end, has_high=False)


def _parse_range(
    text: str, read_value: Callable[[str], tuple[float, float]], takes: str
) -> Range:
    """Parse `>5`, `2..8` or `5`, which includes everything displayed as that."""
    try:
        comparison = COMPARISON.fullmatch(text.strip())
        if comparison is None:
            raise ValueError(text)
        sign, operand = comparison.groups()
        first, dots, last = operand.partition("..")
        if dots and not sign and (first or last):
            return Range(
                low=read_value(first)[0] if first else None,
                high=read_value(last)[0] if last else None,
            )
        value, grain = read_value(operand)
    except ValueError as error:
        raise BadValue(takes) from error
    match sign:
        case ">" | ">=":
            return Range(low=value, has_low=sign == ">=")
        case "<" | "<=":
            return Range(high=value, has_high=sign == "<=")
    return Range(low=value, high=value + grain, has_high=False)


def _read_number(text: str) -> tuple[float, float]:
    """Return a number and its precision."""
    match = NUMBER.fullmatch(text.strip())
    if not match:
        raise ValueError(text)
    value = float(match[0])
    if value > MAX_NUMBER:
        raise ValueError(text)
    return value, 10.0 ** -min(len(match[2] or ""), 9)


def _read_duration(text: str) -> tuple[float, float]:
    match = DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError(text)
    value, grain = _read_number(match[1])
    unit = UNIT_SECONDS[match[4] or "s"]
    return value * unit, grain * unit


def _read_day(text: str) -> tuple[datetime, datetime]:
    text = text.strip().lower()
    if match := RELATIVE_TIME.fullmatch(text):
        then = timezone.now() - timedelta(seconds=int(match[1]) * UNIT_SECONDS[match[2]])
        return then, then + timedelta(seconds=UNIT_SECONDS[match[2]])
    if text in DAYS_AGO:
        return _day_bounds(timezone.localdate() - timedelta(days=DAYS_AGO[text]))
    if re.fullmatch(r"\d{4}-\d\d", text):
        first = date.fromisoformat(f"{text}-01")
        return _day_start(first), _day_start((first + timedelta(days=31)).replace(day=1))
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return _day_bounds(date.fromisoformat(text))
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else timezone.make_aware(moment)
    if moment.year not in VALID_YEARS:
        raise ValueError(text)
    return moment, moment + timedelta(minutes=1)


def _day_bounds(day: date) -> tuple[datetime, datetime]:
    return _day_start(day), _day_start(day + timedelta(days=1))


def _day_start(day: date) -> datetime:
    if day.year not in VALID_YEARS:
        raise ValueError(day)
    return timezone.make_aware(datetime.combine(day, time.min))
