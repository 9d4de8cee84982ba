"""How two figures differ, in words: which is ahead, by how much, and why."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from . import naming, passages, rows
from .history import Question
from .report import Report, Result, capital, cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two results of a report, and the first less the second."""

    report: Report
    first: Result
    second: Result
    gap: float

    @property
    def question(self) -> Question:
        return self.report.question

    @property
    def used(self) -> list[Result | None]:
        """The results that are told with it."""
        named = (naming.DIFFERENCE, naming.CHANGE, naming.MAKEUP, naming.REASON)
        return [self.first, self.second, *map(self.report.called, named)]

    def verdict(self) -> str:
        """Which is ahead, and by how much."""
        say = self.question.say
        if not self.gap:
            return say("The two are equal.", "両者は同じです。")
        change = self.report.called(naming.CHANGE)
        percent = rows.percentage(change.text, signed=True) if change else "—"
        first, second = (r.label(self.question) for r in (self.first, self.second))
        size, is_more = rows.number(abs(round(self.gap, 2))), self.gap > 0
        best, verb = (first, "上回りました") if is_more else (second, "下回りました")
        more, less = f"it is **{size}** above {second}", f"{first} is **{size}** below it"
        return say(
            f"**{capital(best)}** is ahead: {more if is_more else less} ({percent}).",
            f"多かったのは **{best}** です。"
            f"{first}は{second}を **{size}** {verb}（{percent}）。",
        )

    def caution(self) -> str:
        """A year that is not over has an unfair place in a comparison."""
        year = self.report.today.year
        is_whole = re.compile(rf"in {year}$|{year}年の")
        if not is_whole.search(self.first.name):
            return ""
        return self.question.say(
            f"{year} is not over yet, so this may still change.",
            f"{year}年はまだ終わっていないため、変わる可能性があります。",
        )

    def makeup(self) -> str:
        """How many there were and how large they were, and which of the two tells more."""
        made = self.report.called(naming.MAKEUP)
        table = made.table if made else None
        if table is None or len(table.rows) != 2:
            return ""
        # A sum is a number times an average, so the row is known by that.
        after, before = sorted(table.rows, key=lambda row: abs(row[1] * row[2] - self._sum))
        told = [_one(table.columns[0], row, self.question) for row in (after, before)]
        sentence = self.question.say("; ", "、").join(told)
        why = _mostly(after, before, self.question)
        return self.question.say(f"{sentence}. {why}".strip(), f"{sentence}でした。{why}")

    @property
    def _sum(self) -> float:
        return self.first.figure or 0

    def reason(self) -> str:
        """What the documents say of it, or that they say nothing."""
        found = self.report.called(naming.REASON)
        if found is None:
            return ""
        query = naming.rest(found.name, naming.REASON)
        said = passages.quoted(found.text, Question(text=query, voice=self.question.text))
        return said or self.question.say(
            "The documents say nothing about the reason.",
            "理由について、文書には記述がありませんでした。",
        )


def find(report: Report) -> Difference | None:
    """The comparison in a report, if there is one."""
    told = report.called(naming.DIFFERENCE)
    if told is None:
        return None
    gap = float(rows.figure(told.text) or 0)
    figures = [r for r in report.results if r.figure is not None]
    # In the order of their names: results are told as they came in.
    figures.sort(key=lambda result: result.name, reverse=True)
    pairs = [(a, b) for a in figures for b in figures if a is not b]
    for first, second in pairs:
        if abs((first.figure or 0) - (second.figure or 0) - gap) < 0.01:
            return Difference(report=report, first=first, second=second, gap=gap)
    return None


def _one(column: str, row: Sequence[Any], question: Question) -> str:
    when, count, mean = cell(column, row[0], question), *map(rows.number, row[1:3])
    return question.say(
        f"{when} had **{count}** orders of {mean} on average",
        f"{when}は注文 **{count}** 件・平均 {mean}",
    )


def _mostly(after: Sequence[Any], before: Sequence[Any], question: Question) -> str:
    """Logarithms part what differs between the number and the average."""
    if not all(value and value > 0 for value in (*after[1:], *before[1:])):
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
