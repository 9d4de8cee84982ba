"""Recorded plans: the tool calls and the answer for each kind of question.

An agent that answers step by step makes the calls one after the other. A planning agent writes
the same steps as a plan, with references to earlier results.
"""

import re
from collections.abc import Sequence
from itertools import islice

from agents.engine.loop import UNFINISHED
from agents.engine.text import shorten_line

from . import arithmetic, intents, passages, results
from .conversation import LIBRARY, Finding, Question, Situation
from .shop_plans import ShopPlans
from .steps import (
    MAX_NAME_CHARS,
    REFERENCE,
    DemoPlan,
    DemoStep,
    Findings,
    calculation,
    search,
)

GENERALIST = "helper"  # the sample agent with every tool
_WORDS = LIBRARY["words"]
_CLAUSES, _FOLLOW_UP, _QUESTION, _WHY = (
    re.compile(_WORDS[name], re.IGNORECASE)
    for name in ("clauses", "follow_up", "question", "why")
)


def find(situation: Situation) -> DemoPlan | None:
    makers = (_handoff, _figures, _greeting, _chain, _clauses, _single, _delegation)
    return next((plan for make in makers if (plan := make(situation))), None)


def _single(situation: Situation) -> DemoPlan | None:
    makers = (_sum, _intent, _follow_up, _lookup)
    return next((plan for make in makers if (plan := make(situation))), None)


def _greeting(situation: Situation) -> DemoPlan | None:
    text = situation.question.plain
    if text and not intents.is_greeting(text):
        return None
    introduction = results.introduction(situation)
    return DemoPlan(lambda _: introduction)


def _clauses(situation: Situation) -> DemoPlan | None:
    """Answer several questions in one message, each on its own."""
    clauses = [part.strip() for part in _CLAUSES.split(situation.question.text) if part.strip()]
    found = [_single(situation.about(c)) for c in clauses] if 2 <= len(clauses) <= 4 else []
    plans = [plan for plan in found if plan]
    steps = [step for plan in plans for step in plan.steps]
    # Two searches would number their sources twice, so one covers the whole question.
    is_mixed = sum(step.tool.argument == "query" for step in steps) > 1
    is_mixed |= len({step.name for step in steps}) < len(steps)
    if not plans or len(plans) < len(found) or is_mixed or REFERENCE.search(str(steps)):
        return None

    def answer(findings: Findings) -> str:
        rest = iter(findings)
        parts = [(plan, list(islice(rest, len(plan.steps)))) for plan in plans]
        return "\n\n".join(plan.answer(found) for plan, found in parts if found)

    lost = [name for plan in plans for name in plan.lost]
    instead = [name for plan in plans for name in plan.instead]
    return DemoPlan(answer, tuple(steps), tuple(lost), tuple(instead))


def _handoff(situation: Situation) -> DemoPlan | None:
    """Hand off to the agents named in the question."""
    agents, question = situation.agents, situation.question
    one = "|".join(sorted(map(re.escape, agents), key=len, reverse=True))
    who = rf"(?P<who>(?:{one})(?:(?:,? and |, |、|と)(?:{one}))*)"
    wishes = [re.compile(wish.replace("WHO", who), re.I | re.S) for wish in _WORDS["handoff"]]
    matches = [wish.fullmatch(question.text.strip()) for wish in wishes if agents]
    if not (found := next(filter(None, matches), None)):
        return None
    spelled = {name.lower(): name for name in agents}
    agent_names = [
        spelled[name.lower()] for name in re.findall(one, found["who"], re.IGNORECASE)
    ]
    task = found["task"].strip(' 　\n「」『』“”"')
    return _hand_off(situation, list(dict.fromkeys(agent_names)), task)


def _delegation(situation: Situation) -> DemoPlan | None:
    """Hand off a question that only another agent has tools for."""
    agents, text = situation.agents, situation.question.plain
    tools = (("calculator", "expression"), ("database", "sql"), ("search", "query"))
    if not agents or any(situation.tool(*tool) for tool in tools):
        return None
    if arithmetic.find(text) is None and not _QUESTION.search(text):
        return None
    name = GENERALIST if GENERALIST in agents else next(iter(agents))
    return _hand_off(situation, [name], situation.question.text.strip())


