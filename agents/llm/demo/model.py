"""The demo model as an LLM: decides on the next step and streams it in chunks."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import date
from hashlib import blake2s
from typing import Any, NamedTuple, cast

from agents.engine.loop import HANDOFF_PREFIX
from agents.engine.plans import EVALUATION_SCHEMA, PLAN_SCHEMA
from agents.engine.text import UNSPACED

from . import conversation, experiences, forms, judge, panel, planner, plans, results, summary
from .conversation import Situation
from .steps import REFERENCE, DemoPlan, DemoStep, Findings

DEMO_LABEL = "Demo model (rules, no AI)"
ARGUMENT_SIZE = 24  # characters of arguments per chunk
# Words, and pairs of Japanese characters; joined, they are the original text.
PIECE = re.compile(rf"\s*(?:[{UNSPACED}]{{1,2}}|[!-~]+|\S)|\s+")


class DemoTurn(NamedTuple):
    """The model's next turn: a tool call, or an answer."""

    thought: str = ""
    tool: str = ""
    input: Mapping[str, str] = {}
    answer: str = ""


class DemoModel:
    """Streams chat completion chunks; `delay` is the pause between two, in seconds.

    `administrator` is where its user asks for a real model, as in a `Situation`.
    """

    label = DEMO_LABEL
    route = "demo"

    def __init__(self, delay: float = 0.02, today: Callable[[], date] = date.today) -> None:
        self.delay = delay
        self.today = today
        self.administrator: str | None = None

    async def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        offered = None if parameters.get("tool_choice") == "none" else tools
        form = None if offered else forms.read(messages, parameters.get("response_format"))
        situation = conversation.read(form[1] if form else messages, offered)
        situation = experiences.apply(situation, messages)
        situation = situation._replace(administrator=self.administrator)
        turn = self._turn(messages, situation, form)
        text = json.dumps([messages, tools], ensure_ascii=False, default=str)
        mark = blake2s(text.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
        head: dict[str, Any] = {
            "id": f"chatcmpl-{mark}",
            "object": "chat.completion.chunk",
            "model": model,
            "created": int(time.time()),
        }
        deltas = list(_deltas(turn, situation.dialect, mark))
        for delta in deltas:
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            await asyncio.sleep(self.delay)
        is_call = turn.tool and situation.dialect == "native"
        finish = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if is_call else "stop"}
        yield {**head, "choices": [finish]}
        prompt_tokens = len(text) // 4 + 1
        usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(deltas),
            "total_tokens": prompt_tokens + len(deltas),
        }
        yield {**head, "choices": [], "usage": usage}

    def _turn(
        self, messages: list[Any], situation: Situation, form: forms.FormRequest | None
    ) -> DemoTurn:
        if (judged := judge.judge(messages)) is not None:
            return DemoTurn(answer=judged)
        if (summarized := summary.write(messages)) is not None:
            return DemoTurn(answer=summarized)
        if (confirmed := summary.confirm(messages)) is not None:
            return DemoTurn(answer=confirmed)
        today = self.today()
        schema, request = form or ({}, messages)
        fields = [*(schema.get("properties") or ())]
        if fields == [*PLAN_SCHEMA["properties"]]:
            thought, plan = planner.write(request, today, self.administrator)
            return DemoTurn(thought, answer=json.dumps(plan, ensure_ascii=False))
        if fields == [*cast(Any, EVALUATION_SCHEMA["properties"])]:
            return DemoTurn(answer=json.dumps(planner.check(request), ensure_ascii=False))
        answered = planner.answer(request, today)
        if form is None:
            if answered:
                return DemoTurn(answer=answered.answer)
            if merged := panel.merge(messages):
                return DemoTurn(answer=merged)
            return decide(situation, today, messages)
        if answered is None:
            answered = situation._replace(answer=situation.answer or _answer(situation))
        value = panel.compare(schema, request) or forms.Form(schema, answered).value()
        thought = answered.question.say("think_form")
        return DemoTurn(thought, answer=json.dumps(value, ensure_ascii=False))


