"""Skills of several steps: numbers out of the database, and then a calculation with them."""

import re
import unicodedata
from dataclasses import replace
from datetime import date

from . import arithmetic, rows
from . import period as periods
from .cues import AVERAGE, COMPARED, MONEY, SHARE
from .history import Finding, Offer, Question, Situation
from .plan import Findings, Plan, asked, calculation, query
from .request import Request


def share(situation: Situation, today: date) -> Plan | None:
    """What part of a whole something made: two queries and a division."""
    question, calculator = situation.question, situation.tool("calculator", "expression")
    found = asked(situation, today) if SHARE.search(question.plain) else None
    whole = _whole(found[1]) if found else None
    if found is None or whole is None or calculator is None:
        return None
    database, part = found

    def write(findings: Findings) -> str | None:
        top, total = _values(findings[0]), _values(findings[1])
        if not top or not total:
            return None
        sum_of = " + ".join(map(rows.operand, top))
        return f"{f'({sum_of})' if len(top) > 1 else sum_of} / {rows.operand(total[0])} * 100"

    return Plan(
        stages=(
            query(database, part, question),
            query(database, whole, question, again=True),
            calculation(calculator, question, write),
        ),
        answer=lambda findings: _share_answer(part, whole, findings, question),
    )


def compared(situation: Situation, today: date) -> Plan | None:
    """The same question for two periods, and the change between them."""
    question, calculator = situation.question, situation.tool("calculator", "expression")
    found = pair(situation, today)
    if found is None or calculator is None:
        return None
    database, newer, older = found

    def write(findings: Findings) -> str | None:
        new, old = _values(findings[0]), _values(findings[1])
        if not new or not old:
            return None
        after, before = rows.operand(new[0]), rows.operand(old[0])
        return f"({after} - {before}) / {before} * 100"

    return Plan(
        stages=(
            query(database, newer, question),
            query(database, older, question, again=True),
            calculation(calculator, question, write),
        ),
        answer=lambda findings: _comparison(newer, older, findings, question),
    )


def pair(situation: Situation, today: date) -> tuple[Offer, Request, Request] | None:
    """The database, and the same request for the newer and the older of two periods."""
    found = asked(situation, today)
    spoken = _two_periods(situation.question, today)
    if found is None or spoken is None or not _is_single(found[1]):
        return None
    database, request = found
    older, newer = (replace(request, period=period) for period in spoken)
    return database, newer, older


def averaged(situation: Situation, today: date) -> Plan | None:
    """The average month: what each one made, and then their mean."""
    question, calculator = situation.question, situation.tool("calculator", "expression")
    text = question.plain
    if calculator is None or not (AVERAGE.search(text) and MONEY.search(text)):
        return None
    summed = Question(text=AVERAGE.sub(" ", re.sub("(?<=[月年日])平均", "別", text)))
    found = asked(replace(situation, question=summed), today)
    if found is None or not (found[1].dimension and found[1].dimension.unit):
        return None
    database, request = found

    def write(findings: Findings) -> str | None:
        values = _values(findings[0])
        terms = " + ".join(map(rows.operand, values))
        return f"({terms}) / {len(values)}" if values else None

    def answer(findings: Findings) -> str:
        told = rows.answer(request, rows.parse(findings[0].text), question)
        mean = [rows.mean(request, finding.text, question) for finding in findings[1:]]
        return "\n\n".join([*mean, told])

    stages = (query(database, request, question), calculation(calculator, question, write))
    return Plan(stages=stages, answer=answer)


def chained(situation: Situation, today: date) -> Plan | None:
    """A number out of the database, and then something done to it."""
    question, calculator = situation.question, situation.tool("calculator", "expression")
    text = unicodedata.normalize("NFKC", question.text)
    sum = arithmetic.find(text.lower())
    if sum is None or not sum.is_open or calculator is None:
        return None
    rest = Question(text=f"{text[: sum.start]} {text[sum.end :]}".strip())
    found = asked(replace(situation, question=rest), today)
    if found is None or not _is_single_value(found[1]):
        return None
    database, request = found

    def write(findings: Findings) -> str | None:
        values = _values(findings[0])
        return sum.close(rows.operand(values[0])) if values else None

    def answer(findings: Findings) -> str:
        first = rows.answer(request, rows.parse(findings[0].text), question)
        last = findings[1:2]
        told = [rows.result(f.input, f.text, question, places=2) for f in last]
        return question.say(" ", "").join([first, *told])

    stages = (query(database, request, question), calculation(calculator, question, write))
    return Plan(stages=stages, answer=answer)


def _values(finding: Finding) -> list[float]:
    found = rows.parse(finding.text)
    return found.values if found else []


def _whole(part: Request) -> Request | None:
    """The same request without what makes it a part."""
    if part.measure.kind not in ("sum", "count"):
        return None
    if part.dimension and part.limit:
        return replace(part, dimension=None, limit=None, ascending=False)
    if part.dimension is None and part.filters:
        return replace(part, filters=())
    return replace(part, period=None) if part.dimension is None and part.period else None


def _two_periods(
    question: Question, today: date
) -> tuple[periods.Period, periods.Period] | None:
    """The older and the newer of the periods to compare."""
    found = periods.find(question.plain, today)
    if not COMPARED.search(question.plain) and len(found) != 2:
        return None
    if len(found) < 2:
        named = found[0] if found else periods.year(today.year)
        found = [named, periods.year_before(named)]
    older, newer = sorted(found[:2], key=lambda period: period.start)
    return older, newer


def _is_single(request: Request) -> bool:
    return request.date is not None and _is_single_value(request)


def _is_single_value(request: Request) -> bool:
    """One number, alone or beside the name of what came first."""
    is_winner = request.dimension is not None and request.limit == 1
    return request.is_one_value or (is_winner and request.measure.kind != "rows")


def _share_answer(part: Request, whole: Request, findings: Findings, question: Question) -> str:
    first = rows.answer(part, rows.parse(findings[0].text), question)
    if len(findings) < 3:
        return first
    total = rows.answer(whole, rows.parse(findings[1].text), question)
    percent = rows.percentage(findings[2].text)
    last = question.say(f"That is a share of **{percent}**.", f"割合は **{percent}** です。")
    space = question.say(" ", "")
    border = "\n\n" if "\n" in first else space
    return f"{first}{border}{total}{space}{last}"


def _comparison(newer: Request, older: Request, findings: Findings, question: Question) -> str:
    told = [
        rows.answer(request, rows.parse(finding.text), question)
        for request, finding in zip((newer, older), findings, strict=False)
    ]
    space = question.say(" ", "")
    if len(findings) < 3:
        return space.join(told)
    change = rows.percentage(findings[2].text, signed=True)
    last = question.say(f"The change is **{change}**.", f"増減は **{change}** です。")
    return space.join([*told, last])
