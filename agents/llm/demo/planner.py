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
    rf"({STEP_FAILED.format(name='.+?', why='.+')})"
    rf"|^{re.escape(INVALID_PLAN.format(why=''))}(.+)",
    re.M,
)
_UNEXPECTED = STEP_UNEXPECTED.partition("(")[0]  # up to what was expected
_CHECK = re.compile(r"Step: .*?\nExpected: (?P<expected>.*?)\nResult:\n(?P<result>.*)", re.S)
_RESULTS = conversation.pattern(RESULTS_PROMPT)
_ASK = conversation.LIBRARY["words"]["ask_person"]
# Tools that a report no longer lists; the plan is found again with them.
_SHOP = Offer("database", "customers()\nproducts()\norders()")
_TOOLS = (Offer("calculator"), Offer("search"), _SHOP)


def write(messages: Sequence[Message], today: date) -> tuple[str, dict[str, Any]]:
    """Return a thought and the plan in its schema; `cancel` says why there is none."""
    system = "\n".join(
        message_text(message) for message in messages if message["role"] == "system"
    )
    brief = message_text(messages[-1]) if messages else ""
    found = _BRIEF.search(brief)
    question, past = (found["question"], found["past"]) if found else (brief, "")
    questions = re.findall(
        r"^user: (.+)$", brief[: found.start()] if found else "", re.MULTILINE
    )
    situation = Situation(
        question=Question(question[: conversation.MAX_QUESTION]),
        earlier=Question(questions[-1]) if questions else None,
        tools=(*conversation.listed_tools(system, "arguments"), *_agents(system)),
        today=today,
        is_planner=True,
        works=lambda name: _UNEXPECTED.format(name=name) not in past,
    )
    listed = re.search(r"^Roles: (.+)$", system, re.MULTILINE)
    roles = listed[1].split(", ") if listed else []
    # The person asked is one of the user's own, or has a role.
    who = "|".join(["(?:my|our|the) [a-z]+(?: [a-z]+)?", *map(re.escape, roles)])
    match = re.search(_ASK.replace("WHO", who), question, re.IGNORECASE)
    before = situation.about(question[: match.start()].strip(" 、。,;")) if match else situation
    plan = plans.find(before) if before.question.text else DemoPlan(lambda _: "")
    broken = _FAILED.search(past)
    written = _plan_data(plan, situation, (broken[1] or broken[2]) if broken else "")
    if match and not written.get("cancel"):
        written["steps"].append(_person(match, written["steps"], situation.question, roles))
    return situation.question.say("think_replan" if past else "think_plan"), written


def _person(
    found: re.Match[str], steps: list[Any], question: Question, roles: list[str]
) -> Any:
    """Write the step that asks a person or a role, after all others."""
    who, what = found["who"] or found["who_ja"], found["what"] or found["what_ja"]
    about = {"who": re.sub("^(?:my|our) ", "your ", who), "what": what.replace("${", "$${")}
    step = {"name": question.say("ask_name", **about), "depends_on": [s["name"] for s in steps]}
    if role := next((role for role in roles if role.lower() == who.lower()), ""):
        return {**step, "role": role, "arguments": {"task": question.say("ask_role", **about)}}
    return {**step, "ask": question.say("ask_text", **about)}


def _plan_data(plan: DemoPlan | None, situation: Situation, why: str) -> dict[str, Any]:
    say = situation.question.say
    if plan and plan.lost and not plan.steps:
        why = why or say("lost", lost=", ".join(plan.lost))
    if why or plan is None:
        # The reason of a run's end is plain text, so a link becomes its text.
        why = why or re.sub(r"\[(.+?)\]\(.+?\)", r"\1", results.fallback(situation))
        return {"description": say("cannot"), "cancel": why, "steps": []}
    found = _replacement_note(plan, situation) or say("find_out", text=situation.question.text)
    steps = [_fields(step, plan.steps) for step in plan.steps]
    return {"description": found if steps else plan.answer([]), "steps": steps}


def _replacement_note(plan: DemoPlan, situation: Situation) -> str:
    lost, instead = ", ".join(plan.lost), ", ".join(plan.instead)
    return situation.question.say("instead", lost=lost, instead=instead) if lost else ""


def _fields(step: DemoStep, steps: Sequence[DemoStep]) -> dict[str, Any]:
    """Write a step with references to earlier results."""
    needs = dict.fromkeys(steps[int(at)].name for at, _ in REFERENCE.findall(step.text))
    text = step.text.replace("${", "$${")  # a user's text is not a reference
    text = REFERENCE.sub(lambda found: _reference(steps[int(found[1])], found[2]), text)
    agent = step.tool.agent
    return {
        "name": step.name,
        **({"agent": agent} if agent else {"tool": step.tool.name}),
        "arguments": {step.tool.argument: text},
        "parallel": True,
        **({"depends_on": list(needs)} if needs else {}),
        **({"expected_outcome": step.expected} if step.expected else {}),
    }


