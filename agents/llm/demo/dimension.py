"""What an answer is to be sorted by: the best of something, or everything in groups."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from . import words
from .request import Dimension, TimeUnit
from .schema import Column, Schema, Table

Sorting = Literal["rank", "group"]

_BEST = "best|worst|highest|lowest|biggest|largest|smallest|most|least|fewest"
_RANK = re.compile(
    r"\b(?:which|whose|top|bottom|leading|strongest|weakest|favou?rite|popular|valuable"
    rf"|what(?= (?:city|country|month|year) )|{_BEST})"
    r"(?:[ -](?:selling|performing|paying))?(?: \d{1,3}| [a-z]{3,5})?(?: product| sales)? $"
    r"|(?:どの|最も|一番|もっとも|トップ\d*|上位\d*|ベスト\d*|ワースト\d*|下位\d*|最高|最大|最低"
    r"|人気|(?<!より)(?:多い|少ない|高い|低い)|良い|よい)[^、。]{0,12}$"
)
_RANK_AFTER = re.compile(
    rf" (?:with|who|that|had|has|have|was|were) .*\b(?:{_BEST})\b"
    r"|の?(?:トップ|上位|ベスト|ランキング|ワースト|下位)|は(?:どれ|どこ|誰|いつ|何月|何年)"
)
_GROUP = re.compile(
    r"\b(?:by|per|each|every|across)(?: the)?(?: product| customer| order)? $|各$"
)
_GROUP_AFTER = re.compile("別|ごと|毎|単位")
_MOST = re.compile(r"\b(?:most|fewest|more|number of|how many|count of)(?: of)?(?: the)? $")
_MOST_AFTER = re.compile("[がのを]?(?:最も|一番)?(?:多|少な)")
_KINDS = re.compile(r"\b(?:how many|number of)(?: different| distinct| unique)? $")
_TIMES: dict[TimeUnit, str] = {
    "month": r"\bmonths?\b|月(?=別|ごと|毎|間|次|[はがをとの]|ベスト|$)",
    "year": r"\byears?\b|年(?=別|ごと|毎|間|次|[はが])",
    "day": r"\bdays?\b|日(?=別|ごと|毎|次)",
}
UNITS: tuple[TimeUnit, ...] = tuple(_TIMES)
_RATES: dict[TimeUnit, str] = {
    "month": r"\bmonthly\b",
    "year": r"\b(?:yearly|annual)\b",
    "day": r"\bdaily\b",
}
_PERIOD = re.compile(r"\b(?:this|last|previous) (?:year|month)(?:'s)?|\d+[年月日]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A dimension where it was named."""

    dimension: Dimension
    start: int = 0
    end: int = 0
    text: str = ""


def find(text: str, schema: Schema) -> tuple[Sorting, Mention] | None:
    """How the answer is to be sorted, if it is."""
    mentions = sorted(_mentions(text, schema), key=lambda mention: mention.start)
    sorted_by = [(s, mention) for mention in mentions if (s := _sorting(text, mention))]
    ranked = [pair for pair in sorted_by if pair[0] == "rank"]
    if ranked:
        return ranked[-1] if re.search("[ぁ-ん]", text) else ranked[0]
    people = _people(schema) if re.search(r"\bwho\b|誰|だれ", text) else None
    if people:
        return "rank", people
    return _rate(text) or next(iter(sorted_by), None)


def tables(text: str, among: Iterable[Table]) -> Iterator[Mention]:
    for table in among:
        for match in words.pattern(table.noun).finditer(text):
            yield _mention(of_table(table), match)


def kinds(text: str, schema: Schema) -> Iterator[Mention]:
    for column in schema.columns:
        if column.is_kind:
            for match in words.pattern(column.name).finditer(text):
                yield _mention(of_column(column), match)


def most(text: str, among: Iterable[Table]) -> Table | None:
    """What there is most of: the orders in `which customer has the most orders`."""
    for mention in tables(text, among):
        if _is_counted(text, mention):
            return mention.dimension.table
    return None


def counted_kind(text: str, schema: Schema) -> Column | None:
    """What is counted by its kinds: the countries in `how many countries`."""
    for mention in kinds(text, schema):
        before = text[max(0, mention.start - 40) : mention.start]
        if _KINDS.search(before) or text[mention.end :].startswith(
            ("は何種類", "の数", "はいくつ")
        ):
            return mention.dimension.column
    return None


def of_column(column: Column) -> Dimension:
    noun = column.name.lower().replace("_", " ")
    return Dimension(english=noun, japanese=words.japanese(noun), column=column)


def of_table(table: Table) -> Dimension:
    return Dimension(english=table.noun, japanese=words.japanese(table.noun), table=table)


def of_time(unit: TimeUnit) -> Dimension:
    return Dimension(english=unit, japanese=words.japanese(unit), unit=unit)


def _mentions(text: str, schema: Schema) -> Iterator[Mention]:
    undated = _PERIOD.sub(lambda match: "_" * len(match.group()), text)
    for unit, pattern in _TIMES.items():
        for match in re.finditer(pattern, undated):
            yield _mention(of_time(unit), match)
    yield from kinds(text, schema)
    yield from tables(text, schema.tables)


def _mention(dimension: Dimension, match: re.Match[str]) -> Mention:
    return Mention(
        dimension=dimension, start=match.start(), end=match.end(), text=match.group()
    )


def _sorting(text: str, mention: Mention) -> Sorting | None:
    before, after = text[max(0, mention.start - 40) : mention.start], text[mention.end :]
    if mention.dimension.table and _is_counted(text, mention):
        return None
    if _GROUP.search(before) or _GROUP_AFTER.match(after):
        return "group"
    return "rank" if _RANK.search(before) or _RANK_AFTER.match(after) else None


def _is_counted(text: str, mention: Mention) -> bool:
    before, after = text[max(0, mention.start - 40) : mention.start], text[mention.end :]
    return bool(_MOST.search(before) or _MOST_AFTER.match(after))


def _people(schema: Schema) -> Mention | None:
    people = (table for table in schema.tables if table.noun in words.PEOPLE)
    return next((Mention(dimension=of_table(table)) for table in people), None)


def _rate(text: str) -> tuple[Sorting, Mention] | None:
    for unit, pattern in _RATES.items():
        if re.search(pattern, text):
            return "group", Mention(dimension=of_time(unit))
    return None
