"""The stretches of time that a question speaks of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

_YEAR = "january february march april may june july august september october november december"
MONTHS = _YEAR.split()
_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS)

_PERIODS = re.compile(
    rf"(?P<named_month>\b(?:{_MONTH})\b\.?,? (?P<of_year>(?:19|20)\d\d))"
    rf"|(?P<month4>\b(?:{_MONTH})) (?:of )?(?P<which1>last|this) year"
    r"|(?P<which2>去年|昨年|今年)の?(?P<month5>\d{1,2})月"
    r"|(?P<dated_month>(?P<year1>(?:19|20)\d\d)(?:-|年)(?P<month1>\d{1,2})(?:月|\b))"
    rf"|(?P<bare_month>\b(?:in|for|of|during|since) (?P<month2>{_MONTH})\b"
    r"(?!\.?,? (?:19|20)\d\d))"
    r"|(?P<year>(?<![\d.,-])(?:19|20)\d\d(?:年|(?![\d%.,]\d|%|円|件|個|-)))"
    r"|(?P<this_year>\bthis year|今年|本年)"
    r"|(?P<last_year>\b(?:last|previous) year|去年|昨年|前年(?!比))"
    r"|(?P<this_month>\bthis month|今月)|(?P<last_month>\b(?:last|previous) month|先月|前月)"
    r"|(?P<days>\b(?:last|past) (?P<count1>\d{1,4}) days|(?:直近|過去)(?P<count2>\d{1,4})日)"
    r"|(?P<month_of_this_year>(?<!\d)(?P<month3>\d{1,2})月)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From `start` up to but not including `end`."""

    start: date
    end: date
    english: str
    japanese: str


def find(text: str, today: date) -> list[Period]:
    """The periods in the text, in the order they are named, each once."""
    return list(dict.fromkeys(_found(text, today)))


def span(found: list[Period], text: str, today: date) -> Period | None:
    """All that the text speaks of as one period: `from 2024 to 2025`, `since March`."""
    if not found:
        return None
    first = min(found, key=lambda period: period.start)
    last = max(found, key=lambda period: period.end)
    if first is last and re.search(r"\bsince\b|以降|以来", text):
        begin = first.english.removeprefix("in ")
        english, japanese = f"since {begin}", f"{first.japanese}以降"
        tomorrow = today + timedelta(days=1)
        return replace(first, end=tomorrow, english=english, japanese=japanese)
    if first is last:
        return first
    english = f"from {first.english} to {last.english}".replace("in ", "")
    japanese = f"{first.japanese}から{last.japanese}まで"
    return Period(start=first.start, end=last.end, english=english, japanese=japanese)


def remove(text: str) -> str:
    return _PERIODS.sub(" ", text)


def year(number: int) -> Period:
    return Period(
        start=date(number, 1, 1),
        end=date(number + 1, 1, 1),
        english=f"in {number}",
        japanese=f"{number}年",
    )


def month(year: int, number: int) -> Period:
    year, number = year + (number - 1) // 12, (number - 1) % 12 + 1
    following = date(year + number // 12, number % 12 + 1, 1)
    return Period(
        start=date(year, number, 1),
        end=following,
        english=f"in {MONTHS[number - 1].title()} {year}",
        japanese=f"{year}年{number}月",
    )


def year_before(period: Period) -> Period:
    """The same month or year, one year earlier."""
    if (period.end - period.start).days > 31:
        return year(period.start.year - 1)
    return month(period.start.year - 1, period.start.month)


def days(count: int, today: date) -> Period:
    return Period(
        start=today - timedelta(days=count),
        end=today + timedelta(days=1),
        english=f"in the last {count} days",
        japanese=f"過去{count}日間",
    )


def _found(text: str, today: date) -> Iterator[Period]:
    for match in _PERIODS.finditer(text):
        said = {name: value for name, value in match.groupdict().items() if value}
        period = _period(said, today)
        if period:
            yield period


def _period(said: dict[str, str], today: date) -> Period | None:
    match said:
        case {"named_month": words, "of_year": number}:
            return month(int(number), _month_number(words))
        case {"year1": number, "month1": in_year}:
            return month(int(number), int(in_year)) if 1 <= int(in_year) <= 12 else None
        case {"month4": name, "which1": which}:
            return month(today.year - (which == "last"), _month_number(name))
        case {"month5": number, "which2": which} if 1 <= int(number) <= 12:
            return month(today.year - (which != "今年"), int(number))
        case {"month2": name}:
            return _latest(_month_number(name), today)
        case {"year": number}:
            return year(int(number[:4]))
        case {"this_year": _}:
            return year(today.year)
        case {"last_year": _}:
            return year(today.year - 1)
        case {"this_month": _}:
            return month(today.year, today.month)
        case {"last_month": _}:
            return month(today.year, today.month - 1)
        case {"days": _}:
            return days(int(said.get("count1") or said["count2"]), today)
        case {"month3": number}:
            return _latest(int(number), today) if 1 <= int(number) <= 12 else None
    return None


def _month_number(words: str) -> int:
    return next(at for at, name in enumerate(MONTHS, 1) if words.startswith(name[:3]))


def _latest(number: int, today: date) -> Period:
    """The month of this name that began last."""
    return month(today.year if number <= today.month else today.year - 1, number)