def _reference(step: DemoStep, part: str) -> str:
    row = f"steps[{json.dumps(step.name, ensure_ascii=False)}].output.rows"
    if part == "label":
        return f"${{{row}[0][0]}}"
    limit = re.search(r"LIMIT (\d+)$", step.text)
    count = int(limit[1]) if part == "sum" and limit else 1
    figures = [f"${{round({row}[{at}][-1], 2)}}" for at in range(count)]
    return f"({' + '.join(figures)})"


def _agents(system: str) -> list[Offer]:
    match = re.search(r"^Agents: (.+)$", system, re.MULTILINE)
    names = re.findall(r"(?:^|; )([^\s:;]+): Ask the agent \1\.", match[1]) if match else []
    return [Offer(f"{HANDOFF_PREFIX}{name}", "", Handoff.parameters) for name in names]


def answer(messages: Sequence[Message], today: date) -> Situation | None:
    """Return the situation with its answer after a plan was executed, if one was."""
    last = message_text(messages[-1]) if messages and messages[-1]["role"] == "user" else ""
    report = _RESULTS.search(last)
    if report is None:
        return None
    before = last[: report.start()].strip()
    history = [{"role": "user", "content": before}] if before else []
    situation = conversation.read([*messages[:-1], *history], None)
    sections = re.split(r"^## (.+) \((\w+)\)$", report["results"], flags=re.MULTILINE)[1:]
    outcomes = list(
        zip(sections[::3], sections[1::3], map(str.strip, sections[2::3]), strict=True)
    )
    findings_by_name = {
        name: Finding(name, name, text) for name, s, text in outcomes if s == "done"
    }
    again = situation._replace(tools=_TOOLS, today=today, is_planner=True)
    plan = plans.find(again._replace(works=findings_by_name.__contains__)) if outcomes else None
    used = [step.name for step in plan.steps] if plan else []
    alone = f"{report['description']}\n\n{report['results']}".removesuffix("\n\n—")
    parts = [] if outcomes else [alone]
    question = situation.question
    if plan and used and all(name in findings_by_name for name in used):
        # A calculation is displayed with the names it refers to.
        findings = [
            findings_by_name[name]._replace(input=re.split(": |：", name)[-1]) for name in used
        ]
        parts = [_replacement_note(plan, situation), plan.answer(findings)]
    for name, _, text in outcomes if not parts else [o for o in outcomes if o[0] not in used]:
        who = re.fullmatch("ask ([^:]+)|([^:：]+)に聞く", name)
        says = question.say("says", agent=who[1] or who[2], text=text) if who else ""
        gave = results.format_finding(Finding(name, name, text), question)
        parts.append(says[:1].upper() + says[1:] if who else f"{name}:\n\n{gave}")
    answer_text = "\n\n".join(filter(None, parts))
    return situation._replace(findings=tuple(findings_by_name.values()), answer=answer_text)


def check(messages: Sequence[Message]) -> dict[str, Any]:
    """Judge a result by what is visible of it."""
    match = _CHECK.match(message_text(messages[-1]) if messages else "")
    expected, result = (match["expected"], match["result"].strip()) if match else ("", "")
    say = Question(expected).say
    rows = results.parse(result)
    above = re.search(r"above (\d+)|(\d+)より大きい", expected)
    least = re.search(r"[Aa]t least (\d{1,6}) rows?|(\d{1,6})行以上", expected)
    figures = rows.values if rows else [float(results.figure(result) or "nan")]
    too_small = above and not any(v > float(above[1] or above[2]) for v in figures)
    too_few = rows and least and len(rows.rows) < int(least[1] or least[2])
    needs_passage = re.search("passage|文書", expected)
    looks = (
        (result.startswith("Error"), result),
        (not result or (rows and rows.is_empty), say("empty")),
        (too_small, say("no_figure")),
        (too_few, say("few_rows", count=len(rows.rows) if rows else 0)),
        (needs_passage and not PASSAGE_HEAD.search(result), say("no_passage")),
    )
    wrong = next((message for is_wrong, message in looks if is_wrong), "")
    reason, feedback = (wrong, say("try_other")) if wrong else (say("as_expected"), "")
    return {"is_met": not wrong, "reason": reason, "feedback": feedback}
