"""Plans for others to carry out: the question in parts, each with what it takes to answer it.

A plan is made anew from the question every time; what was in vain before is left for what is
nearest to it. So a step that was well is written exactly as it was.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from . import chains, help, naming, widening
from . import measure as measures
from .brief import Brief
from .history import Offer, Question
from .naming import of_request
from .request import Dimension, Filter, Measure, Request

Fields = dict[str, Any]

_EXPLAIN = re.compile(
    r",?\s*(?:and|then|also)?\s*(?:please )?(?:explain|tell me|say)?\s*"
    r"\b(?:explain|why|the reasons?|what explains)\b[^.?!;]*"
    r"|[、,。]?\s*(?:その|違いの|差の)?(?:理由|原因|なぜ|要因)[^。？?]*"
    r"|[、,]?\s*(?:それを|違いを|差を)?(?:説明し|解説し)[^。？?]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A plan as it is written into its form; without steps, `cancel` may say why."""

    description: str
    steps: Sequence[Fields] = ()
    cancel: str = ""

    def to_dict(self) -> Fields:
        cancel = {"cancel": self.cancel} if self.cancel else {}
        return {"description": self.description, **cancel, "steps": list(self.steps)}


def write(brief: Brief, today: date) -> Outline:
    """The plan of the first writer that has one."""
    if brief.breakdown:
        return _cancelled(brief.question, brief.breakdown)
    found = (writer(brief, today) for writer in WRITERS)
    return next(filter(None, found), None) or _at_once(brief)


def greeted(brief: Brief, today: date) -> Outline | None:
    text = brief.question.plain.strip()
    return None if text and not help.GREETING.fullmatch(text) else _at_once(brief)


def compared(brief: Brief, today: date) -> Outline | None:
    """Two periods beside each other, what lies between them, and why."""
    question, wish = brief.question, _without_reason(brief.question)
    situation = replace(brief.situation, question=wish)
    calculator = situation.tool("calculator", "expression")
    found = chains.pair(situation, today)
    if found is None or calculator is None:
        return None
    database, *wanted = found
    both = _both(wanted, brief, today)
    if len(both) < 2:
        return _in_vain(wanted, brief)
    newer, older = both
    names = [of_request(request, question) for request in both]
    steps = [_query(database, request, question, above=0) for request in both]
    steps += _between(calculator, names, question)
    if wish != question:
        steps += _reasons(brief, database, newer, older, names)
    told = _comparing(names, question, explains=wish != question)
    return Outline(description=_noted(told, wanted, both, question), steps=steps)


WRITERS: tuple[Callable[[Brief, date], Outline | None], ...] = (greeted, compared)


def _without_reason(question: Question) -> Question:
    """The question without its wish for a reason."""
    wish = _EXPLAIN.sub(" ", question.text, count=1).strip()
    is_same = wish == question.text.strip()
    return question if is_same else Question(text=wish, voice=question.text)


def _both(wanted: Sequence[Request], brief: Brief, today: date) -> list[Request]:
    """What is compared, newer first, with something else for what was in vain."""
    well = [r for r in wanted if not brief.is_in_vain(of_request(r, brief.question))]
    for request in wanted:
        taken = [of_request(one, brief.question) for one in well]
        if request not in well:
            others = widening.elsewhen(request, today)
            found = widening.standing(request, others, brief, taken)
            well += [found] if found else []
    return sorted(well, key=_start, reverse=True)


def _start(request: Request) -> date:
    return request.period.start if request.period else date.min


def _query(
    database: Offer, request: Request, question: Question, above: int | None = None
) -> Fields:
    name = of_request(request, question)
    return {
        "name": name,
        "tool": database.name,
        "arguments": database.fill(request.sql),
        "parallel": True,
        "expected_outcome": _expected(request, name, question, above),
    }


def _expected(request: Request, name: str, question: Question, above: int | None) -> str:
    if above is not None:
        return question.say(
            f"A figure above {above}: {name}.", f"{above}より大きい数値: {name}。"
        )
    if request.is_one_value:
        return question.say(f"A figure: {name}.", f"数値: {name}。")
    return question.say(f"At least one row: {name}.", f"1件以上の行: {name}。")


