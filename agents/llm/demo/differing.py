"""How two figures differ, in words: which is ahead, by how much, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from . import naming, passages, rows, words
from . import period as periods
from .history import Question
from .period import Period
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
        named = (naming.DIFFERENCE, naming.CHANGE, naming.MAKEUP)
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
        """A year or a month that is not over has an unfair place in a comparison."""
        today = self.report.today
        for span in (periods.year(today.year), periods.month(today.year, today.month)):
            if _is_of(self.first, span) and not _is_of(self.second, span):
                return self.question.say(
                    f"{span.english.removeprefix('in ')} is not over yet, "
                    "so this may still change.",
                    f"{span.japanese}はまだ終わっていないため、変わる可能性があります。",
                )
        return ""

    def makeup(self) -> str:
        """How many there were and how large they were, and which of the two tells more."""
        made = self.report.called(naming.MAKEUP)
        table = made.table if made else None
        if table is None or len(table.rows) != 2 or len(table.columns) != 3:
            return ""
        # A sum is a number times an average, so the row is known by that.
        after, before = sorted(table.rows, key=lambda row: abs(row[1] * row[2] - self._sum))
        told = [_one(table.columns, row, self.question) for row in (after, before)]
        sentence = self.question.say("; ", "、").join(told)
        why = _mostly(table.columns, after, before, self.question)
        return self.question.say(f"{sentence}. {why}".strip(), f"{sentence}でした。{why}")

    @property
    def _sum(self) -> float:
        return self.first.figure or 0


def reason(report: Report) -> str:
    """What the documents say of it, or that they say nothing."""
    found = report.called(naming.REASON)
    if found is None:
        return ""
    query = naming.rest(found.name, naming.REASON)
    said = passages.quoted(found.text, Question(text=query, voice=report.question.text))
    return said or report.question.say(
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


def _is_of(result: Result, span: Period) -> bool:
    return result.name.endswith(span.english) or f"{span.japanese}の" in result.name


def _one(columns: Sequence[str], row: Sequence[Any], question: Question) -> str:
    which, count, mean = cell(columns[0], row[0], question), *map(rows.number, row[1:3])
    return question.say(
        f"{which} had **{count}** {_noun(columns, question)} of {mean} on average",
        f"{which}は{_noun(columns, question)} **{count}** 件・平均 {mean}",
    )


def _mostly(
    columns: Sequence[str], after: Sequence[Any], before: Sequence[Any], question: Question
) -> str:
    """Logarithms part what differs between the number and the average."""
    if not all(value and value > 0 for value in (*after[1:], *before[1:])):
        return ""
    counts, means = abs(log(after[1] / before[1])), abs(log(after[2] / before[2]))
    noun = _noun(columns, question)
    if counts > 2 * means:
        return question.say(
            f"So the difference comes mostly from the number of {noun}.",
            f"違いは主に{noun}の件数によるものです。",
        )
    if means > 2 * counts:
        return question.say(
            f"So the difference comes mostly from the size of the {noun}.",
            f"違いは主に{noun} 1 件あたりの金額によるものです。",
        )
    return question.say(
        f"So both the number and the size of the {noun} play a part.",
        f"{noun}の件数と 1 件あたりの金額の両方が影響しています。",
    )


def _noun(columns: Sequence[str], question: Question) -> str:
    """What was counted, by the name of its column."""
    return question.say(columns[1].replace("_", " "), words.japanese(columns[1]))
