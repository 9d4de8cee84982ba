"""What a database and a calculator answered, in the words of the question's language."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from . import words
from .history import Question
from .period import MONTHS
from .request import Dimension, Request
from .schema import singular

SHOWN = 40
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MONTH = re.compile(r"(\d{4})-(\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    truncated: bool = False

    @property
    def is_empty(self) -> bool:
        return all(cell is None for row in self.rows for cell in row)

    @property
    def values(self) -> list[float]:
        """The last number of each row: what was measured."""
        cells = [row[-1] for row in self.rows if row]
        return [cell for cell in cells if isinstance(cell, int | float)]


def parse(text: str) -> Rows | None:
    """The rows in an observation, wherever in it they begin."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        columns, rows = value["columns"], value["rows"]
        is_table = all(isinstance(name, str) for name in columns)
        if not is_table or not all(len(row) == len(columns) for row in rows):
            return None
        return Rows(columns=columns, rows=rows, truncated=bool(value.get("truncated")))
    except (ValueError, KeyError, TypeError):
        return None


def figure(text: str) -> str | None:
    """The number in an observation, as it stands there."""
    match = _NUMBER.search(text)
    return match.group().replace(",", "") if match else None


def is_figure(text: str) -> bool:
    return _NUMBER.fullmatch(text.strip()) is not None


def is_number(value: Any) -> bool:
    """Whether this is a number, and one that JSON can write."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or isfinite(value)


def percentage(text: str, *, signed: bool = False) -> str:
    """A calculator's number as a percentage."""
    value = float(figure(text) or "nan")
    places = 1 if abs(value) >= 1 else 2
    return f"{value:+,.{places}f}%" if signed else f"{value:,.{places}f}%"


def operand(value: float) -> str:
    """A number for an expression, without the noise of binary fractions."""
    text = format(value, ".12g") if isinstance(value, float) else str(value)
    return f"({text})" if text.startswith("-") else text


def number(value: float) -> str:
    """A number for people: `1,234`, `1,234.50`."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def shown(cell: Any) -> str:
    """A cell in a sentence."""
    return number(cell) if is_number(cell) else "—" if cell is None else str(cell)


def written(text: str, places: int) -> str:
    """A calculator's number with its thousands parted and not too many decimals."""
    whole, _, rest = text.partition(".")
    if not re.fullmatch(r"-?\d{1,300}", whole) or not re.fullmatch(r"\d*", rest):
        return text
    if not rest:
        return f"{int(whole):,}"
    short = f"{float(text):,.{places}f}".rstrip("0").rstrip(".")
    return text if short in ("0", "-0") else short


def result(expression: str, text: str, question: Question, places: int = 6) -> str:
    """What the calculator made of an expression, as a sentence."""
    value = written(figure(text) or text, places)
    return question.say(
        f"The result is **{value}** (`{expression}`).",
        f"答えは **{value}** です（`{expression}`）。",
    )


def mean(request: Request, text: str, question: Question) -> str:
    """The average of a series, as the calculator found it."""
    value, measure = written(figure(text) or text, 2), request.measure
    unit = request.dimension or Dimension(english="row", japanese="行")
    return question.say(
        f"The average {measure.english} a {unit.english} is **{value}**.",
        f"{unit.japanese}平均の{measure.japanese}は **{value}** です。",
    )


def subject(request: Request, question: Question) -> str:
    """What is asked for, as a phrase: `the revenue by month in 2025`."""
    where = context(request, question)
    if question.is_japanese:
        return f"{where}{_subject_ja(request)}"
    return f"{_subject(request)} {where}".strip()


def _subject(request: Request) -> str:
    if request.measure.kind == "rows":
        order = f", {_first(request)[0]} first" if request.order else ""
        return f"the {request.measure.english}{order}"
    if request.dimension and request.limit:
        return f"{_place(request)} by {_per(request)}"
    by = f" by {request.dimension.english}" if request.dimension else ""
    return f"the {_per(request)}{by}"


def _subject_ja(request: Request) -> str:
    measure, dimension = request.measure.japanese, request.dimension
    if request.measure.kind == "rows":
        return f"{_first(request)[1]}順の{measure}" if request.order else measure
    if dimension and request.limit:
        less = "少ない" if request.ascending else "多い"
        count = f"{request.limit}件" if request.limit > 1 else ""
        return f"{measure}が最も{less}{dimension.japanese}{count}"
    return f"{dimension.japanese}別の{measure}" if dimension else measure


