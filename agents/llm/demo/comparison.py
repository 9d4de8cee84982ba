"""Two figures beside each other: what lies between them, and why."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from . import chains, cues, filters, naming, reasons, steps, widening
from . import dimension as dimensions
from . import measure as measures
from . import period as periods
from .brief import Brief
from .history import Offer, Question, Situation
from .naming import of_request
from .piece import Piece
from .plan import asked
from .request import Dimension, Filter, Request
from .schema import Column
from .steps import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two requests that differ in one thing: `by` is what it is called."""

    database: Offer
    requests: Sequence[Request]
    by: Dimension


def compared(brief: Brief, today: date) -> Piece | None:
    question, (wish, explains) = brief.question, reasons.parted(brief.question)
    situation = replace(brief.situation, question=wish)
    pair = _periods(situation, today) or _places(situation, today)
    if pair is None:
        return None
    wanted = pair.requests
    both = _both(wanted, brief, today)
    lost = tuple(of_request(r, question) for r in wanted if r not in both)
    if len(both) < 2:
        return Piece(lost=lost)
    names = [of_request(request, question) for request in both]
    written = [steps.query(pair.database, r, question, compares=True) for r in both]
    written += _between(situation.tool("calculator", "expression"), names, question)
    if explains:
        written += _reasons(replace(pair, requests=both), names, brief)
    return Piece(
        steps=tuple(written),
        what=_comparing(names, question, explains=explains),
        lost=lost,
        instead=tuple(of_request(r, question) for r in both if r not in wanted),
    )


def _periods(situation: Situation, today: date) -> _Pair | None:
    found = chains.pair(situation, today)
    if found is None:
        return None
    database, newer, older = found
    is_long = newer.period and (newer.period.end - newer.period.start).days > 31
    by = newer.dimension or dimensions.of_time("year" if is_long else "month")
    return _Pair(database=database, requests=(newer, older), by=by)


def _places(situation: Situation, today: date) -> _Pair | None:
    """The same figure for two places of one kind."""
    question = situation.question
    named = filters.places(question.plain)
    found = asked(situation, today) if cues.COMPARED.search(question.plain) else None
    by = found[1].dimension if found else None
    if found is None or by is None or by.column is None or len(named) != 2:
        return None
    database, request = found
    both = tuple(_at_place(request, by.column, place) for _, place in named)
    return None if request.limit else _Pair(database=database, requests=both, by=by)


def _at_place(request: Request, column: Column, names: tuple[str, ...]) -> Request:
    """A request that is grouped by places, for one of them alone."""
    others = (one for one in request.filters if not one.sql.startswith(f"{column} IN "))
    place = filters.at_place(column, [names])
    return replace(request, dimension=None, filters=(*others, place))


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


def _between(
    calculator: Offer | None, names: Sequence[str], question: Question
) -> list[Fields]:
    if calculator is None:
        return []
    after, before = map(steps.figure, names)
    sums = {
        naming.DIFFERENCE: f"{after} - {before}",
        naming.CHANGE: f"({after} - {before}) / {before} * 100",
    }
    return [
        steps.sum(calculator, sum, question.say(*called), names, question)
        for called, sum in sums.items()
    ]


def _reasons(pair: _Pair, names: Sequence[str], brief: Brief) -> list[Fields]:
    """What may explain a difference: what the figures are made of, and the documents."""
    made = _makeup(pair, names)
    written = [_made_of(pair.database, made, names, brief.question)] if made else []
    return written + reasons.lookup(pair.requests[0], pair.by, brief)


def _made_of(
    database: Offer, made: Request, names: Sequence[str], question: Question
) -> Fields:
    return {
        **steps.call(database, made.sql, question.say(*naming.MAKEUP)),
        "depends_on": list(names),
        "expected_outcome": question.say("At least 2 rows.", "2件以上の行。"),
    }


def _makeup(pair: _Pair, names: Sequence[str]) -> Request | None:
    """How many rows each of two sums has, and how large they are on average."""
    first, second = pair.requests
    summed = re.fullmatch(r"SUM\((.+)\)", first.measure.sql)
    if summed is None or any("${" in condition.sql for condition in first.filters):
        return None
    counted = measures.count(first.base)
    measure = replace(
        first.measure,
        kind="average",
        sql=f"{counted.sql} AS {counted.alias}, AVG({summed[1]})",
        english="average amount",
    )
    grouped = replace(first, measure=measure, dimension=pair.by, limit=None)
    if first.dimension is None and pair.by.column:
        either = f"({first.filters[-1].sql} OR {second.filters[-1].sql})"
        return _held_to(grouped, first.filters[:-1], either)
    values = [steps.label(n) for n in names] if first.dimension else _spans(pair)
    if pair.by.unit is None or not values or first.filters != second.filters:
        return None
    units = ", ".join(f"'{value}'" for value in values)
    at_any_time = replace(grouped, period=None)
    return _held_to(at_any_time, first.filters, f"{grouped.grouping} IN ({units})")


def _spans(pair: _Pair) -> list[str]:
    """The two periods as the database writes them; none where they are not whole units."""
    is_year = pair.by.unit == "year"
    spans = [request.period for request in pair.requests if request.period]
    begins = [span.start for span in spans]
    whole = [
        periods.year(d.year) if is_year else periods.month(d.year, d.month) for d in begins
    ]
    return [d.isoformat()[: 4 if is_year else 7] for d in begins] if spans == whole else []


def _held_to(request: Request, conditions: Sequence[Filter], sql: str) -> Request:
    column = request.dimension.column if request.dimension else None
    tables = (column.table,) if column else ()
    last = Filter(sql=sql, tables=tables, english="", japanese="")
    return replace(request, filters=(*conditions, last))


def _comparing(names: Sequence[str], question: Question, *, explains: bool) -> str:
    first, second = names
    why = " and explain the difference" if explains else ""
    end = "比べ、違いの理由を調べます" if explains else "比べます"
    return question.say(
        f"Compare the {first} with the {second}{why}.", f"{first}と{second}を{end}。"
    )
