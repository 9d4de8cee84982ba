"""The answer after a plan was carried out: what its steps gave, read together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import log
from typing import Any

from agents.engine.orchestrator import RESULTS

from . import dimension as dimensions
from . import help, history, naming, passages, rows
from .history import Message, Question, spoken
from .rows import Rows

_BEGIN, _, _END = (part.strip() for part in re.split(r"\{description\}|\{results\}", RESULTS))
_HEAD = re.compile(r"^## (.+) \((done|failed|skipped|unreached)\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a step of the plan gave, or why it gave nothing."""

    name: str
    status: str
    text: str

    @property
    def table(self) -> Rows | None:
        return rows.parse(self.text) if self.status == "done" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A question, the plan for it in a sentence, and what came of each step."""

    question: Question
    description: str
    results: tuple[Result, ...]
    today: date

    def called(self, words: naming.Words) -> Result | None:
        found = (r for r in self.results if naming.is_called(r.name, words))
        return next((result for result in found if result.status == "done"), None)


def read(messages: Sequence[Message], today: date) -> Report | None:
    """The report that the last message is, if it is one."""
    told = spoken(messages[-1]) if messages and messages[-1]["role"] == "user" else ""
    before, begins, after = told.rpartition(_BEGIN)
    if not begins:
        return None
    asked = history.read([*messages[:-1], *_said(before)], None).question
    head, *_ = re.split(r"\n\n(?:## |—)", after, maxsplit=1)
    results = after[len(head) :].rpartition(_END)[0]
    return Report(
        question=asked,
        description=head.strip(),
        results=tuple(_results(results)),
        today=today,
    )


def answer(report: Report) -> str:
    """Everything that was found, in sentences."""
    if not report.results:
        return _at_once(report.question)
    parts = [_given_up(report), *(_compared(report) or _one_by_one(report))]
    return "\n\n".join(part for part in parts if part)


def _said(before: str) -> list[Message]:
    return [{"role": "user", "content": before.strip()}] if before.strip() else []


def _results(text: str) -> list[Result]:
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        Result(name=head[1], status=head[2], text=text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]


def _given_up(report: Report) -> str:
    """What had to be given up on the way, as the plan says it."""
    if not naming.rest(report.description, naming.NOTHING):
        return ""
    border = report.question.say(". ", "。")
    return border.join(report.description.split(border)[:-1]) + border.strip()


def _compared(report: Report) -> list[str]:
    """Two figures, what lies between them, and why; nothing where no two were compared."""
    question, gap = report.question, report.called(naming.DIFFERENCE)
    difference = float(rows.figure(gap.text) or 0) if gap else 0
    figures = [r for r in report.results if _is_figure(r) and not _is_own(r)]
    if gap is None or len(figures) != 2:
        return []
    figures.sort(key=_value, reverse=difference > 0)
    newer, older = figures if difference else _in_order(figures)
    space = question.say(" ", "")
    both = space.join(_sentence(result, question) for result in (newer, older))
    verdict = space.join([_verdict(report, newer, older, difference), *_unfinished(report)])
    return [both, verdict, *_why(report, newer)]


def _in_order(figures: Sequence[Result]) -> Sequence[Result]:
    return sorted(figures, key=lambda result: result.name, reverse=True)


def _is_own(result: Result) -> bool:
    return any(naming.is_called(result.name, words) for words in (naming.MAKEUP, naming.CHANGE))


def _is_figure(result: Result) -> bool:
    table = result.table
    return table is not None and len(table.rows) == 1 and len(table.values) == 1


def _value(result: Result) -> float:
    return result.table.values[0] if result.table else 0


def _verdict(report: Report, newer: Result, older: Result, difference: float) -> str:
    question, change = report.question, report.called(naming.CHANGE)
    first, second = _label(newer, question), _label(older, question)
    if not difference:
        return question.say("The two are equal.", "両者は同じです。")
    percent = rows.percentage(change.text, signed=True) if change else "—"
    size, is_more = rows.number(abs(round(difference, 2))), difference > 0
    best, above = (first, "above") if is_more else (second, "below")
    english = f"{first} is **{size}** {above} {second} ({percent})."
    return question.say(
        f"**{_capital(best)}** is ahead: {english}",
        f"多かったのは **{best}** です。{first}は{second}を **{size}** "
        f"{'上回りました' if is_more else '下回りました'}（{percent}）。",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _label(result: Result, question: Question) -> str:
    """What came first, by its name; else what was measured, by the step's."""
    table = result.table
    if table and len(table.columns) > 1:
        return _cell(table.columns[0], table.rows[0][0], question)
    return question.say(f"the {result.name}", result.name)