def _first(request: Request) -> tuple[str, str]:
    """What the order of the rows puts first, in both languages."""
    order, up = request.order, request.ascending
    if order and order.is_date:
        return ("oldest", "古い") if up else ("newest", "新しい")
    noun = order.name.replace("_", " ") if order else ""
    english, japanese = ("lowest", "低い") if up else ("highest", "高い")
    return f"{english} {noun}", f"{words.japanese(noun)}の{japanese}"


def context(request: Request, question: Question) -> str:
    """The conditions in words: `in Tokyo in 2025`, `2025年の東京の`."""
    if question.is_japanese:
        period = f"{request.period.japanese}の" if request.period else ""
        return period + "".join(condition.japanese for condition in request.filters)
    parts = [condition.english for condition in request.filters]
    where = " ".join(parts + ([request.period.english] if request.period else []))
    many = request.measure.kind in ("count", "rows")
    return where if many else _of_one(where)


def _of_one(where: str) -> str:
    """The conditions of a single thing: the revenue that was refunded."""
    return where.replace("that were ", "that was ")


def answer(
    request: Request, rows: Rows | None, question: Question, total: int | None = None
) -> str:
    """The rows in words; `total` is how many there are in all, where that is known."""
    if rows is None or rows.is_empty:
        return _nothing(request, question)
    if request.measure.kind == "date":
        return date_sentence(request, str(rows.rows[0][0]), question)
    if request.measure.kind != "rows" and len(rows.values) < len(rows.rows):
        return table(rows, question)
    if request.is_one_value:
        return value_sentence(request, rows.values[0], question)
    if request.dimension and request.measure.kind != "rows" and len(rows.rows) == 1:
        return winner(request, rows, question)
    if request.measure.kind == "rows" and len(rows.rows) == 1:
        return single(rows, question)
    reading = _reading(request, rows, question, total)
    return "\n\n".join(filter(None, [reading, table(rows, question, request)]))


def value_sentence(request: Request, value: float, question: Question) -> str:
    where, shown, measure = context(request, question), number(value), request.measure
    after = f" {where}" if where else ""
    noun = singular(measure.english)
    if measure.kind != "count":
        english = f"The {_total(request)}{after} is **{shown}**."
        return question.say(english, f"{where}{measure.japanese}は **{shown}** です。")
    counter = "人" if noun in words.PEOPLE else "件"
    verb, nouns = ("is", noun) if value == 1 else ("are", measure.english)
    after = _of_one(after) if value == 1 else after
    return question.say(
        f"There {verb} **{shown}** {nouns}{after}.",
        f"{where}{measure.japanese}は **{shown}** {counter}です。",
    )


def date_sentence(request: Request, moment: str, question: Question) -> str:
    where, measure = context(request, question), request.measure
    after = f" {where}" if where else ""
    return question.say(
        f"The date of the {measure.english}{after} is **{moment}**.",
        f"{where}{measure.japanese}の日付は **{moment}** です。",
    )


def winner(request: Request, rows: Rows, question: Question) -> str:
    """Which came first, and with how much."""
    name = name_of(rows.rows[0][0], request.dimension, question)
    shown, where = number(rows.values[0]), context(request, question)
    after = f" {where}" if where else ""
    first = replace(request, limit=1)
    return question.say(
        f"The {_winning(first)}{after} is **{name}**, with **{shown}**.",
        f"{where}{_subject_ja(first)}は **{name}**（**{shown}**）です。",
    )


def _winning(request: Request) -> str:
    if request.measure.kind != "count" or request.dimension is None:
        return _subject(request).removeprefix("the ")
    most = "fewest" if request.ascending else "most"
    return f"{request.dimension.english} with the {most} {request.measure.english}"


def single(rows: Rows, question: Question) -> str:
    """One row in one line."""
    cells = [
        f"{_heading(column, question, None).lower()} **{_cell(cell, None, question)}**"
        for column, cell in zip(rows.columns, rows.rows[0], strict=True)
        if column != "id"
    ]
    line = question.say(f"{', '.join(cells)}.", f"{'、'.join(cells)}。")
    return line[:1].upper() + line[1:]


def name_of(cell: Any, dimension: Dimension | None, question: Question) -> str:
    """A cell for people; months by their names."""
    match = _MONTH.fullmatch(str(cell)) if dimension and dimension.unit == "month" else None
    if match and 1 <= int(match[2]) <= 12:
        year, month = match[1], int(match[2])
        return question.say(f"{MONTHS[month - 1].title()} {year}", f"{year}年{month}月")
    return "—" if cell is None else str(cell)