def decide(situation: Situation, today: date, messages: Sequence[Any] = ()) -> DemoTurn:
    """Return the next step of the question's plan, given the tool results.

    Without a plan, `messages` may have the answer that a similar question was corrected with.
    """
    say = situation.question.say
    findings = situation.findings
    plan = plans.find(situation._replace(today=today))
    # What another agent couldn't finish is part of the answer.
    has_failed = any(
        f.is_error and not f.tool.startswith(HANDOFF_PREFIX) for f in findings[-1:]
    )
    if plan is None and (
        correction := experiences.known_answer(situation.question.text, messages)
    ):
        return DemoTurn(answer=correction)
    if plan is None or has_failed:
        return DemoTurn(
            say("think_failed") if has_failed else "", answer=_answer(situation, plan)
        )
    tool_names = {step.tool.name for step in plan.steps}
    done = [finding for finding in findings if finding.tool in tool_names][: len(plan.steps)]
    step = plan.steps[len(done)] if len(done) < len(plan.steps) else None
    text = _fill_references(step, done) if step else None
    if step and text is not None:
        return DemoTurn(step.thought, step.tool.name, {step.tool.argument: text})
    is_changed = any(f.is_changed and not f.tool.startswith(HANDOFF_PREFIX) for f in done)
    answer = _answer(situation) if is_changed else plan.answer(done)
    return DemoTurn(say("think_done") if done else "", answer=answer)


def _fill_references(step: DemoStep, done: Findings) -> str | None:
    """Fill a call with numbers from earlier results; None if there are none."""
    rows = [results.parse(finding.text) for finding in done]
    values = [table.values if table else [] for table in rows]
    if not all(values[int(index)] for index, _ in REFERENCE.findall(step.text)):
        return None

    def figures(match: re.Match[str]) -> str:
        operands = values[int(match[1])]
        if match[2] != "sum":
            operands = operands[:1]
        # Twelve decimals remove the noise of binary fractions.
        text = " + ".join(str(round(value, 12)) for value in operands)
        return f"({text})" if len(operands) > 1 or operands[0] < 0 else text

    return REFERENCE.sub(figures, step.text)


def _answer(situation: Situation, plan: DemoPlan | None = None) -> str:
    """Answer without a plan, or from the results before a failed call."""
    question = situation.question
    findings = situation.findings
    if not findings:
        return results.fallback(situation)
    good = [finding for finding in findings if not finding.is_error]
    sentences = [results.format_finding(finding, question) for finding in good]
    sentences = [plan.answer(good)] if plan and good else sentences
    failed = [results.failure(findings[-1], question)] if findings[-1].is_error else []
    return "\n\n".join([*sentences, *failed])


def _deltas(turn: DemoTurn, dialect: str, mark: str) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    arguments = json.dumps(turn.input, ensure_ascii=False)
    if dialect == "react":
        thought = f"Thought: {turn.thought}\n" if turn.thought else ""
        action = f"Action: {turn.tool}\nAction Input: {arguments}\n"
        text = f"{thought}{action if turn.tool else f'Final Answer: {turn.answer}'}"
        yield from ({"content": piece} for piece in PIECE.findall(text))
        return
    yield from ({"reasoning_content": piece} for piece in PIECE.findall(turn.thought))
    yield from ({"content": piece} for piece in PIECE.findall(turn.answer))
    if turn.tool:
        call = {"index": 0, "id": f"call_{mark}", "type": "function"}
        yield {"tool_calls": [{**call, "function": {"name": turn.tool, "arguments": ""}}]}
        for start in range(0, len(arguments), ARGUMENT_SIZE):
            function = {"arguments": arguments[start : start + ARGUMENT_SIZE]}
            yield {"tool_calls": [{"index": 0, "function": function}]}