def _hand_off(situation: Situation, names: Sequence[str], task: str) -> DemoPlan:
    """Have each of these agents do the task, and say what they answer."""
    agents, question = situation.agents, situation.question
    steps = []
    for name in names:
        title = question.say(
            "handoff_name", agent=name, task=shorten_line(task, MAX_NAME_CHARS)
        )
        thought = question.say("think_handoff", agent=name)
        steps.append(DemoStep(title, agents[name], task, thought))

    def phrase(name: str, finding: Finding) -> str:
        unfinished = UNFINISHED.format(agent=name, why="")
        if finding.is_error and unfinished not in finding.text:
            return results.failure(finding, question)
        text = finding.text.removeprefix(f"Error: {unfinished}")
        key = "unfinished" if finding.is_error else "says_lines" if "\n" in text else "says"
        return question.say(key, agent=name, text=text)

    return DemoPlan(lambda found: "\n\n".join(map(phrase, names, found)), tuple(steps))


def _figures(situation: Situation) -> DemoPlan | None:
    """Describe the rows in the question itself; no tool is needed."""
    wish = situation.question.text.partition("{")[0]
    rows = results.parse(situation.question.text)
    question = Question(wish)
    if rows is None or not wish.strip():
        return None
    answer = question.say("no_figures") if rows.is_empty else results.table(rows, question)
    if len(rows.columns) == 2 and 0 < len(rows.values) == len(rows.rows):
        ranked = sorted(rows.rows, key=lambda row: row[-1], reverse=True)
        (name, value), *rest = ([results.label(c, question) for c in row] for row in ranked)
        others = question.say("comma").join(f"**{name}** ({value})" for name, value in rest[:3])
        answer = question.say("highest", of=rows.columns[-1], name=name, value=value)
        answer += question.say("others", others=others) if others else ""
    return DemoPlan(lambda _: answer)


def _sum(situation: Situation) -> DemoPlan | None:
    """Let the calculator evaluate an expression; the model never calculates itself."""
    question, found = situation.question, arithmetic.find(situation.question.plain)
    if found is None or found.is_open or situation.calculator is None:
        return None
    name = question.say("sum_name", name=found.expression)
    step = calculation(situation, found.expression, name, "sum")
    return DemoPlan(lambda found: results.result(found[0], question), (step,))


def _chain(situation: Situation) -> DemoPlan | None:
    """Calculate with a number from the database: `10% of the revenue`."""
    question, found = situation.question, arithmetic.find(situation.question.plain)
    if found is None or not found.is_open or situation.calculator is None:
        return None
    first = _intent(situation.about(found.rest))
    if first is None or len(first.steps) != 1 or first.lost:
        return first if first and first.lost else None
    that, title = arithmetic.THAT, first.steps[0].name
    name = question.say("sum_name", name=found.expression.replace(that, title))
    step = calculation(situation, found.expression.replace(that, "⟦0⟧"), name)

    def answer(findings: Findings) -> str:
        rest = [results.result(finding, question, places=2) for finding in findings[1:]]
        return question.say("space").join([first.answer(findings[:1]), *rest])

    return first._replace(steps=(*first.steps, step), answer=answer)


def _follow_up(situation: Situation) -> DemoPlan | None:
    """Answer `And last year?` with the previous question for another period."""
    earlier, text = situation.earlier, situation.question.text.strip()
    if earlier is None or not _FOLLOW_UP.search(text):
        return None
    has_period = intents.SLOTS["period"].search(text)
    before = intents.SLOTS["period"].sub(" ", earlier.text) if has_period else earlier.text
    return _intent(situation.about(f"{before} {_FOLLOW_UP.sub('', text)}"))


def _lookup(situation: Situation) -> DemoPlan | None:
    """Search the documents for any other question."""
    question, tool = situation.question, situation.tool("search", "query")
    if tool is None or not _QUESTION.search(question.plain):
        return None
    step = search(situation, tool, passages.search_query(question.text))
    nothing = results.fallback(situation)
    if not situation.works(step.name):
        return DemoPlan(lambda _: nothing, lost=(step.text,))
    return DemoPlan(lambda found: passages.quote(found[0].text, question) or nothing, (step,))


def _intent(situation: Situation) -> DemoPlan | None:
    """Fill the recorded plan of the most similar intent that fits the database."""
    database = situation.tool("database", "sql")
    question = situation.question
    if database is None:
        return None
    explains = situation.is_planner and _WHY.search(question.text) is not None
    part = question.part(_WHY.sub(" ", question.text)) if explains else question
    slots = intents.read(part, situation.today)
    if explains and not (slots.periods or slots.has("top", "bottom", "compare")):
        return None  # "Why do sales differ?" is a question for the documents
    shop = ShopPlans(situation, slots, database, explains)
    return next((plan for name in intents.matches(slots) if (plan := shop.plan(name))), None)
