"""Having a plan written: by a model, looked through, and shown to a person first if wanted."""

import json
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agents.engine.loop.approval import AskPerson, Verdict, digest
from agents.engine.loop.handoff import Errand, Handoff
from agents.engine.loop.output_schema import OutputSchema
from agents.engine.loop.tool_step import PREVIEW
from agents.engine.turn.assembly import ToolCall

from ..errors import NoPlan
from ..events import Event, Type
from ..state import Message
from ..tool import Tool, specification
from .context import Site
from .graph import consequences
from .outcome import Outcome
from .plan import ExecutionPlan, without_approvals

PLANNER = "planner"
PLAN = "plan"
MOST_ATTEMPTS = 3
MOST_SHOWN = 2_000
MOST_REMEMBERED = 6

INSTRUCTIONS = """\
You plan work; others carry it out. Write the few steps that are needed, each with a short \
name of its own. A step has one of: "tool" with its "arguments"; "agent" with a "task" in its \
"arguments"; "ask", a question to a person ("role" where an expert is needed); or a "role" \
alone, with a "task", for whoever has it. In "arguments", "${{steps.NAME.output}}" stands for \
what another step gave, with paths such as "${{steps.NAME.output.rows[0].total}}". \
"depends_on" names the steps that have to be done before. Steps that need not wait for each \
other are "parallel". "for_each" does a step for each item of a list, as "${{item}}". \
"expected_outcome" says in one sentence what the result has to show; it will be checked. \
Where the question needs no work, give no steps. Where it cannot be done with what there is, \
say why in "cancel" and give no steps. Write in the language of the question.

Tools:
{tools}

Agents: {agents}

Roles: {roles}

What whoever carries it out is told: {own}"""
AGAIN = """\
Write a new plan that does better. A step that is written exactly as before is not done again: \
its result stays."""

_TEXT = {"type": "string"}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "description": {"type": "string", "description": "What the plan is, in one sentence."},
        "cancel": {"type": "string", "description": "Why it cannot be done; else empty."},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": _TEXT,
                    "tool": _TEXT,
                    "agent": _TEXT,
                    "ask": _TEXT,
                    "role": _TEXT,
                    "arguments": {"type": "object"},
                    "depends_on": {"type": "array", "items": _TEXT},
                    "parallel": {"type": "boolean"},
                    "condition": _TEXT,
                    "for_each": {},
                    "timeout": {"type": "number"},
                    "retry": {"type": "integer"},
                    "expected_outcome": _TEXT,
                },
                "required": ["name"],
            },
        },
    },
    "required": ["description", "steps"],
}

