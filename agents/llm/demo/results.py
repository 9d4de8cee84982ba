"""Answers as text: tool results, failures, and the model's self-description."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple

from . import passages, shop
from .conversation import (
    DECLINED,
    LIBRARY,
    LOST,
    SENTENCES,
    Finding,
    Question,
    Situation,
    pattern,
)
from .intents import month_period
from .shop import PAGE, ShopQuery

ADD_MODEL = "/admin/agents/modelconnection/add/"
_TOOLS = (("calculator", "expression"), ("database", "sql"), ("search", "query"))
MAX_ROWS = 40
# In each language: an answer that only says what this model can do, and an example in it.
_FALLBACKS = [
    (pattern(fallback), pattern(quoted))
    for fallback, quoted in zip(SENTENCES["fallback"], SENTENCES["quoted"], strict=True)
]
_NUMBER = re.compile(r"(-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?: \(.*\))?")


class Rows(NamedTuple):
    """Rows as the database tool returns them."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    truncated: bool = False

    @property
    def is_empty(self) -> bool:
        return all(cell is None for row in self.rows for cell in row)

    @property
    def values(self) -> list[float]:
        """Return the last number of each row, which is the measure."""
        return [row[-1] for row in self.rows if row and is_number(row[-1])]


def parse(text: str) -> Rows | None:
    """Return the rows in a tool result, at any position."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        columns = value["columns"]
        rows = value["rows"]
        is_table = all(isinstance(name, str) for name in columns)
        if not is_table or not all(len(row) == len(columns) for row in rows):
            return None
        cells = [[whole(cell) for cell in row] for row in rows]
        return Rows(columns, cells, bool(value.get("truncated")))
    except (ValueError, KeyError, TypeError):
        return None


def whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_number(value: Any) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return is_int or (isinstance(value, float) and isfinite(value))


def figure(text: str) -> str | None:
    """Return a text's number, ignoring a note in brackets after it."""
    match = _NUMBER.fullmatch(text.strip())
    return match[1].replace(",", "") if match else None


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def percentage(text: str, sign: str = "") -> str:
    value = float(figure(text) or "nan")
    return f"{value:{sign},.{1 if abs(value) >= 1 else 2}f}%"


def result(finding: Finding, question: Question, places: int = 6) -> str:
    """Describe the calculator's result; anything but a number is quoted."""
    text = figure(finding.text)
    if text is None:
        return finding.text
    if re.fullmatch(r"-?\d{1,300}(?:\.\d+)?", text):
        short = f"{round(Decimal(text), places):,f}" if "." in text else f"{int(text):,}"
        short = short.rstrip("0").rstrip(".") if "." in short else short
        text = text if short in ("0", "-0") else short
    return question.say("result", value=text, expression=finding.input)


def format_finding(finding: Finding, question: Question) -> str:
    """Describe a result that isn't part of a recorded plan."""
    if figure(finding.text):
        return result(finding, question)
    rows = parse(finding.text)
    if rows and rows.columns:
        text = table(rows, question)
    else:
        text = passages.quote(finding.text, question.part(finding.input)) or finding.text
    if not finding.is_changed:
        return text
    note = question.say("changed", input=" ".join(finding.input.split()), tool=finding.tool)
    return f"{note}\n\n{text}"


def answer(query: ShopQuery, finding: Finding) -> str:
    """Describe the rows of a query."""
    question = query.slots.question
    say = question.say
    title = query.title
    rows = parse(finding.text)
    if rows is None or rows.is_empty:
        return say("no_data", title=title)
    cells = [[label(cell, question) for cell in row] for row in rows.rows]
    if query.is_value:
        return say("value", title=title, value=cells[0][-1], counter=query.counter)
    if query.intent == "ranking":
        if len(cells) > 1:
            title = shop.query("ranking", query.slots._replace(limit=1)).title
        head = say("first", title=title, name=cells[0][0], value=cells[0][-1])
    elif query.intent == "breakdown":
        order = sorted(range(len(cells)), key=lambda index: rows.rows[index][-1] or 0)
        low, low_value = cells[order[0]]
        top, top_value = cells[order[-1]]
        head = say("range", title=title, top=top, most=top_value, low=low, least=low_value)
    else:
        key = {1: "list_one", PAGE: "list_cut"}.get(len(cells), "list")
        head = say(key, title=title, count=len(cells))
    is_short = len(cells) == 1 and query.intent == "ranking"
    return head if is_short else f"{head}\n\n{table(rows, question)}"


