"""A monitor of rules: is there what was expected, and if not, where else to look?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import passages, rows
from .history import Message, Question, spoken
from .rows import Rows

_ASKED = re.compile(
    r"\AStep: (?P<step>.*?)\nExpected: (?P<expected>.*?)\nResult:\n(?P<result>.*)\Z", re.DOTALL
)
_FIGURE = re.compile(
    r"\b(?:figure|number|amount|total|value|count)\b|数値|数字|金額|合計|件数", re.I
)
_PASSAGES = re.compile(r"\b(?:passages?|documents?|sources?)\b|箇所|文書|出典", re.I)
_ABOVE = re.compile(r"\b(?:above|more than|over) (\d+)|(\d+)より大きい")
_AT_LEAST = re.compile(r"\bat least (\d{1,6})\b|(\d{1,6})(?:件|行)以上", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_DATED = re.compile(r"((?:19|20)\d\d)(?:-\d\d){0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Why it is so; `feedback` is what to change where it is not as expected."""

    reason: str
    feedback: str = ""

    def to_dict(self) -> dict[str, Any]:
        told = {"reason": self.reason, "feedback": self.feedback}
        return {"is_met": not self.feedback, **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was expected, in a language, and what came."""

    expected: Question
    result: str

    @property
    def table(self) -> Rows | None:
        return rows.parse(self.result)

    @property
    def figures(self) -> list[float]:
        """The numbers that were measured, or else any, or the one that the text is."""
        if self.table is not None:
            cells = [cell for row in self.table.rows for cell in row if rows.is_number(cell)]
            return self.table.values or cells
        return [float(rows.figure(self.result) or 0)] if rows.is_figure(self.result) else []

    def says(self, words: re.Pattern[str]) -> bool:
        return words.search(self.expected.text) is not None


def judge(messages: Sequence[Message]) -> Judgement:
    """The first thing that is wrong, or what there is to be seen."""
    case = _read(messages)
    return next(filter(None, (look(case) for look in LOOKS)), None) or _seen(case)


def _read(messages: Sequence[Message]) -> Case:
    told = spoken(messages[-1]) if messages else ""
    found = _ASKED.match(told)
    if found is None:
        return Case(expected=Question(text=""), result=told)
    return Case(expected=Question(text=found["expected"]), result=found["result"].strip())


def _error(case: Case) -> Judgement | None:
    if not case.result.startswith("Error"):
        return None
    reason = case.result.removeprefix("Error:").strip()
    return Judgement(
        reason=case.expected.say(f"It is an error: {reason}", f"エラーです: {reason}"),
        feedback=case.expected.say("Do it in another way.", "別の方法で行ってください。"),
    )


def _empty(case: Case) -> Judgement | None:
    is_empty = case.table.is_empty if case.table else not case.result
    if not is_empty:
        return None
    return Judgement(
        reason=case.expected.say("The result is empty.", "結果が空です。"),
        feedback=_elsewhere(case),
    )


def _no_figure(case: Case) -> Judgement | None:
    if case.figures or not case.says(_FIGURE) or _answered_in_words(case):
        return None
    return Judgement(
        reason=case.expected.say("There is no figure in it.", "数値が含まれていません。"),
        feedback=case.expected.say("Ask for the figure itself.", "数値を求めてください。"),
    )


def _answered_in_words(case: Case) -> bool:
    """An agent or a person says a figure in a sentence."""
    return case.table is None and rows.figure(case.result) is not None


def _too_small(case: Case) -> Judgement | None:
    bound = _ABOVE.search(case.expected.text)
    least = float(bound[1] or bound[2]) if bound else None
    if least is None or not case.figures or max(case.figures) > least:
        return None
    shown = rows.number(max(case.figures))
    return Judgement(
        reason=case.expected.say(f"The figure is {shown}.", f"数値が {shown} です。"),
        feedback=_elsewhere(case),
    )


def _too_few(case: Case) -> Judgement | None:
    wanted = _AT_LEAST.search(case.expected.text)
    least = int(wanted[1] or wanted[2]) if wanted else 0
    if case.table is None or len(case.table.rows) >= least:
        return None
    count = len(case.table.rows)
    return Judgement(
        reason=case.expected.say(f"The number of rows is {count}.", f"{count}行だけです。"),
        feedback=_elsewhere(case),
    )


def _other_time(case: Case) -> Judgement | None:
    """Whether all dates in the first column are of years that were not expected."""
    wanted = set(_YEAR.findall(case.expected.text))
    cells = [str(row[0]) for row in case.table.rows if row] if case.table else []
    years = {found[1] for cell in cells if (found := _DATED.fullmatch(cell))}
    if not wanted or not years or wanted & years:
        return None
    seen, meant = ", ".join(sorted(years)), ", ".join(sorted(wanted))
    return Judgement(
        reason=case.expected.say(f"It is about {seen}.", f"{seen}年のものです。"),
        feedback=case.expected.say(f"Look at {meant}.", f"{meant}年を見てください。"),
    )


def _no_text(case: Case) -> Judgement | None:
    if not case.says(_PASSAGES) or passages.parse(case.result) or case.table:
        return None
    return Judgement(
        reason=case.expected.say("No passage was found.", "該当する箇所がありません。"),
        feedback=case.expected.say(
            "Search with fewer words.", "語を減らして検索してください。"
        ),
    )


LOOKS = (_error, _empty, _no_figure, _too_small, _too_few, _other_time, _no_text)


def _elsewhere(case: Case) -> str:
    return case.expected.say(
        "Look at another period, or for a name that is nearly the same.",
        "別の期間か、近い名前で調べてください。",
    )


def _seen(case: Case) -> Judgement:
    shown = _shown(case)
    return Judgement(reason=case.expected.say(f"It shows {shown}.", f"結果は {shown} です。"))


def _shown(case: Case) -> str:
    say, table = case.expected.say, case.table
    if table and table.rows:
        cells = ", ".join(rows.shown(cell) for cell in table.rows[0])
        many = say(f"{len(table.rows)} rows, first ", f"{len(table.rows)}行、先頭は ")
        return f"{many if len(table.rows) > 1 else ''}{cells}"
    if found := passages.parse(case.result):
        return found[0].source
    if rows.is_figure(case.result):
        return rows.written(case.result, 2)
    line = " ".join(case.result.split()).rstrip(".。")
    return line if len(line) <= 120 else f"{line[:119]}…"
