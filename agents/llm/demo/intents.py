"""Analyzes a question: periods, values, names and concepts, and similar intents."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from typing import NamedTuple

from agents.engine.text import KANJI, KATAKANA

from .conversation import LIBRARY, Question

MONTHS = LIBRARY["words"]["months"].split()

THRESHOLD = 0.6
GREETING_THRESHOLD = 0.75
_RESIDUE_WEIGHT = 0.25
Features = dict[str, float]
Value = tuple[str, str, str]
_CONCEPT = re.compile(
    "|".join(
        f"(?P<{name}>(?<![a-z])(?:{english})(?![a-z])|{japanese})"
        for name, (english, japanese) in LIBRARY["concepts"].items()
    ),
    re.IGNORECASE,
)
_SPELLINGS = {
    spelling.lower(): (column, *value.rsplit(" ", 1))
    for column, values in LIBRARY["values"].items()
    for value in values.split("|")
    for spelling in value.rsplit(" ", 1)
}
_FEW = {numeral: n for n, numeral in enumerate(LIBRARY["words"]["few"].split(), 2)}
_PATTERN_PARTS = {
    **LIBRARY["parts"],
    "FEW": "|".join(_FEW),
    "VALUE": "|".join(map(re.escape, _SPELLINGS)),
    "MONTH": "|".join(f"{name}|{name[:3]}" for name in MONTHS),
}
SLOTS = {
    name: re.compile(re.sub("[A-Z]{3,}", lambda match: _PATTERN_PARTS[match[0]], pattern))
    for name, pattern in LIBRARY["slots"].items()
}
_MANY_JA = re.compile("ランキング|上位|トップ|ベスト|最近")
_LITTLE_WORDS = frozenset(LIBRARY["words"]["little"].split())


class Period(NamedTuple):
    """A period from `start` up to but not including `end`."""

    start: date
    end: date
    english: str
    japanese: str

    @property
    def is_year(self) -> bool:
        return (self.end - self.start).days > 31


def year_period(year: int) -> Period:
    start = date(year, 1, 1)
    end = date(year + 1, 1, 1)
    return Period(start, end, f"in {year}", f"{year}年")


def month_period(year: int, month: int) -> Period:
    """Return a month; numbers below 1 are months of earlier years."""
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    start = date(year, month, 1)
    end = date(year + month // 12, month % 12 + 1, 1)
    return Period(start, end, f"in {MONTHS[month - 1].title()} {year}", f"{year}年{month}月")


def mentions(text: str, today: date) -> Iterator[tuple[Period, re.Match[str]]]:
    """Yield the periods in a text, each with its match."""
    for match in SLOTS["period"].finditer(text):
        name = (match["month"] or match["bare"] or "-").lower()[:3]
        number = next(
            (n for n, month_name in enumerate(MONTHS, 1) if month_name[:3] == name), 0
        )
        number = number or int(match["month_ja"] or match["bare_ja"] or 0)
        if of := match["of"] or match["of_ja"]:
            yield month_period(_year(of, today), number), match
        elif number:
            yield month_period(today.year - (number > today.month), number), match
        elif match["year"]:
            yield year_period(_year(match["year"], today)), match
        else:
            yield month_period(today.year, today.month - bool(match["last_month"])), match


def span(periods: Sequence[Period]) -> Period | None:
    """Return one period that spans all: `from 2024 to 2025`."""
    if len(periods) < 2:
        return next(iter(periods), None)
    first = min(periods, key=lambda period: period.start)
    last = max(periods, key=lambda period: period.end)
    english = f"from {first.english} to {last.english}".replace("in ", "")
    japanese = f"{first.japanese}から{last.japanese}まで"
    return Period(first.start, last.end, english, japanese)


def _year(text: str, today: date) -> int:
    if text[:4].isdigit():
        return int(text[:4])
    return today.year - (text.lower() not in ("this year", "今年", "本年"))


class Slots(NamedTuple):
    """The concepts of a question in order, and its slot values; `residue` is the rest.

    A value is a column and its two spellings; `plurals` are concepts in the plural.
    """

    question: Question
    concepts: tuple[str, ...]
    plurals: frozenset[str]
    periods: tuple[Period, ...]
    values: tuple[Value, ...]
    bounds: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    limit: int | None
    residue: str

    def has(self, *names: str) -> bool:
        return not set(names).isdisjoint(self.concepts)

    def first(self, names: Iterable[str], default: str = "") -> str:
        """Return the first of these concepts, in the question's order."""
        return next((concept for concept in self.concepts if concept in names), default)

    @property
    def pair(self) -> tuple[Value, ...]:
        """Return the places or categories named together, if there are several."""
        sides = tuple(value for value in self.values if value[0] != "o.status")
        return sides if len({column for column, *_ in sides}) == 1 < len(sides) else ()


