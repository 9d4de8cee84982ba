"""The demo model for a planning agent: writes a plan, checks results, answers."""

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from agents.engine.loop import HANDOFF_PREFIX, Handoff
from agents.engine.material import PASSAGE_HEAD
from agents.engine.plans import (
    INVALID_PLAN,
    RESULTS_PROMPT,
    STEP_FAILED,
    STEP_UNEXPECTED,
    TRIED_PLAN,
)

from . import conversation, plans, results
from .conversation import Finding, Message, Offer, Question, Situation, message_text
from .steps import REFERENCE, DemoPlan, DemoStep

_BRIEF = re.compile(
    r"(?:\A|\n\n)Question: (?P<question>.*?)"
    rf"(?P<past>\n\n(?:{re.escape(TRIED_PLAN.format(plan=''))}"
    rf"|{re.escape(INVALID_PLAN.format(why=''))}).*|)\Z",
    re.DOTALL,
)
_FAILED = re.compile(
    rf"({STEP_FAILED.fill(name='.+?', why='.+')})"
    rf"|^{re.escape(INVALID_PLAN.format(why=''))}(.+)",
    re.M,
)
_CHECK = re.compile(r"Step: .*?\nExpected: (?P<expected>.*?)\nResult:\n(?P<result>.*)", re.S)
_RESULTS = conversation.pattern(RESULTS_PROMPT)
_ASK = conversation.LIBRARY["words"]["ask_person"]
# Tools that a report no longer lists; the plan is found again with them.
_SHOP = Offer("database", "customers()\nproducts()\norders()")
_TOOLS = (Offer("calculator"), Offer("search"), _SHOP)