def _between(calculator: Offer, names: Sequence[str], question: Question) -> list[Fields]:
    after, before = (f"({_figure(name)})" for name in names)
    sums = {
        naming.DIFFERENCE: f"{after} - {before}",
        naming.CHANGE: f"({after} - {before}) / {before} * 100",
    }
    return [
        {
            "name": question.say(*called),
            "tool": calculator.name,
            "arguments": calculator.fill(sum),
            "depends_on": list(names),
            "parallel": True,
            "expected_outcome": question.say("A figure.", "数値。"),
        }
        for called, sum in sums.items()
    ]


def _figure(name: str) -> str:
    """What was measured: the last thing in the first row."""
    return f"${{round({_cell(name, -1)}, 2)}}"


def _cell(name: str, column: int) -> str:
    return f"steps[{json.dumps(name, ensure_ascii=False)}].output.rows[0][{column}]"


def _reasons(
    brief: Brief, database: Offer, newer: Request, older: Request, names: Sequence[str]
) -> list[Fields]:
    """What may explain a difference: what the figures are made of, and the documents."""
    question, search = brief.question, brief.situation.tool("search")
    made = _makeup(newer, older, names)
    steps = [_query(database, made, question)] if made else []
    for step in steps:
        step |= {"name": question.say(*naming.MAKEUP), "depends_on": list(names)}
        step["expected_outcome"] = question.say("At least one row.", "1件以上の行。")
    unit = newer.dimension or Dimension(english="year", japanese="年")
    query = question.say(
        f"why {newer.measure.english} differs from {unit.english} to {unit.english}",
        f"{newer.measure.japanese}が{unit.japanese}によって違う理由",
    )
    return steps + ([_lookup(search, query, question)] if search else [])


def _lookup(search: Offer, query: str, question: Question) -> Fields:
    return {
        "name": question.say(*naming.LOOKUP) + query,
        "tool": search.name,
        "arguments": search.fill(query),
        "parallel": True,
    }


def _makeup(newer: Request, older: Request, names: Sequence[str]) -> Request | None:
    """How many rows each of two sums has, and how large they are on average."""
    unit = newer.dimension
    summed = re.fullmatch(r"SUM\((.+)\)", newer.measure.sql)
    if summed is None or unit is None or unit.unit is None or older.filters != newer.filters:
        return None
    counted = measures.count(newer.base)
    measure = Measure(
        kind="average",
        sql=f"{counted.sql} AS {counted.alias}, AVG({summed[1]})",
        english="average amount",
        japanese="平均額",
        uses=newer.measure.uses,
    )
    units = ", ".join(f"'${{{_cell(name, 0)}}}'" for name in names)
    those = Filter(sql=f"{newer.grouping} IN ({units})", tables=(), english="", japanese="")
    return replace(
        newer, measure=measure, period=None, filters=(*newer.filters, those), limit=None
    )


def _comparing(names: Sequence[str], question: Question, *, explains: bool) -> str:
    newer, older = names
    why = question.say(" and explain the difference", "、違いの理由を調べます")
    return question.say(
        f"Compare the {newer} with the {older}{why * explains}.",
        f"{newer}と{older}を比べ{why if explains else 'ます'}。",
    )


def _noted(
    told: str, wanted: Sequence[Request], found: Sequence[Request], question: Question
) -> str:
    """The description, after what was given up."""
    names = [of_request(request, question) for request in found]
    lost = [n for r in wanted if (n := of_request(r, question)) not in names]
    new = [name for name in names if name not in [of_request(r, question) for r in wanted]]
    if not lost:
        return told
    nothing = question.say(*naming.NOTHING)
    note = question.say(
        f"{nothing}{' and the '.join(lost)}, so the {' and the '.join(new)} is taken instead.",
        f"{nothing}{'、'.join(lost)}。代わりに{'、'.join(new)}を使います。",
    )
    return f"{note} {told}" if not question.is_japanese else f"{note}{told}"


def _in_vain(wanted: Sequence[Request], brief: Brief) -> Outline:
    question = brief.question
    lost = [n for r in wanted if brief.is_in_vain(n := of_request(r, question))]
    why = question.say(
        f"The database has nothing for the {' or the '.join(lost)}, and nothing near it.",
        f"データベースに{'、'.join(lost)}に当たるデータがなく、近いものも見つかりませんでした。",
    )
    return _cancelled(question, why)


def _cancelled(question: Question, why: str) -> Outline:
    told = question.say("This cannot be done.", "実行できません。")
    return Outline(description=told, cancel=why)


def _at_once(brief: Brief) -> Outline:
    told = brief.question.say("This needs no steps.", "手順は必要ありません。")
    return Outline(description=told)
