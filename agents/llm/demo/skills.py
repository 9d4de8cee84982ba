"""What the demo model can do. A skill reads a question and makes a plan for it, or passes.

A plan is the calls to make in order, each written from what the earlier ones found, and the
answer that they add up to. Nothing is remembered between turns: the plan is made anew from
the conversation, and what the tools have answered says how far it has come.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from . import arithmetic, given, help, passages, rows
from . import measure as measures
from . import period as periods
from . import schema as schemas
from .chains import averaged, chained, compared, share
from .colleagues import handed_on
from .history import Question, Situation
from .plan import Findings, Plan, Stage, asked, one_after_another, query
from .reading import LISTED

Skill = Callable[[Situation, date], Plan | None]

_CLAUSES = re.compile(r"[?？。;；\n]+|,? and (?=how|what|which|who|show|list)", re.IGNORECASE)
_TABLES = re.compile(
    r"\b(?:what|which|list|show)\b.*\b(?:tables|schema|data do you have)\b"
    r"|(?:どんな|何の)(?:表|テーブル|データ)"
    r"|(?:表|テーブル)(?:の一覧|は何)"
)
_ASKS = re.compile(
    r"[?？]|^(?:how|what|why|when|where|which|who|can|could|does|do|is|are|explain|tell|describe"
    r"|find|search|look up|show)\b"
    r"|とは|方法|教えて|説明|ですか|ますか|なぜ|どう|何|いつ|どこ|調べ|検索|には$"
)
_FOLLOWS = re.compile(
    r"^(?:and|what about|how about|then|also|now)\b|^(?:では|じゃあ|それでは|それで|次に)"
)


def plan(situation: Situation, today: date) -> Plan | None:
    """The plan of the first skill that has one; without tools, of those that need none."""
    skills = SKILLS if situation.tools else _UNAIDED
    return next((found for skill in skills if (found := skill(situation, today))), None)


def greeted(situation: Situation, today: date) -> Plan | None:
    text = situation.question.plain.strip()
    if text and not help.GREETING.fullmatch(text):
        return None
    return Plan(answer=lambda _: help.introduction(situation))


def several(situation: Situation, today: date) -> Plan | None:
    """Two or three questions in one, each answered by its own skill."""
    clauses = [part.strip() for part in _CLAUSES.split(situation.question.text) if part.strip()]
    if not 2 <= len(clauses) <= 3:
        return None
    parts = [_alone(situation, clause, today) for clause in clauses]
    if any(part is None for part in parts) or sum(map(_searches, parts)) > 1:
        return None
    return one_after_another([part for part in parts if part])


def calculated(situation: Situation, today: date) -> Plan | None:
    """Arithmetic in figures or words. The calculator does it, never this model."""
    question, calculator = situation.question, situation.tool("calculator", "expression")
    sum = arithmetic.find(question.plain)
    if sum is None or sum.is_open or calculator is None:
        return None
    thought = question.say(
        "This is arithmetic, so I let the calculator work it out.",
        "これは計算なので、電卓ツールに任せます。",
    )
    return Plan(
        stages=(Stage(tool=calculator, thought=thought, write=lambda _: sum.expression),),
        answer=lambda found: rows.result(sum.expression, found[0].text, question),
    )


def listed_tables(situation: Situation, today: date) -> Plan | None:
    database = situation.tool("database", "sql")
    if database is None or not _TABLES.search(situation.question.plain):
        return None
    if schemas.read(database.description) is None:
        return None
    return Plan(answer=lambda _: help.tables(database.description, situation.question))


def listed(situation: Situation, today: date) -> Plan | None:
    """Rows, and where there may be more of them than are shown, how many there are."""
    question, found = situation.question, asked(situation, today)
    if found is None or not found[1].is_plain_list or found[1].limit != LISTED:
        return None
    database, request = found
    count = replace(request, measure=measures.count(request.base), limit=None)

    def shown(findings: Findings) -> rows.Rows | None:
        return rows.parse(findings[0].text)

    def write(findings: Findings) -> str | None:
        table = shown(findings)
        return count.sql if table and len(table.rows) == LISTED else None

    def answer(findings: Findings) -> str:
        counted = rows.parse(findings[1].text) if len(findings) > 1 else None
        total = int(counted.values[0]) if counted and counted.values else None
        return rows.answer(request, shown(findings), question, total)

    again = replace(query(database, count, question, again=True), write=write)
    return Plan(stages=(query(database, request, question), again), answer=answer)


def queried(situation: Situation, today: date) -> Plan | None:
    """One question to the database."""
    question, found = situation.question, asked(situation, today)
    if found is None:
        return None
    database, request = found
    return Plan(
        stages=(query(database, request, question),),
        answer=lambda f: rows.answer(request, rows.parse(f[0].text), question),
    )


def followed_up(situation: Situation, today: date) -> Plan | None:
    """`And last year?` is the question before, with something else in its place."""
    earlier, text = situation.earlier, situation.question.text
    if earlier is None or not _FOLLOWS.search(situation.question.plain.strip()):
        return None
    before = periods.remove(earlier.text) if periods.find(text.lower(), today) else earlier.text
    joined = Question(text=f"{before} {_FOLLOWS.sub('', text)}")
    return queried(replace(situation, question=joined, earlier=None), today)


def looked_up(situation: Situation, today: date) -> Plan | None:
    """Anything else that is a question is looked up in the documents."""
    question, search = situation.question, situation.tool("search")
    if search is None or not _ASKS.search(question.plain.strip()):
        return None
    thought = question.say(
        "This may be in the documents, so I search them and answer from what they say.",
        "文書に書かれていそうなので、検索して、その内容から答えます。",
    )
    return Plan(
        stages=(Stage(tool=search, thought=thought, write=lambda _: passages.query(question)),),
        answer=lambda found: passages.answer(found[0].text, question),
    )


SKILLS: tuple[Skill, ...] = (
    handed_on,
    given.told,
    greeted,
    chained,
    several,
    share,
    averaged,
    compared,
    calculated,
    listed_tables,
    listed,
    queried,
    followed_up,
    looked_up,
)
_UNAIDED: tuple[Skill, ...] = (given.told,)
_ALONE: tuple[Skill, ...] = (share, compared, calculated, queried, looked_up)


def _searches(plan: Plan | None) -> bool:
    """Two searches would number their sources twice; one for the whole question is better."""
    return plan is not None and any(stage.tool.name == "search" for stage in plan.stages)


def _alone(situation: Situation, clause: str, today: date) -> Plan | None:
    part = replace(situation, question=Question(text=clause), earlier=None)
    sum = arithmetic.find(part.question.plain)
    if sum and sum.is_open:
        return None
    return next((found for skill in _ALONE if (found := skill(part, today))), None)