def write(
    messages: Sequence[Message], today: date, administrator: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Return a thought and the plan in its schema; `cancel` says why there is none."""
    system = "\n".join(
        message_text(message) for message in messages if message["role"] == "system"
    )
    brief = message_text(messages[-1]) if messages else ""
    question = brief
    past = ""
    questions = []
    if match := _BRIEF.search(brief):
        question = match["question"]
        past = match["past"]
        questions = re.findall(r"^user: (.+)$", brief[: match.start()], re.MULTILINE)
    agents = re.search(r"^Agents: (.+)$", system, re.MULTILINE)
    names = re.findall(r"(?:^|; )([^\s:;]+): Ask the agent \1\.", agents[1]) if agents else []
    handoffs = [Offer(f"{HANDOFF_PREFIX}{name}", "", Handoff.parameters) for name in names]

    def works(name: str) -> bool:
        unexpected = STEP_UNEXPECTED.fill(name=name, expected="", why="").partition("(")[0]
        return unexpected not in past

    situation = Situation(
        question=Question(question[: conversation.MAX_QUESTION]),
        earlier=Question(questions[-1]) if questions else None,
        tools=(*conversation.listed_tools(system, "arguments"), *handoffs),
        today=today,
        is_planner=True,
        works=works,
        administrator=administrator,
    )
    listed = re.search(r"^Roles: (.+)$", system, re.MULTILINE)
    roles = listed[1].split(", ") if listed else []
    # The person asked is one of the user's own, or has a role.
    person = "|".join(["(?:my|our|the) [a-z]+(?: [a-z]+)?", *map(re.escape, roles)])
    request = re.search(_ASK.replace("WHO", person), question, re.IGNORECASE)
    task = situation
    if request:
        task = situation.about(question[: request.start()].strip(" 、。,;"))
    plan = plans.find(task) if task.question.text else DemoPlan(lambda _: "")
    failed = _FAILED.search(past)
    plan_data = _plan_data(plan, situation, (failed[1] or failed[2]) if failed else "")
    if request and not plan_data.get("cancel"):
        steps = plan_data["steps"]
        steps.append(_step_for_person(request, steps, situation.question, roles))
    return situation.question.say("think_replan" if past else "think_plan"), plan_data


def _step_for_person(
    request: re.Match[str], steps: list[Any], question: Question, roles: list[str]
) -> Any:
    """Write the step that asks a person or a role, after all others."""
    person = request["who"] or request["who_ja"]
    task = request["what"] or request["what_ja"]
    names = {
        "who": re.sub("^(?:my|our) ", "your ", person),
        "what": task.replace("${", "$${"),
    }
    step = {"name": question.say("ask_name", **names), "depends_on": [s["name"] for s in steps]}
    if role := next((role for role in roles if role.lower() == person.lower()), ""):
        return {**step, "role": role, "arguments": {"task": question.say("ask_role", **names)}}
    return {**step, "ask": question.say("ask_text", **names)}


def _plan_data(plan: DemoPlan | None, situation: Situation, why: str) -> dict[str, Any]:
    say = situation.question.say
    if plan and plan.lost and not plan.steps:
        why = why or say("lost", lost=", ".join(plan.lost))
    if why or plan is None:
        # The reason of a run's end is plain text, so a link becomes its text.
        why = why or re.sub(r"\[(.+?)\]\(.+?\)", r"\1", results.fallback(situation))
        return {"description": say("cannot"), "cancel": why, "steps": []}
    if not plan.steps:
        return {"description": plan.answer([]), "steps": []}
    note = _replacement_note(plan, situation)
    return {
        "description": note or say("find_out", text=situation.question.text),
        "steps": [_step_data(step, plan.steps) for step in plan.steps],
    }


def _replacement_note(plan: DemoPlan, situation: Situation) -> str:
    if not plan.lost:
        return ""
    lost = ", ".join(plan.lost)
    return situation.question.say("instead", lost=lost, instead=", ".join(plan.instead))


def _step_data(step: DemoStep, steps: Sequence[DemoStep]) -> dict[str, Any]:
    """Write a step with references to earlier results."""

    def reference(match: re.Match[str]) -> str:
        earlier = steps[int(match[1])]
        rows = f"steps[{json.dumps(earlier.name, ensure_ascii=False)}].output.rows"
        if match[2] == "label":
            return f"${{{rows}[0][0]}}"
        limit = re.search(r"LIMIT (\d+)$", earlier.text)
        count = int(limit[1]) if match[2] == "sum" and limit else 1
        figures = [f"${{round({rows}[{index}][-1], 2)}}" for index in range(count)]
        return f"({' + '.join(figures)})"

    needs = dict.fromkeys(steps[int(index)].name for index, _ in REFERENCE.findall(step.text))
    text = step.text.replace("${", "$${")  # a user's text is not a reference
    agent = step.tool.agent
    return {
        "name": step.name,
        **({"agent": agent} if agent else {"tool": step.tool.name}),
        "arguments": {step.tool.argument: REFERENCE.sub(reference, text)},
        "parallel": True,
        **({"depends_on": list(needs)} if needs else {}),
        **({"expected_outcome": step.expected} if step.expected else {}),
    }


def answer(messages: Sequence[Message], today: date) -> Situation | None:
    """Return the situation with its answer after a plan was executed, if one was."""
    last = message_text(messages[-1]) if messages and messages[-1]["role"] == "user" else ""
    report = _RESULTS.search(last)
    if report is None:
        return None
    question_text = last[: report.start()].strip()
    history = [{"role": "user", "content": question_text}] if question_text else []
    situation = conversation.read([*messages[:-1], *history], None)
    fields = re.split(r"^## (.+) \((\w+)\)$", report["results"], flags=re.MULTILINE)[1:]
    outcomes = list(zip(fields[::3], fields[1::3], map(str.strip, fields[2::3]), strict=True))
    findings_by_name = {
        name: Finding(name, name, text) for name, s, text in outcomes if s == "done"
    }
    again = situation._replace(tools=_TOOLS, today=today, is_planner=True)
    plan = plans.find(again._replace(works=findings_by_name.__contains__)) if outcomes else None
    used = [step.name for step in plan.steps] if plan else []
    alone = f"{report['description']}\n\n{report['results']}".removesuffix("\n\n—")
    sections = [] if outcomes else [alone]
    question = situation.question
    if plan and used and all(name in findings_by_name for name in used):
        # A calculation is displayed with the names it refers to.
        findings = [
            findings_by_name[name]._replace(input=re.split(": |：", name)[-1]) for name in used
        ]
        sections = [_replacement_note(plan, situation), plan.answer(findings)]
        outcomes = [outcome for outcome in outcomes if outcome[0] not in used]
    for name, _, text in outcomes:
        if person := re.fullmatch("ask ([^:]+)|([^:：]+)に聞く", name):
            says = question.say("says", agent=person[1] or person[2], text=text)
            sections.append(says[:1].upper() + says[1:])
        else:
            formatted = results.format_finding(Finding(name, name, text), question)
            sections.append(f"{name}:\n\n{formatted}")
    answer_text = "\n\n".join(filter(None, sections))
    return situation._replace(findings=tuple(findings_by_name.values()), answer=answer_text)


def check(messages: Sequence[Message]) -> dict[str, Any]:
    """Judge a result by what is visible of it."""
    match = _CHECK.match(message_text(messages[-1]) if messages else "")
    expected = match["expected"] if match else ""
    result = match["result"].strip() if match else ""
    say = Question(expected).say
    rows = results.parse(result)
    above = re.search(r"above (\d+)|(\d+)より大きい", expected)
    min_rows = re.search(r"[Aa]t least (\d{1,6}) rows?|(\d{1,6})行以上", expected)
    figures = rows.values if rows else [float(results.figure(result) or "nan")]
    too_small = above and not any(v > float(above[1] or above[2]) for v in figures)
    too_few = rows and min_rows and len(rows.rows) < int(min_rows[1] or min_rows[2])
    needs_passage = re.search("passage|文書", expected)
    checks = (
        (result.startswith("Error"), result),
        (not result or (rows and rows.is_empty), say("empty")),
        (too_small, say("no_figure")),
        (too_few, say("few_rows", count=len(rows.rows) if rows else 0)),
        (needs_passage and not PASSAGE_HEAD.search(result), say("no_passage")),
    )
    for is_wrong, reason in checks:
        if is_wrong:
            return {"is_met": False, "reason": reason, "feedback": say("try_other")}
    return {"is_met": True, "reason": say("as_expected"), "feedback": ""}
