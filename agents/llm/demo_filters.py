"""The conditions in a question: states, places, names and amounts."""

import re
from collections.abc import Iterator
from datetime import date

from . import demo_period as periods
from . import demo_words as words
from .demo_history import Question
from .demo_request import Filter
from .demo_schema import MONEY, PRICE, Column, Schema, Table

_NOT = re.compile(r"\b(?:not|excluding|except|without|other than)\b|除|以外|ていない")
_OVER = re.compile(
    r"\b(?:(?P<more>over|above|more than|greater than|at least|exceeding)"
    r"|(?P<less>under|below|less than|cheaper than|at most))"
    r" [$¥€]?(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d%])"
)
_OVER_JA = re.compile(r"(\d[\d,]*(?:\.\d+)?)円?(以上|以下|未満|超|より[大高]|より[小安])")
_SIGNS_JA = {"以上": ">=", "以下": "<=", "未満": "<", "超": ">", "より大": ">", "より高": ">"}
_NAME = re.compile(
    r"\b(?:in|from|for|of|by)\s+(?:the\s+)?([A-Z][\w'&-]*(?:\s+[A-Z][\w'&-]*){0,3})"
    r"|[\"“「『]([^\"”」』]{1,60})[\"”」』]"
)
_NO_NAME = re.compile(r"revenues?|sales|turnover|income|q[1-4]|i|ashiato")


def find(question: Question, schema: Schema, base: Table, today: date) -> Iterator[Filter]:
    """The conditions that rows of this table can be held to."""
    text = question.plain
    yield from _states(text, schema, base)
    yield from _places(text, schema, base)
    for match in _NAME.finditer(question.text):
        name = match[1] or match[2]
        if _is_name(name, schema, today):
            yield from _anywhere(name, schema, base)
    yield from _bounds(text, base)


def limits_amount(text: str) -> bool:
    return bool(_OVER.search(text) or _OVER_JA.search(text))


def places(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The kind and the spellings of each place that is named, in order."""
    found = [
        (match.start(), place)
        for word, place in words.PLACES.items()
        if (match := re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", text))
    ]
    return list(dict.fromkeys(place for _, place in sorted(found)))


def place_column(kind: str, schema: Schema, base: Table) -> Column | None:
    """The column for this kind of thing that rows of the table have or lead to."""
    columns = [c for table in schema.reach(base.name) for c in table.columns]
    return next((column for column in columns if column.means(kind)), None)


def _states(text: str, schema: Schema, base: Table) -> Iterator[Filter]:
    column = place_column("status", schema, base) or place_column("state", schema, base)
    for names, (cues, japanese) in words.STATES.items():
        said = any(re.search(rf"(?<![a-z]){re.escape(cue)}", text) for cue in cues.split())
        if column and said:
            negated = bool(_NOT.search(text))
            yield Filter(
                sql=f"{column} {'NOT ' * negated}IN ({_quoted(names)})",
                tables=(column.table,),
                english=f"that were {'not ' * negated}{names[0]}",
                japanese=f"{japanese}{'以外' * negated}の",
            )


def _places(text: str, schema: Schema, base: Table) -> Iterator[Filter]:
    found = places(text)
    for kind in dict.fromkeys(kind for kind, _ in found):
        column = place_column(kind, schema, base)
        spellings = [names for of, names in found if of == kind]
        if column:
            yield Filter(
                sql=f"{column} IN ({_quoted([n for names in spellings for n in names])})",
                tables=(column.table,),
                english="in " + " and ".join(names[0] for names in spellings),
                japanese="と".join(names[-1] for names in spellings) + "の",
            )


def _is_name(name: str, schema: Schema, today: date) -> bool:
    plain = name.lower()
    nouns = [table.noun for table in schema.tables]
    nouns += [column.name for column in schema.columns]
    return not (
        any(words.pattern(noun).search(plain) for noun in nouns)
        or periods.find(f"in {plain}", today)
        or places(plain)
        or _NO_NAME.fullmatch(plain)
    )


def _anywhere(name: str, schema: Schema, base: Table) -> Iterator[Filter]:
    """Rows that have this name in any column that could hold one."""
    tables = schema.reach(base.name)
    columns = [c for table in tables for c in table.columns if c.is_label or c.is_kind]
    if columns:
        yield Filter(
            sql=f"{_quoted([name])} IN ({', '.join(map(str, columns))})",
            tables=tuple(dict.fromkeys(column.table for column in columns)),
            english=f"for {name}",
            japanese=f"「{name}」の",
        )


def _bounds(text: str, base: Table) -> Iterator[Filter]:
    numbers = [column for column in base.columns if column.is_number]
    named = (c for c in numbers if words.pattern(c.words[-1]).search(text))
    column = next(named, None) or base.number(*MONEY, *PRICE)
    for sign, number in _limits(text):
        if column:
            yield Filter(
                sql=f"{column} {sign} {number}",
                tables=(column.table,),
                english=f"with {column.name.replace('_', ' ')} {sign} {number}",
                japanese=f"{words.japanese(column.name)} {sign} {number} の",
            )


def _limits(text: str) -> Iterator[tuple[str, str]]:
    for match in _OVER.finditer(text):
        equal = "=" if match.group().startswith("at ") else ""
        yield (">" if match["more"] else "<") + equal, match["number"].replace(",", "")
    for match in _OVER_JA.finditer(text):
        yield (
            _SIGNS_JA.get(match[2], "<=" if match[2] == "以下" else "<"),
            match[1].replace(",", ""),
        )


def _quoted(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)