def table(rows: Rows, question: Question, request: Request | None = None) -> str:
    """The rows as a Markdown table."""
    heads = [_heading(column, question, request) for column in rows.columns]
    columns = [
        _column([row[at] for row in rows.rows[:SHOWN]], question, request)
        for at in range(len(heads))
    ]
    rules = ["---:" if numeric else "---" for numeric, _ in columns]
    body = zip(*(cells for _, cells in columns), strict=True)
    lines = [_line(heads), _line(rules), *map(_line, body)]
    if len(rows.rows) > SHOWN or rows.truncated:
        lines += ["", question.say("More rows were left out.", "以降の行は省きました。")]
    return "\n".join(lines)


def _column(
    cells: Sequence[Any], question: Question, request: Request | None
) -> tuple[bool, list[str]]:
    """Whether a column is of numbers, and its cells, all with the same decimals."""
    if cells and all(isinstance(cell, int | float) for cell in cells):
        places = 0 if all(cell == int(cell) for cell in cells) else 2
        return True, [f"{cell:,.{places}f}" for cell in cells]
    dimension = request.dimension if request else None
    return False, [_cell(cell, dimension, question) for cell in cells]


def _place(request: Request) -> str:
    noun = request.dimension.english if request.dimension else ""
    degree = "worst" if request.ascending else "best"
    many = request.limit is not None and request.limit > 1
    return (
        f"the {degree} {request.limit} {words.plural(noun)}" if many else f"the {degree} {noun}"
    )


def _total(request: Request) -> str:
    is_revenue = request.measure.english == "revenue"
    return "total revenue" if is_revenue else request.measure.english


def _reading(request: Request, rows: Rows, question: Question, total: int | None) -> str:
    """The table in one line."""
    if request.measure.kind == "rows":
        return _heading_line(request, len(rows.rows), question, total)
    best = max(rows.rows, key=lambda row: row[-1])
    worst = min(rows.rows, key=lambda row: row[-1])
    if request.dimension and request.dimension.unit:
        return _series(request, best, worst, question)
    first = worst if request.ascending else best
    return winner(request, replace(rows, rows=[first]), question)


def _heading_line(request: Request, count: int, question: Question, total: int | None) -> str:
    if request.dimension:
        return question.say(f"There are **{count}** of them:", f"**{count}** 種類あります。")
    where, order = context(request, question), _first(request) if request.order else None
    nouns = f"{request.measure.english} {where}".strip()
    english, japanese = _shown_of(count, count == request.limit, total)
    return question.say(
        f"The {count} {nouns}, {order[0]} first:" if order else f"The {english} {nouns}:",
        f"{where}{request.measure.japanese}（"
        + (f"{order[1]}順に{count}件）:" if order else f"{japanese}）:"),
    )


def _shown_of(count: int, is_cut: bool, total: int | None) -> tuple[str, str]:
    """How many are shown, and of how many."""
    if not is_cut or total == count:
        return f"{count}", f"全{count}件"
    if total is None:
        return f"first {count}", f"最初の{count}件"
    return f"first {count} of **{total}**", f"全 **{total}** 件のうち最初の{count}件"


def _series(
    request: Request, best: Sequence[Any], worst: Sequence[Any], question: Question
) -> str:
    unit = request.dimension.english if request.dimension else ""
    top = name_of(best[0], request.dimension, question)
    low = name_of(worst[0], request.dimension, question)
    return question.say(
        f"**{top}** was the best {unit} by {_per(request)}, with **{number(best[-1])}**; "
        f"**{low}** was the lowest, with {number(worst[-1])}.",
        f"{request.measure.japanese}が最も多いのは **{top}**（**{number(best[-1])}**）、"
        f"最も少ないのは **{low}**（{number(worst[-1])}）です。",
    )


def _per(request: Request) -> str:
    measure = request.measure
    return f"number of {measure.english}" if measure.kind == "count" else measure.english


def _nothing(request: Request, question: Question) -> str:
    where = context(request, question)
    after = f" {where}" if where else ""
    return question.say(
        f"The database has no {request.measure.english}{after}.",
        f"データベースに{where}{request.measure.japanese}に当たるデータはありません。",
    )


def _heading(column: str, question: Question, request: Request | None) -> str:
    if request and column == request.measure.alias:
        return question.say(request.measure.english.capitalize(), request.measure.japanese)
    plain = column.replace("_", " ")
    return _safe(question.say(plain.capitalize(), words.japanese(column)))


def _cell(cell: Any, dimension: Dimension | None, question: Question) -> str:
    return number(cell) if is_number(cell) else _safe(name_of(cell, dimension, question))


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
