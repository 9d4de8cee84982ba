"""The steps of a plan as its form wants them, in the language of the question."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from . import naming
from .history import Offer, Question
from .naming import of_request
from .request import Request

Fields = dict[str, Any]
Writing = Callable[[str, str, Sequence[str], Question], Fields]

_REQUESTS = {"to": "Please {}.", "for": "Please give us {}.", "about": "What about {}?"}


def query(database: Offer, request: Request, question: Question, *, compares: bool) -> Fields:
    """Rows out of the database; nothing can be compared with a figure of 0."""
    name = of_request(request, question)
    if compares:
        expected = question.say(f"A figure above 0: {name}.", f"0より大きい数値: {name}。")
    elif request.is_one_value:
        expected = question.say(f"A figure: {name}.", f"数値: {name}。")
    else:
        expected = question.say(f"At least one row: {name}.", f"1件以上の行: {name}。")
    return call(database, plain(request.sql), name) | {"expected_outcome": expected}


def total(database: Offer, request: Request, question: Question) -> Fields:
    """The rows of a request added up and counted, for a sum to refer to."""
    added = f"SUM({request.measure.alias}) AS total, COUNT(*) AS number"
    sql = f"SELECT {added}\nFROM (\n{request.sql}\n) AS found"
    name = question.say(*naming.TOTAL) + of_request(request, question)
    return call(database, plain(sql), name) | {
        "expected_outcome": question.say("A figure.", "数値。")
    }


def sum(
    calculator: Offer, expression: str, name: str, needs: Sequence[str], question: Question
) -> Fields:
    expected = question.say("A figure.", "数値。")
    waits = {"depends_on": list(needs)} if needs else {}
    return call(calculator, expression, name) | {"expected_outcome": expected} | waits


def lookup(search: Offer, query: str, question: Question) -> Fields:
    about = naming.short(query)
    expected = question.say(f"At least one passage: {about}.", f"1件以上の箇所: {about}。")
    step = call(search, plain(query), question.say(*naming.LOOKUP) + about)
    return step | {"expected_outcome": expected}


def reason(search: Offer, query: str, question: Question) -> Fields:
    """What would be good to know; nothing is expected, so nobody checks."""
    return call(search, plain(query), question.say(*naming.REASON) + query)


def errand(colleague: Offer, task: str, question: Question) -> Fields:
    agent, about = colleague.agent, naming.short(task)
    name = question.say(f"ask {agent}: {about}", f"{agent}に聞く: {about}")
    return {"name": name, "agent": agent, "arguments": {"task": plain(task)}, "parallel": True}


def enquiry(who: str, what: str, needs: Sequence[str], question: Question) -> Fields:
    """What only a person can say, after everything that they should see before."""
    them = re.sub("^(?:my|our) ", "your ", who, flags=re.IGNORECASE)
    return {
        "name": question.say(f"ask {them}", f"{who}に聞く"),
        "ask": question.say(
            f"Please ask {them} {plain(what)}, and write down the answer.",
            f"{who}に「{plain(what)}」を確認し、回答を書いてください。",
        ),
        "depends_on": list(needs),
    }


def consultation(role: str, what: str, needs: Sequence[str], question: Question) -> Fields:
    """What whoever has a role can say; they read it themselves."""
    verb, _, rest = plain(what).partition(" ")
    english = _REQUESTS.get(verb.lower(), f"Please say {verb.lower()} {{}}.")
    return {
        "name": question.say(f"ask {role}", f"{role}に聞く"),
        "role": role,
        "arguments": {
            "task": question.say(
                english.replace("{}", rest), f"{plain(what)}、教えてください。"
            )
        },
        "depends_on": list(needs),
    }


def plain(text: str) -> str:
    """What somebody said, where only this module may refer to other steps."""
    return text.replace("${", "$${")


def call(tool: Offer, text: str, name: str) -> Fields:
    return {"name": name, "tool": tool.name, "arguments": tool.fill(text), "parallel": True}


def figure(name: str, column: int = -1) -> str:
    """A reference to what a step has measured: the last thing in its first row."""
    return f"(${{round({_cell(name, column)}, 2)}})"


def label(name: str) -> str:
    """A reference to what came first in the rows of a step."""
    return f"${{{_cell(name, 0)}}}"


def _cell(name: str, column: int) -> str:
    return f"steps[{json.dumps(name, ensure_ascii=False)}].output.rows[0][{column}]"