Events = AsyncGenerator[Event, None]
Check = Callable[[ExecutionPlan], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Account:
    """A plan that was carried out, and what came of its steps."""

    plan: ExecutionPlan
    outcomes: Mapping[str, Outcome]

    def feedback(self) -> list[str]:
        """What the next plan has to do better."""
        return [_blame(self, name) for name, o in self.outcomes.items() if o.status == "failed"]

    def still_good(self, plan: ExecutionPlan) -> dict[str, Outcome]:
        """What need not be done again in this plan: steps that are the same, and were done."""
        changes = consequences(self.plan.named().steps, plan.named().steps)
        same = {name for name, what in changes.items() if what == "kept"}
        return {n: o for n, o in self.outcomes.items() if n in same and o.status == "done"}


class Planning:
    """One version of a plan. Afterwards there is a `plan`, or a `refusal` says why there is
    none, unless it `is_waiting` for a person to agree.
    """

    def __init__(
        self,
        site: Site,
        before: Sequence[Account],
        *,
        check: Check,
        roles: Collection[str] = (),
        shows: bool = False,
    ) -> None:
        self.site = site
        self.before = before
        self.check = check
        self.roles = roles
        self.shows = shows
        self.plan: ExecutionPlan | None = None
        self.refusal: str | None = None
        self.is_waiting = False
        self._wrong: list[str] = []

    async def events(self) -> Events:
        for attempt in range(1, MOST_ATTEMPTS + 1):
            async with aclosing(self._attempt(attempt)) as events:
                async for event in events:
                    yield event
            if self.plan or self.refusal is not None or self.is_waiting:
                return
        raise NoPlan(f"There is no plan that can be carried out: {self._wrong[-1]}")

    async def _attempt(self, attempt: int) -> Events:
        number = self._known(attempt)
        if number is None:
            number = self.site.next_step()
            name = f"{PLAN} {self.site.version}"
            yield self._emit(Type.TASK, number, name=name, work=PLAN, attempt=attempt)
        plan = self._recorded(number)
        if (end := self.site.past.end(number)) is not None:
            self._recall(end.data, plan)
            return
        if plan is None:
            errand = self._errand(number)
            async with aclosing(errand.events()) as writing:
                async for event in writing:
                    yield event
            plan = self._read(errand)
            yield self._told(number, plan, by=PLANNER) if plan else self._given_up(number)
        for event in self._shown(number, plan) if plan else ():
            yield event

    def _known(self, attempt: int) -> int | None:
        for event in self.site.past.under(self.site.trail.emit.parent, Type.TASK):
            told = event.data
            is_this = told["kind"] == PLAN and told["attempt"] == attempt
            if is_this and told["plan"] == self.site.version:
                number: int = told["step"]
                return number
        return None

    def _recorded(self, number: int) -> ExecutionPlan | None:
        """The plan as it was last told."""
        events = self.site.past.under(self.site.trail.emit.parent, Type.PLAN)
        told = [event.data for event in events if event.data["step"] == number]
        return ExecutionPlan.from_dict(told[-1]) if told else None

    def _recall(self, end: Mapping[str, Any], plan: ExecutionPlan | None) -> None:
        match end["status"]:
            case "done":
                self.plan = plan
            case "failed":
                self._wrong.append(end["reason"])
            case _:
                self.refusal = end["reason"]

    def _errand(self, number: int) -> Errand:
        form = OutputSchema(FORM, name=PLAN)
        planner = self.site.agent.in_role(PLANNER, self._instructions(), form)
        handoff = Handoff(PLANNER, lambda: planner, is_role=True)
        return Errand(handoff, self._question(), self.site.trail_of(number), number)

    def _instructions(self) -> str:
        registry = self.site.agent.tools
        tools = [registry.get(name) for name in registry.list_tools()]
        agents = [tool for tool in tools if isinstance(tool, Handoff)]
        others = [t for t in tools if t not in agents and not isinstance(t, AskPerson)]
        return INSTRUCTIONS.format(
            tools="\n".join(map(_listed, others)) or "none",
            agents="; ".join(f"{a.agent}: {a.description}" for a in agents) or "none",
            roles=", ".join(sorted(self.roles)) or "none",
            own=self.site.agent.planner.instructions,
        )

    def _question(self) -> str:
        trail = self.site.trail
        before = conversation(trail.state.get_messages(), trail.query)
        parts = [f"{before}Question: {trail.query}"]
        for account in self.before:
            written = json.dumps(account.plan.to_dict(), ensure_ascii=False, default=str)
            parts += [f"A plan that was tried: {written}", *_results(account)]
            parts.append(f"What was wrong: {' '.join(account.feedback())}")
        parts += [AGAIN] if self.before else []
        parts += [f"Your last plan cannot be carried out: {wrong}" for wrong in self._wrong]
        return "\n\n".join(parts)

    def _read(self, errand: Errand) -> ExecutionPlan | None:
        """What the model wrote, if it can be carried out; else it is known what is wrong."""
        value = errand.output
        if not isinstance(value, dict):
            self._wrong.append(errand.result.text if errand.result else "Nothing was written.")
            return None
        if cancel := str(value.get("cancel") or "").strip():
            self.refusal = cancel
            return None
        try:
            plan = without_approvals(ExecutionPlan.from_dict(value)).named()
            wrong = list(self.check(plan))
        except (TypeError, ValueError, AttributeError) as error:
            wrong = [f"It cannot be read: {error}"]
        if wrong:
            self._wrong.append(" ".join(wrong))
            return None
        return plan

    def _given_up(self, number: int) -> Event:
        status = "failed" if self.refusal is None else "cancelled"
        return self._ended(number, status, self.refusal or self._wrong[-1])

    def _told(self, number: int, plan: ExecutionPlan, *, by: str) -> Event:
        last = self.before[-1] if self.before else None
        return self._emit(
            Type.PLAN,
            number,
            **plan.to_dict(),
            by=by,
            changes=consequences(last.plan.named().steps, plan.steps) if last else {},
            feedback=last.feedback() if last else [],
        )

    def _shown(self, number: int, plan: ExecutionPlan) -> Iterator[Event]:
        """A person may have to see it first; it may be another one afterwards."""
        verdict = self._verdict(number)
        if verdict is None and not self.shows and not self._was_asked(number):
            verdict = Verdict(is_approved=True)
        if verdict is None:
            self.is_waiting = True
            yield from self._asked(number, plan)
        elif not verdict.is_approved:
            self.refusal = verdict.reason or "The plan was declined."
            yield self._ended(number, "rejected", self.refusal)
        else:
            if verdict.arguments is not None:
                edited = ExecutionPlan.from_dict(json.loads(verdict.arguments)).named()
                if edited != plan:  # else it was told before it was cut off
                    yield self._told(number, edited, by=verdict.by)
                plan = edited
            self.plan = plan
            yield self._ended(number, "done", plan.description)

    def _verdict(self, number: int) -> Verdict | None:
        parent = self.site.trail.emit.parent
        for event in self.site.past.under(parent, Type.APPROVAL_RESOLVED):
            if event.data["step"] == number:
                return Verdict.from_dict(event.data)
        return None

    def _was_asked(self, number: int) -> bool:
        asked = self.site.past.under(self.site.trail.emit.parent, Type.APPROVAL_REQUESTED)
        return any(event.data["step"] == number for event in asked)

    def _asked(self, number: int, plan: ExecutionPlan) -> Iterator[Event]:
        if self._was_asked(number):
            return
        written = json.dumps(plan.to_dict(), ensure_ascii=False, default=str)
        call = ToolCall(id=f"{PLAN}_{number}", name=PLAN, arguments=written)
        yield self._emit(
            Type.APPROVAL_REQUESTED,
            number,
            id=call.id,
            function={"name": PLAN, "arguments": written},
            digest=digest(call, "plan", self.site.trail.emit.seq + 1),
            tool="",
            why="plan",
            role="",
            thought="",
        )

    def _ended(self, number: int, status: str, words: str) -> Event:
        about = {"observation": words[:PREVIEW], "reason": words}
        return self._emit(Type.STEP, number, status=status, action=PLAN, **about)

    def _emit(self, type: Type, number: int, **more: Any) -> Event:
        version = self.site.version
        about = {"step": number, "turn": version, "plan": version, "kind": PLAN}
        return self.site.emitter(None)(type, **about, **more)


def _listed(tool: Tool) -> str:
    function = specification(tool)["function"]
    schema = json.dumps(function["parameters"], ensure_ascii=False)
    return f"- {tool.name}: {tool.description}\n  arguments: {schema}"


def conversation(messages: Sequence[Message], query: str) -> str:
    """What was said before, shortened; the question itself is told apart."""
    said = [m for m in messages if m["role"] in {"user", "assistant"} and m.get("content")]
    said = [m for m in said if m["content"] != query][-MOST_REMEMBERED:]
    lines = [f"{m['role']}: {str(m['content'])[:MOST_SHOWN]}" for m in said]
    return "Said before:\n" + "\n".join(lines) + "\n\n" if lines else ""


def _results(account: Account) -> list[str]:
    done = [(name, o) for name, o in account.outcomes.items() if o.status == "done"]
    return [f"“{name}” gave: {o.text[:MOST_SHOWN]}" for name, o in done]


def _blame(account: Account, name: str) -> str:
    outcome = account.outcomes[name]
    step = next(step for step in account.plan.steps if step.name == name)
    if outcome.finding is None:
        return f"“{name}” failed: {outcome.reason}"
    expected = f"“{name}” did not give what was expected ({step.expected_outcome})"
    return f"{expected}: {outcome.reason} {outcome.finding.feedback}".strip()
