"""A model that needs no key and no network: rules instead of AI, in the form of a real one.

It plans with the tools that it is offered, native or as ReAct text, and streams what it
thinks, calls and answers like any model, in a given form too. `demo.skills` is what it can do.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import blake2s
from typing import Any

from .demo import (
    brief,
    filling,
    heads,
    help,
    history,
    judging,
    known,
    outline,
    passages,
    rows,
    skills,
    telling,
)
from .demo import form as forms
from .demo import report as reports
from .demo import schema as schemas
from .demo.form import Form
from .demo.history import Finding, Question, Situation
from .demo.plan import Plan
from .demo.report import Report

DEMO_LABEL = "Demo model (rules, no AI)"
ARGUMENT_PIECE = 24

_PIECE = re.compile(r"\s*(?:[\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]{1,2}|[!-~]+|\S)|\s+")
_NO_COLUMN = re.compile(r"column:? [`'\"]?(?:\w+\.)?(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the model says next: a call of a tool, or without one its answer."""

    thought: str = ""
    tool: str | None = None
    input: Mapping[str, str] | None = None
    answer: str = ""


class DemoModel:
    """Streams chat completion chunks; `delay` is the pause between two, in seconds."""

    label = DEMO_LABEL
    road = "demo"

    def __init__(self, delay: float = 0.02, today: Callable[[], date] = date.today) -> None:
        self.delay = delay
        self.today = today

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
        situation = history.read(form.messages if form else messages, offered)
        step = self._step(messages, situation, form)
        wire = _Wire(model, messages)
        deltas = list(_deltas(step, situation, wire.mark))
        for delta in deltas:
            yield wire.chunk(delta)
            await asyncio.sleep(self.delay)
        is_call = step.tool is not None and situation.dialect == "native"
        yield wire.chunk({}, finish="tool_calls" if is_call else "stop")
        yield wire.usage(messages, tools, deltas)

    def _step(
        self, messages: list[dict[str, Any]], situation: Situation, form: Form | None
    ) -> Step:
        if form and form.is_plan:
            return lay_out(form, self.today())
        if form and form.is_check:
            return check(form)
        report = reports.read(form.messages if form else messages, self.today())
        if form:
            told = report.situation(telling.answer(report)) if report else situation
            return write(told, form)
        if (merged := heads.merged(messages)) is not None:
            return Step(answer=merged)
        return tell(report) if report else decide(situation, self.today())


def lay_out(form: Form, today: date) -> Step:
    """A plan for others to carry out."""
    told = brief.read(form.messages)
    first = told.question.say(
        "I part the question into steps that the tools can do.",
        "質問を、ツールでできる手順に分けます。",
    )
    again = told.question.say(
        "The last plan did not do. I keep what was well and change the rest.",
        "前の計画はうまくいかなかったので、よかった手順は残し、ほかを変えます。",
    )
    thought = again if told.past else first
    plan = outline.write(told, today).to_dict()
    return Step(thought=thought, answer=json.dumps(plan, ensure_ascii=False))


def check(form: Form) -> Step:
    """Whether a result is what was expected of it."""
    found = judging.judge(form.messages).to_dict()
    return Step(answer=json.dumps(found, ensure_ascii=False))


def tell(report: Report) -> Step:
    """The answer when a plan was carried out."""
    thought = report.question.say(
        "The plan is carried out, so I answer from what its steps gave.",
        "計画を実行し終えたので、その結果から答えます。",
    )
    return Step(thought=thought if report.results else "", answer=telling.answer(report))


def decide(situation: Situation, today: date) -> Step:
    """The next step of the plan for the question, from what the tools have answered."""
    situation = _learnt(situation)
    plan = skills.plan(situation, today)
    if plan is None:
        return Step(thought=_closing(situation), answer=_answer_from(situation))
    done = _done(plan, situation.findings)
    next_call = _next(plan, done)
    if next_call is None:
        return Step(thought=_closing(situation), answer=_answer(situation, plan, done))
    last = situation.findings[-1] if situation.findings else None
    if last is None or not last.failed:
        return next_call
    return _after_failure(situation, last, next_call) or _failed(situation, plan, done, last)


def write(situation: Situation, form: Form) -> Step:
    """The answer that was given in words, in the form that is asked for."""
    thought = situation.question.say(
        "Now I write it in the form that is asked for.", "指定された形式で書きます。"
    )
    answer = situation.words or _answer_from(situation)
    value = heads.compared(form) or filling.fill(form.schema, known.learn(situation, answer))
    return Step(thought=thought, answer=json.dumps(value, ensure_ascii=False))


def _next(plan: Plan, done: Sequence[Finding]) -> Step | None:
    if len(done) == len(plan.stages):
        return None
    stage = plan.stages[len(done)]
    text = stage.write(done)
    if text is None:
        return None
    return Step(thought=stage.thought, tool=stage.tool.name, input=stage.tool.fill(text))


def _done(plan: Plan, findings: Sequence[Finding]) -> list[Finding]:
    """What the stages of the plan have found so far."""
    done: list[Finding] = []
    for finding in findings:
        at = len(done)
        if at < len(plan.stages) and finding.tool == plan.stages[at].tool.name:
            done += [] if finding.failed else [finding]
    return done


def _learnt(situation: Situation) -> Situation:
    """The tools as failures have shown them to be: without the columns that are not there."""
    for finding in situation.findings:
        is_error = finding.failed and not finding.is_settled
        if is_error and (missing := _NO_COLUMN.search(finding.text)):
            situation = _without_column(situation, finding.tool, missing[1])
    return situation