def label(cell: Any, question: Question) -> str:
    """Format a cell; months by name."""
    if is_number(cell):
        return number(cell)
    if match := re.fullmatch(r"(\d{4})-(0[1-9]|1[0-2])", str(cell)):
        period = month_period(int(match[1]), int(match[2]))
        return period.japanese if question.is_japanese else period.english[3:]
    return "—" if cell is None else str(cell)


def table(rows: Rows, question: Question) -> str:
    """Format rows as a Markdown table; numbers in a column have the same decimals."""
    columns = []
    rules = []
    for index, name in enumerate(rows.columns):
        cells = [row[index] for row in rows.rows[:MAX_ROWS]]
        is_numeric = bool(cells) and all(map(is_number, cells))
        places = 0 if not is_numeric or all(cell == int(cell) for cell in cells) else 2
        formatted = [f"{c:,.{places}f}" if is_numeric else label(c, question) for c in cells]
        plain = name.replace("_", " ")
        japanese = LIBRARY["headings"].get(name.lower(), plain)
        columns.append([japanese if question.is_japanese else plain.capitalize(), *formatted])
        rules.append("---:" if is_numeric else "---")
    clean = [[c.replace("|", "\\|").replace("\n", " ") for c in column] for column in columns]
    heads, *body = zip(*clean, strict=True)
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, rules, *body)]
    is_cut = len(rows.rows) > MAX_ROWS or rows.truncated
    return "\n".join([*lines, *(["", question.say("cut")] if is_cut else [])])


def fallback(situation: Situation) -> str:
    """Say what this model is, what it can do and how to get a real one."""
    say = situation.question.say
    examples = _examples(situation)
    quoted = say("comma").join(say("quoted", text=example) for example in examples)
    key = "fallback" if examples else "fallback_without_tools"
    return say(key, examples=quoted, more=_more(situation))


def offered_examples(text: str) -> list[str]:
    """Return the examples in an answer that only says what this model can do."""
    for fallback_pattern, quoted_pattern in _FALLBACKS:
        if match := fallback_pattern.fullmatch(text):
            return [example["text"] for example in quoted_pattern.finditer(match["examples"])]
    return []


def introduction(situation: Situation) -> str:
    """Introduce the model, with examples for the available tools."""
    say = situation.question.say
    paragraphs = [say("introduction")]
    if situation.is_planner:
        paragraphs.append(say("planning"))
    if examples := [f"- {example}" for example in _examples(situation)]:
        paragraphs.append("\n".join([say("try"), "", *examples]))
    return "\n\n".join([*paragraphs, say("connect", more=_more(situation))])


def _more(situation: Situation) -> str:
    """Say how to get a real model, which only administrators can connect."""
    say = situation.question.say
    if situation.administrator is None:
        return say("connect_model", link=ADD_MODEL)
    key = "ask_contact" if situation.administrator else "ask_administrator"
    return say(key, link=situation.administrator)


def failure(finding: Finding, question: Question) -> str:
    """Say why a call failed, or that a person rejected it."""
    if not finding.text.startswith((DECLINED, LOST)):
        reason = finding.text.removeprefix("Error:").strip()
        return question.say("failed", tool=finding.tool, reason=reason)
    comment = re.search("“(.*)”", finding.text, re.DOTALL)
    reason = question.say("comment", text=comment[1]) if comment else ""
    key = "rejected" if finding.text.startswith(DECLINED) else "result_lost"
    return question.say(key, tool=finding.tool) + reason


def _examples(situation: Situation) -> list[str]:
    """Return up to three questions that the available tools can answer."""
    say = situation.question.say
    text = situation.question.text.strip()
    examples = [say(f"example_{tool[0]}") for tool in _TOOLS if situation.tool(*tool)]
    # An agent that can only hand off is asked to do so with the same question.
    task = text if 0 < len(text) < 80 and "\n" not in text else say("example_calculator")
    examples += [say("example_handoff", agent=agent, task=task) for agent in situation.agents]
    return examples[:3]
