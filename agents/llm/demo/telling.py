"""The answer after a plan was carried out: what its steps gave, read together."""

from . import colleagues, differing, help, naming, passages, rows
from .differing import Difference
from .history import Question
from .report import Report, Result, capital, cell


def answer(report: Report) -> str:
    """Everything that was found, in sentences."""
    if not report.results:
        is_greeted = report.description in naming.AT_ONCE
        return help.planning(report.question) if is_greeted else report.description
    compared = differing.find(report)
    used = compared.used if compared else []
    others = [r for r in report.results if r not in used and not _is_between(r)]
    parts = [
        naming.what_was_given_up(report.description),
        *(_difference(compared) if compared else ()),
        *(_told(result, report.question) for result in others),
        differing.reason(report),
    ]
    return "\n\n".join(part for part in parts if part)


def _is_between(result: Result) -> bool:
    """Whether it is told apart, or was only there for another step to work with."""
    return result.is_done and result.name.startswith((*naming.TOTAL, *naming.REASON))


def _difference(found: Difference) -> list[str]:
    space = found.question.say(" ", "")
    both = space.join(_found(result, found.question) for result in (found.first, found.second))
    verdict = space.join(part for part in (found.verdict(), found.caution()) if part)
    return [both, verdict, found.makeup()]


def _told(result: Result, question: Question) -> str:
    if not result.is_done:
        return question.say(
            f"“{result.name}” was not done: {result.text}",
            f"「{result.name}」は行われませんでした: {result.text}",
        )
    if query := naming.rest(result.name, naming.LOOKUP):
        return passages.answer(result.text, Question(text=query, voice=question.text))
    if expression := naming.rest(result.name, naming.SUM):
        return rows.result(expression, result.text, question, places=2)
    if who := naming.whom(result.name):
        is_person = ": " not in result.name
        return colleagues.said(capital(who) if is_person else who, result.text, question)
    return _found(result, question)


def _found(result: Result, question: Question) -> str:
    """What the database gave, with the name of the step for what it is."""
    name, table = result.name, result.table
    head = question.say(f"The {name}", name)
    if table is None or table.is_empty:
        nothing = question.say("nothing was found.", "見つかりませんでした。")
        return f"{head}: {nothing if table else result.text}"
    if len(table.rows) > 1:
        return f"{head}:\n\n{rows.table(table, question)}"
    if len(table.columns) > 2:
        return f"{head}: {rows.single(table, question)}"
    *first, value = table.rows[0]
    shown = rows.number(round(value, 2)) if rows.is_number(value) else rows.shown(value)
    if not first:
        return question.say(f"{head} is **{shown}**.", f"{head}は **{shown}** です。")
    label = cell(table.columns[0], first[0], question)
    return question.say(
        f"{head} is **{label}**, with **{shown}**.",
        f"{head}は **{label}**（**{shown}**）です。",
    )