def _without_column(situation: Situation, name: str, column: str) -> Situation:
    tools = [
        replace(tool, description=str(schema.without(column)))
        if tool.name == name and (schema := schemas.read(tool.description))
        else tool
        for tool in situation.tools
    ]
    return replace(situation, tools=tuple(tools))


def _after_failure(situation: Situation, last: Finding, next_call: Step) -> Step | None:
    """Another way, if there is one, none was tried yet and no person had a word in it."""
    failures = sum(finding.failed for finding in situation.findings)
    if last.word or failures > 1 or last.input in (next_call.input or {}).values():
        return None
    other = situation.question.say(
        "That failed, but there is another way to ask.",
        "失敗しましたが、別の方法で問い合わせます。",
    )
    return replace(next_call, thought=other)


def _failed(situation: Situation, plan: Plan, done: Sequence[Finding], last: Finding) -> Step:
    """An honest end, after what was found until then."""
    question = situation.question
    end = question.say(
        "That failed and I know no other way, so I say so.",
        "失敗し、ほかの方法を知らないので、そのまま伝えます。",
    )
    settled = question.say(
        "A person has seen to that call, so I do not make it again and say how it stands.",
        "その呼び出しは人が判断したので、繰り返さずに、そのまま伝えます。",
    )
    if plan.failed is not None and not last.is_settled:
        return Step(thought=end, answer=plan.failed(done, last))
    told = [_answer(situation, plan, done)] if done else []
    answer = "\n\n".join([*told, help.failure(last, question)])
    return Step(thought=settled if last.is_settled else end, answer=answer)


def _answer(situation: Situation, plan: Plan, done: Sequence[Finding]) -> str:
    """In the words of the plan, unless a person had something else looked for."""
    made = zip(plan.stages, done, strict=False)
    if any(finding.word == "changed" and not stage.tool.agent for stage, finding in made):
        return _all_told(done, situation)
    return plan.answer(done)


def _answer_from(situation: Situation) -> str:
    """An answer where no plan is: out of what was found, or about the model itself."""
    question, found = situation.question, situation.findings
    if not found:
        is_direct = situation.dialect == "direct"
        greets = help.GREETING.fullmatch(question.plain.strip())
        is_unknown = is_direct and question.text and not greets
        return help.unknown(question) if is_unknown else help.introduction(situation)
    good = [finding for finding in found if not finding.failed]
    if not good:
        return help.failure(found[-1], question)
    return _all_told(good, situation)


def _all_told(findings: Sequence[Finding], situation: Situation) -> str:
    return "\n\n".join(_told(finding, situation.question) for finding in findings)


def _told(finding: Finding, question: Question) -> str:
    if rows.is_figure(finding.text):
        return rows.result(finding.input or finding.tool, finding.text, question)
    if finding.word != "changed":
        return _shown(finding.text, question)
    head = help.as_changed(finding, question) + question.say(" found:", "が返した結果:")
    asked = Question(text=finding.input, voice=question.text)
    return f"{head}\n\n{_shown(finding.text, asked)}"


def _shown(text: str, question: Question) -> str:
    table = rows.parse(text)
    if table and table.columns:
        return rows.table(table, question)
    return passages.answer(text, question) if passages.parse(text) else text


def _closing(situation: Situation) -> str:
    if not situation.findings:
        return ""
    return situation.question.say(
        "I have what I need and can answer.", "必要なものがそろったので、答えます。"
    )


def _deltas(step: Step, situation: Situation, mark: str) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    if situation.dialect == "react":
        yield from ({"content": piece} for piece in pieces(_react(step)))
        return
    yield from ({"reasoning_content": piece} for piece in pieces(step.thought))
    if step.tool is None:
        yield from ({"content": piece} for piece in pieces(step.answer))
        return
    call = {"index": 0, "id": f"call_{mark}", "type": "function"}
    yield {"tool_calls": [{**call, "function": {"name": step.tool, "arguments": ""}}]}
    for piece in _cut(json.dumps(step.input, ensure_ascii=False), ARGUMENT_PIECE):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _react(step: Step) -> str:
    thought = f"Thought: {step.thought}\n" if step.thought else ""
    if step.tool is None:
        return f"{thought}Final Answer: {step.answer}"
    text = json.dumps(step.input, ensure_ascii=False)
    return f"{thought}Action: {step.tool}\nAction Input: {text}\n"


def pieces(text: str) -> list[str]:
    """The text in words, and in pairs of Japanese signs; joined again it is the same."""
    return _PIECE.findall(text)


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


class _Wire:
    """Chunks in the form that OpenAI made common."""

    def __init__(self, model: str, messages: Sequence[Mapping[str, Any]]) -> None:
        told = json.dumps(messages, ensure_ascii=False, default=str)
        self.mark = blake2s(told.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
        self.fields = {
            "id": f"chatcmpl-{self.mark}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self.fields, "choices": [choice]}

    def usage(self, messages: Any, tools: Any, deltas: list[dict[str, Any]]) -> dict[str, Any]:
        asked, said = tokens(json.dumps([messages, tools], default=str)), len(deltas)
        usage = {
            "prompt_tokens": asked,
            "completion_tokens": said,
            "total_tokens": asked + said,
        }
        return {**self.fields, "choices": [], "usage": usage}


def tokens(text: str) -> int:
    """About how many tokens a model would make of this text."""
    return len(text) // 4 + 1