def _cell(column: str, cell: Any, question: Question) -> str:
    unit = next((dimensions.of_time(u) for u in dimensions.UNITS if u == column.lower()), None)
    return rows.name_of(cell, unit, question)


def _unfinished(report: Report) -> list[str]:
    """A year that is not over yet has an unfair place in a comparison."""
    year = str(report.today.year)
    if not any(year in result.name for result in report.results if _is_figure(result)):
        return []
    return [
        report.question.say(
            f"{year} is not over yet, so this may still change.",
            f"{year}年はまだ終わっていないため、変わる可能性があります。",
        )
    ]


def _why(report: Report, newer: Result) -> list[str]:
    made = report.called(naming.MAKEUP)
    return [_made_of(made, newer, report.question) if made else "", _looked_up(report)]


def _made_of(made: Result, newer: Result, question: Question) -> str:
    """How many there were and how large they were, and which of the two tells more."""
    table, first = made.table, newer.table
    if table is None or first is None or len(table.rows) != 2:
        return ""
    after, before = sorted(table.rows, key=lambda row: row[0] != first.rows[0][0])
    told = [_one_made(table.columns[0], row, question) for row in (after, before)]
    sentence = question.say("; ", "、").join(told)
    return question.say(f"{sentence}. ", f"{sentence}でした。") + _mostly(
        after, before, question
    )


def _one_made(column: str, row: Sequence[Any], question: Question) -> str:
    when, count, mean = (
        _cell(column, row[0], question),
        rows.number(row[1]),
        rows.number(row[2]),
    )
    return question.say(
        f"{when} had **{count}** orders of {mean} on average",
        f"{when}は注文 **{count}** 件・平均 {mean}",
    )


def _mostly(after: Sequence[Any], before: Sequence[Any], question: Question) -> str:
    """A sum is a number times an average; logarithms part it between the two."""
    if not all(cell and cell > 0 for cell in (*after[1:], *before[1:])):
        return ""
    counts, means = abs(log(after[1] / before[1])), abs(log(after[2] / before[2]))
    if counts > 2 * means:
        return question.say(
            "So the difference comes mostly from the number of orders.",
            "違いは主に注文数によるものです。",
        )
    if means > 2 * counts:
        return question.say(
            "So the difference comes mostly from the size of the orders.",
            "違いは主に 1 件あたりの金額によるものです。",
        )
    return question.say(
        "So both the number and the size of the orders play a part.",
        "注文数と 1 件あたりの金額の両方が影響しています。",
    )


def _looked_up(report: Report) -> str:
    """What the documents say of the reason, or that they say nothing."""
    for result in report.results:
        query = naming.rest(result.name, naming.LOOKUP)
        if query and result.status == "done":
            asked = Question(text=query, voice=report.question.text)
            return passages.quoted(result.text, asked) or report.question.say(
                "The documents say nothing about the reason.",
                "理由について、文書には記述がありませんでした。",
            )
    return ""


def _one_by_one(report: Report) -> list[str]:
    return [_told(result, report.question) for result in report.results]


def _told(result: Result, question: Question) -> str:
    if result.status != "done":
        return question.say(
            f"“{result.name}” was not done: {result.text}",
            f"「{result.name}」は行われませんでした: {result.text}",
        )
    if query := naming.rest(result.name, naming.LOOKUP):
        return passages.answer(result.text, Question(text=query, voice=question.text))
    if expression := naming.rest(result.name, naming.SUM):
        return rows.result(expression, result.text, question)
    return _sentence(result, question)


def _sentence(result: Result, question: Question) -> str:
    name, table = result.name, result.table
    head = question.say(f"The {name}", name)
    if table is None:
        return question.say(f"{head}: {result.text}", f"{head}: {result.text}")
    if table.is_empty:
        return question.say(f"{head}: nothing was found.", f"{head}: 見つかりませんでした。")
    if not _is_figure(result):
        return f"{head}:\n\n{rows.table(table, question)}"
    shown = rows.number(round(table.values[0], 2))
    if len(table.columns) == 1:
        return question.say(f"{head} is **{shown}**.", f"{head}は **{shown}** です。")
    first = _cell(table.columns[0], table.rows[0][0], question)
    return question.say(
        f"{head} is **{first}**, with **{shown}**.",
        f"{head}は **{first}**（**{shown}**）です。",
    )


def _at_once(question: Question) -> str:
    return help.planning(question)
