"""Plans: the calls to make in order, and the answer that they add up to."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from . import reading, rows
from . import schema as schemas
from .history import Finding, Offer, Question, Situation
from .request import Request

Findings = Sequence[Finding]
Writing = Callable[[Findings], str | None]

_WHEN = re.compile(r"\bwhen\b|(?:のは)?いつ", re.I)
_AT_ITS_MOST = re.compile(
    r"\bwhen\b.*\b(?:highest|lowest|most|least|best|worst)\b|いつ.*(?:最も|一番|最高|最低)"
    r"|(?:最も|一番|最高|最低).*いつ",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One call: `write` gives its text, or None where there is nothing to go on.

    `request` is what a database is asked for.
    """

    tool: Offer
    thought: str
    write: Writing
    request: Request | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`failed` is the answer where a stage failed after some that did not."""

    stages: tuple[Stage, ...] = ()
    answer: Callable[[Findings], str]
    failed: Callable[[Findings, Finding], str] | None = None


def one_after_another(parts: Sequence[Plan]) -> Plan:
    ends = [sum(len(part.stages) for part in parts[: at + 1]) for at in range(len(parts))]
    begins = [end - len(part.stages) for end, part in zip(ends, parts, strict=True)]
    stages = [
        replace(stage, write=_from(begin, stage.write))
        for begin, part in zip(begins, parts, strict=True)
        for stage in part.stages
    ]

    def answer(findings: Findings) -> str:
        told = zip(begins, ends, parts, strict=True)
        return "\n\n".join(p.answer(findings[a:b]) for a, b, p in told if findings[a:b])

    return Plan(stages=tuple(stages), answer=answer)


def _from(begin: int, write: Writing) -> Writing:
    return lambda findings: write(findings[begin:])


def asked(situation: Situation, today: date) -> tuple[Offer, Request] | None:
    """The database and what the question asks of it."""
    database = situation.tool("database", "sql")
    schema = schemas.read(database.description) if database else None
    question = _by_month(situation.question)
    request = reading.read(question, schema, today) if schema else None
    return (database, request) if database and request else None


def _by_month(question: Question) -> Question:
    """When something was at its most is a question for the month."""
    if not _AT_ITS_MOST.search(question.text):
        return question
    return Question(text=_WHEN.sub(question.say("which month", "月は"), question.text))


def query(
    database: Offer, request: Request, question: Question, *, again: bool = False
) -> Stage:
    subject = rows.subject(request, question)
    first = question.say(
        f"The data is in the database, so I ask it for {subject}.",
        f"データベースにあるデータなので、{subject}を問い合わせます。",
    )
    second = question.say(
        f"I also need {subject}, so I ask the database again.",
        f"{subject}も必要なので、もう一度データベースに問い合わせます。",
    )
    thought = second if again else first
    return Stage(tool=database, thought=thought, write=lambda _: request.sql, request=request)


def calculation(calculator: Offer, question: Question, write: Writing) -> Stage:
    thought = question.say(
        "Now I have the numbers; the calculator works out the rest.",
        "数字がそろったので、残りの計算は電卓ツールに任せます。",
    )
    return Stage(tool=calculator, thought=thought, write=write)
