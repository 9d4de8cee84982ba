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
_AROUND_TASK = ' 　\n「」『』“”"'
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
    clauses = [text.strip() for text in _CLAUSES.split(situation.question.text)]
    clauses = [clause for clause in clauses if clause]
    if not 2 <= len(clauses) <= 4:
        return None
    plans = [plan for clause in clauses if (plan := _single(situation.about(clause)))]
    if len(plans) < len(clauses):
        return None
    steps = [step for plan in plans for step in plan.steps]
    # Two searches would number their sources twice, so one covers the whole question.
    is_mixed = sum(step.tool.argument == "query" for step in steps) > 1
    is_mixed |= len({step.name for step in steps}) < len(steps)
    if is_mixed or REFERENCE.search(str(steps)):
        return None

    def answer(findings: Findings) -> str:
        remaining = iter(findings)
        answers = []
        for plan in plans:
            if plan_findings := list(islice(remaining, len(plan.steps))):
                answers.append(plan.answer(plan_findings))
        return "\n\n".join(answers)

    lost = [name for plan in plans for name in plan.lost]
    instead = [name for plan in plans for name in plan.instead]
    return DemoPlan(answer, tuple(steps), tuple(lost), tuple(instead))


def _handoff(situation: Situation) -> DemoPlan | None:
    """Hand off to the agents named in the question."""
    agents = situation.agents
    if not agents:
        return None
    any_name = "|".join(sorted(map(re.escape, agents), key=len, reverse=True))
    names = rf"(?P<who>(?:{any_name})(?:(?:,? and |, |、|と)(?:{any_name}))*)"
    text = situation.question.text.strip()
    for template in _WORDS["handoff"]:
        if match := re.fullmatch(template.replace("WHO", names), text, re.I | re.S):
            spelled = {name.lower(): name for name in agents}
            mentioned = re.findall(any_name, match["who"], re.IGNORECASE)
            agent_names = dict.fromkeys(spelled[mention.lower()] for mention in mentioned)
            return _hand_off(situation, list(agent_names), match["task"].strip(_AROUND_TASK))
    return None


def _delegation(situation: Situation) -> DemoPlan | None:
    """Hand off a question that only another agent has tools for."""
    agents = situation.agents
    text = situation.question.plain
    tools = (("calculator", "expression"), ("database", "sql"), ("search", "query"))
    if not agents or any(situation.tool(*tool) for tool in tools):
        return None
    if arithmetic.find(text) is None and not _QUESTION.search(text):
        return None
    name = GENERALIST if GENERALIST in agents else next(iter(agents))
    return _hand_off(situation, [name], situation.question.text.strip())


def _hand_off(situation: Situation, names: Sequence[str], task: str) -> DemoPlan:
    """Have each of these agents do the task, and say what they answer."""
    agents = situation.agents
    question = situation.question
    steps = []
    for name in names:
        title = question.say(
            "handoff_name", agent=name, task=shorten_line(task, MAX_NAME_CHARS)
        )
        thought = question.say("think_handoff", agent=name)
        steps.append(DemoStep(title, agents[name], task, thought))

    def phrase(name: str, finding: Finding) -> str:
        unfinished = UNFINISHED.fill(agent=name, reason="")
        if finding.is_error and unfinished not in finding.text:
            return results.failure(finding, question)
        text = finding.text.removeprefix(f"Error: {unfinished}")
        key = "unfinished" if finding.is_error else "says_lines" if "\n" in text else "says"
        return question.say(key, agent=name, text=text)

    return DemoPlan(lambda findings: "\n\n".join(map(phrase, names, findings)), tuple(steps))


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
        first, *runners_up = ([results.label(c, question) for c in row] for row in ranked)
        answer = question.say("highest", of=rows.columns[-1], name=first[0], value=first[1])
        if runners_up:
            listed = [f"**{name}** ({value})" for name, value in runners_up[:3]]
            answer += question.say("others", others=question.say("comma").join(listed))
    return DemoPlan(lambda _: answer)


def _sum(situation: Situation) -> DemoPlan | None:
    """Let the calculator evaluate an expression; the model never calculates itself."""
    question = situation.question
    formula = arithmetic.find(question.plain)
    if formula is None or formula.is_open or situation.calculator is None:
        return None
    name = question.say("sum_name", name=formula.expression)
    step = calculation(situation, formula.expression, name, "sum")
    return DemoPlan(lambda findings: results.result(findings[0], question), (step,))


def _chain(situation: Situation) -> DemoPlan | None:
    """Calculate with a number from the database: `10% of the revenue`."""
    question = situation.question
    formula = arithmetic.find(question.plain)
    if formula is None or not formula.is_open or situation.calculator is None:
        return None
    first = _intent(situation.about(formula.context))
    if first is None or len(first.steps) != 1 or first.lost:
        return first if first and first.lost else None
    title = formula.expression.replace(arithmetic.THAT, first.steps[0].name)
    expression = formula.expression.replace(arithmetic.THAT, "⟦0⟧")
    step = calculation(situation, expression, question.say("sum_name", name=title))

    def answer(findings: Findings) -> str:
        sums = [results.result(finding, question, places=2) for finding in findings[1:]]
        return question.say("space").join([first.answer(findings[:1]), *sums])

    return first._replace(steps=(*first.steps, step), answer=answer)


def _follow_up(situation: Situation) -> DemoPlan | None:
    """Answer `And last year?` with the previous question for another period."""
    earlier = situation.earlier
    text = situation.question.text.strip()
    if earlier is None or not _FOLLOW_UP.search(text):
        return None
    previous_text = earlier.text
    if intents.SLOTS["period"].search(text):
        previous_text = intents.SLOTS["period"].sub(" ", previous_text)
    return _intent(situation.about(f"{previous_text} {_FOLLOW_UP.sub('', text)}"))


def _lookup(situation: Situation) -> DemoPlan | None:
    """Search the documents for any other question."""
    question = situation.question
    tool = situation.tool("search", "query")
    if tool is None or not _QUESTION.search(question.plain):
        return None
    step = search(situation, tool, passages.search_query(question.text))
    fallback = results.fallback(situation)
    if not situation.works(step.name):
        return DemoPlan(lambda _: fallback, lost=(step.text,))
    return DemoPlan(
        lambda findings: passages.quote(findings[0].text, question) or fallback, (step,)
    )


def _intent(situation: Situation) -> DemoPlan | None:
    """Fill the recorded plan of the most similar intent that fits the database."""
    database = situation.tool("database", "sql")
    question = situation.question
    if database is None:
        return None
    explains = situation.is_planner and _WHY.search(question.text) is not None
    statement = question.part(_WHY.sub(" ", question.text)) if explains else question
    slots = intents.read(statement, situation.today)
    if explains and not (slots.periods or slots.has("top", "bottom", "compare")):
        return None  # "Why do sales differ?" is a question for the documents
    shop = ShopPlans(situation, slots, database, explains)
    return next((plan for name in intents.matches(slots) if (plan := shop.plan(name))), None)