def read(question: Question, today: date) -> Slots:
    """Extract slot values from a question, then concepts, then the remaining names."""
    text = " ".join(unicodedata.normalize("NFKC", question.text).split())
    spoken = list(mentions(text, today))
    text = _mask(text, [match for _, match in spoken], "period")
    slots: dict[str, list[re.Match[str]]] = {}
    for kind in ("bound", "value", "limit"):
        slots[kind] = list(SLOTS[kind].finditer(text))
        text = _mask(text, slots[kind], kind)
    concepts = list(_CONCEPT.finditer(text))
    plurals = {m.lastgroup or "" for m in concepts if re.search("[^su]s$", m[0])}
    plurals |= {"many"} if _MANY_JA.search(text) else set()
    text = _mask(text, concepts)
    candidates = [
        next(filter(None, match.groups())).strip().removesuffix("'s")
        for match in SLOTS["name_ja" if question.is_japanese else "name"].finditer(text)
    ]
    names = dict.fromkeys(name for name in candidates if name.lower() not in _LITTLE_WORDS)
    for name in names:
        text = text.replace(name, " ")
    bounds = []
    for match in slots["bound"]:
        comparison = match[1].lower() if match[1] else match[4]
        figure = match[2] if match[1] else match[3]
        sign = next(sign for sign, terms in LIBRARY["signs"].items() if comparison in terms)
        bounds.append((sign, figure.replace(",", "")))
    limits = [next(filter(None, match.groups())).lower() for match in slots["limit"]]
    # The residue: neither concepts, slot values nor stop words.
    plain = re.sub(r"‹\w+›", " ", text.lower())
    english = [term for term in re.findall(r"[a-z]+", plain) if term not in _LITTLE_WORDS]
    japanese = re.findall(f"[{KATAKANA}{KANJI}]+", plain)
    return Slots(
        question=question,
        concepts=tuple(match.lastgroup or "" for match in concepts),
        plurals=frozenset(plurals),
        periods=tuple(dict.fromkeys(period for period, _ in spoken)),
        values=tuple(dict.fromkeys(_SPELLINGS[match[1].lower()] for match in slots["value"])),
        bounds=tuple(bounds),
        names=tuple(names),
        limit=next((_FEW.get(limit) or int(limit) for limit in limits), None),
        residue=" ".join([*english, *japanese]),
    )


def _mask(text: str, spans: list[re.Match[str]], kind: str = "") -> str:
    for match in reversed(spans):
        text = f"{text[: match.start()]} ‹{kind or match.lastgroup}› {text[match.end() :]}"
    return text


def matches(slots: Slots) -> Iterator[str]:
    """Yield intents that are similar enough to the question, most similar first."""
    nouns = [*LIBRARY["groups"], *LIBRARY["measures"], "sold", "who", "tables"]
    features = _features(slots) if slots.has(*nouns) else {}
    scores = [(_similarity(features, phrasing), name) for name, phrasing in _phrasings()]
    best = sorted((pair for pair in scores if pair[0] >= THRESHOLD), key=lambda pair: -pair[0])
    yield from dict.fromkeys(name for _, name in best)


def is_greeting(text: str) -> bool:
    grams = _grams(text.strip(" !?.。、！？"))
    greetings = map(_grams, LIBRARY["greetings"])
    return any(_similarity(grams, greeting) > GREETING_THRESHOLD for greeting in greetings)


@cache
def _phrasings() -> list[tuple[str, Features]]:
    return [
        (name, _features(read(Question(phrasing), date(2026, 1, 1))))
        for name, phrasings in LIBRARY["intents"].items()
        for phrasing in phrasings
    ]


def _features(slots: Slots) -> Features:
    """Weigh whole concepts, and the remaining words by their characters."""
    features = dict.fromkeys(slots.concepts, 1.0)
    features |= {"two": 1.0} if len(slots.periods) > 1 or slots.pair else {}
    features |= {"bound": 1.0} if slots.bounds else {}
    return features | dict.fromkeys(_grams(slots.residue), _RESIDUE_WEIGHT)


def _grams(text: str) -> Features:
    """Return the trigrams of English text or the bigrams of Japanese text."""
    if not text:
        return {}
    size = 3 if text.isascii() else 2
    padded = f" {text} "
    return {f"={padded[i : i + size]}": 1.0 for i in range(len(padded) - size + 1)}


def _similarity(first: Features, second: Features) -> float:
    """Return the weighted Dice coefficient."""
    shared = sum(weight for feature, weight in first.items() if feature in second)
    return 2 * shared / (sum(first.values()) + sum(second.values()) or 1)
