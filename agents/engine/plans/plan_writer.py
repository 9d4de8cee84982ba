"""Has a model write a plan, validates it, and requests approval if required."""

import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agents.engine.loop.approval import ApprovalDecision, AskPersonTool, digest
from agents.engine.loop.call_events import PREVIEW_CHARS
from agents.engine.loop.handoff import Handoff, HandoffRun
from agents.engine.loop.output_schema import OutputSchema
from agents.engine.turn.assembly import ToolCall

from ..errors import NoPlan
from ..events import Event, EventType
from ..state import Message
from ..tool import Tool, specification
from .context import PlanContext
from .graph import diff_with_dependents
from .outcome import StepOutcome
from .plan import ExecutionPlan, without_approvals

PLANNER = "planner"
PLAN = "plan"
MAX_ATTEMPTS = 3
MAX_SHOWN_CHARS = 2_000
MAX_HISTORY_MESSAGES = 6

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

Instructions of the agent that carries it out: {own}"""
TRIED_PLAN = "A plan that was tried: {plan}"
INVALID_PLAN = "Your last plan isn't valid: {why}"
STEP_FAILED = "“{name}” failed: {why}"
STEP_UNEXPECTED = "“{name}” didn't return the expected result ({expected}): {why}"
REPLAN_INSTRUCTIONS = """\
Write a new plan that does better. A step that is written exactly as before is not done again: \
its result stays."""

_TEXT = {"type": "string"}
PLAN_SCHEMA: dict[str, Any] = {
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
PlanCheck = Callable[[ExecutionPlan], Sequence[str]]


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    """An executed plan and the outcomes of its steps."""

    plan: ExecutionPlan
    outcomes: Mapping[str, StepOutcome]

    def feedback(self) -> list[str]:
        """What the next plan has to improve."""
        return [
            _failure_feedback(self, name)
            for name, o in self.outcomes.items()
            if o.status == "failed"
        ]

    def reusable_outcomes(self, plan: ExecutionPlan) -> dict[str, StepOutcome]:
        """Return the outcomes of unchanged, finished steps, which needn't be repeated."""
        changes = diff_with_dependents(
            self.plan.with_step_names().steps, plan.with_step_names().steps
        )
        same = {name for name, what in changes.items() if what == "kept"}
        return {n: o for n, o in self.outcomes.items() if n in same and o.status == "done"}


class PlanWriter:
    """Writes one version of a plan.

    It ends with a `plan`, or a `refusal` that says why there is none, unless it `is_waiting`
    for approval.
    """

    def __init__(
        self,
        context: PlanContext,
        before: Sequence[ExecutedPlan],
        *,
        check: PlanCheck,
        roles: Collection[str] = (),
        shows: bool = False,
    ) -> None:
        self.context = context
        self.before = before
        self.check = check
        self.roles = roles
        self.shows = shows
        self.plan: ExecutionPlan | None = None
        self.refusal: str | None = None
        self.is_waiting = False
        self._wrong: list[str] = []

    async def events(self) -> Events:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            number = self._recorded_step(attempt)
            if number is None:
                number = self.context.next_step()
                name = f"{PLAN} {self.context.version}"
                yield self._emit(EventType.TASK, number, name=name, work=PLAN, attempt=attempt)
            plan = self._recorded_plan(number)
            if (end := self.context.recorded.end(number)) is not None:
                self._restore_result(end.data, plan)
            elif plan is None:
                handoff = self._handoff_run(number)
                async with aclosing(handoff.events()) as events:
                    async for event in events:
                        yield event
                for event in self._written_events(number, self._parse_plan(handoff)):
                    yield event
            else:
                for event in self._approval_events(number, plan):
                    yield event
            if self.plan or self.refusal is not None or self.is_waiting:
                return
        raise NoPlan(f"The model didn't write a valid plan: {self._wrong[-1]}")

    def _written_events(self, number: int, plan: ExecutionPlan | None) -> list[Event]:
        if plan is None:
            return [self._failure_event(number)]
        written = self._plan_event(number, plan, by=PLANNER)
        return [written, *self._approval_events(number, plan)]

    def _recorded_step(self, attempt: int) -> int | None:
        for event in self.context.recorded.under(
            self.context.run_state.emit.parent, EventType.TASK
        ):
            data = event.data
            is_this = data["kind"] == PLAN and data["attempt"] == attempt
            if is_this and data["plan"] == self.context.version:
                number: int = data["step"]
                return number
        return None

    def _recorded_plan(self, number: int) -> ExecutionPlan | None:
        """Return the plan as last recorded."""
        events = self.context.recorded.under(self.context.run_state.emit.parent, EventType.PLAN)
        recorded = [event.data for event in events if event.data["step"] == number]
        return ExecutionPlan.from_dict(recorded[-1]) if recorded else None

    def _restore_result(self, end: Mapping[str, Any], plan: ExecutionPlan | None) -> None:
        match end["status"]:
            case "done":
                self.plan = plan
            case "failed":
                self._wrong.append(end["reason"])
            case _:
                self.refusal = end["reason"]

    def _handoff_run(self, number: int) -> HandoffRun:
        schema = OutputSchema(PLAN_SCHEMA, name=PLAN)
        planner = self.context.agent.in_role(PLANNER, self._instructions(), schema)
        handoff = Handoff(PLANNER, lambda: planner, is_role=True)
        return HandoffRun(handoff, self._question(), self.context.step_state(number), number)

    def _instructions(self) -> str:
        registry = self.context.agent.tools
        tools = [registry.get(name) for name in registry.list_tools()]
        agents = [tool for tool in tools if isinstance(tool, Handoff)]
        others = [t for t in tools if t not in agents and not isinstance(t, AskPersonTool)]
        return INSTRUCTIONS.format(
            tools="\n".join(map(_format_tool, others)) or "none",
            agents="; ".join(f"{a.agent}: {a.description}" for a in agents) or "none",
            roles=", ".join(sorted(self.roles)) or "none",
            own=self.context.agent.planner.instructions,
        )

    def _question(self) -> str:
        run_state = self.context.run_state
        history = format_history(run_state.state.get_messages(), run_state.query)
        parts = [f"{history}Question: {run_state.query}"]
        for executed_plan in self.before:
            plan_json = json.dumps(
                executed_plan.plan.to_dict(), ensure_ascii=False, default=str
            )
            parts += [TRIED_PLAN.format(plan=plan_json), *_format_results(executed_plan)]
            parts.append(f"What was wrong: {' '.join(executed_plan.feedback())}")
        parts += [REPLAN_INSTRUCTIONS] if self.before else []
        parts += [INVALID_PLAN.format(why=why) for why in self._wrong]
        return "\n\n".join(parts)

    def _parse_plan(self, handoff: HandoffRun) -> ExecutionPlan | None:
        """Return the model's plan if it is valid; otherwise record its problems."""
        value = handoff.output
        if not isinstance(value, dict):
            self._wrong.append(
                handoff.result.text if handoff.result else "The model wrote nothing."
            )
            return None
        if cancel := str(value.get("cancel") or "").strip():
            self.refusal = cancel
            return None
        try:
            plan = without_approvals(ExecutionPlan.from_dict(value)).with_step_names()
            problems = list(self.check(plan))
        except (TypeError, ValueError, AttributeError) as error:
            problems = [f"The plan can't be parsed: {error}."]
        if problems:
            self._wrong.append(" ".join(problems))
            return None
        return plan

    def _failure_event(self, number: int) -> Event:
        status = "failed" if self.refusal is None else "cancelled"
        return self._end_event(number, status, self.refusal or self._wrong[-1])

    def _plan_event(self, number: int, plan: ExecutionPlan, *, by: str) -> Event:
        last = self.before[-1] if self.before else None
        return self._emit(
            EventType.PLAN,
            number,
            **plan.to_dict(),
            by=by,
            changes=diff_with_dependents(last.plan.with_step_names().steps, plan.steps)
            if last
            else {},
            feedback=last.feedback() if last else [],
        )

    def _approval_events(self, number: int, plan: ExecutionPlan) -> list[Event]:
        """Request approval if required; the approved plan may be an edited one."""
        decision = self._recorded_decision(number)
        if decision is None and not self.shows and not self._was_asked(number):
            decision = ApprovalDecision(is_approved=True)
        if decision is None:
            self.is_waiting = True
            return self._request_approval(number, plan)
        if not decision.is_approved:
            self.refusal = decision.reason or "The plan was rejected."
            return [self._end_event(number, "rejected", self.refusal)]
        self.plan = plan
        events = list[Event]()
        if decision.arguments is not None:
            self.plan = ExecutionPlan.from_dict(
                json.loads(decision.arguments)
            ).with_step_names()
            if self.plan != plan:  # otherwise it was recorded before the interruption
                events.append(self._plan_event(number, self.plan, by=decision.by))
        return [*events, self._end_event(number, "done", self.plan.description)]

    def _recorded_decision(self, number: int) -> ApprovalDecision | None:
        parent = self.context.run_state.emit.parent
        for event in self.context.recorded.under(parent, EventType.APPROVAL_RESOLVED):
            if event.data["step"] == number:
                return ApprovalDecision.from_dict(event.data)
        return None

    def _was_asked(self, number: int) -> bool:
        requests = self.context.recorded.under(
            self.context.run_state.emit.parent, EventType.APPROVAL_REQUESTED
        )
        return any(event.data["step"] == number for event in requests)

    def _request_approval(self, number: int, plan: ExecutionPlan) -> list[Event]:
        if self._was_asked(number):
            return []
        plan_json = json.dumps(plan.to_dict(), ensure_ascii=False, default=str)
        call = ToolCall(id=f"{PLAN}_{number}", name=PLAN, arguments=plan_json)
        request = self._emit(
            EventType.APPROVAL_REQUESTED,
            number,
            id=call.id,
            function={"name": PLAN, "arguments": plan_json},
            digest=digest(call, "plan", self.context.run_state.emit.seq + 1),
            tool="",
            why="plan",
            role="",
            thought="",
        )
        return [request]

    def _end_event(self, number: int, status: str, reason: str) -> Event:
        texts = {"observation": reason[:PREVIEW_CHARS], "reason": reason}
        return self._emit(EventType.STEP, number, status=status, action=PLAN, **texts)

    def _emit(self, type: EventType, number: int, **more: Any) -> Event:
        version = self.context.version
        about = {"step": number, "turn": version, "plan": version, "kind": PLAN}
        return self.context.event_factory(None)(type, **about, **more)


def _format_tool(tool: Tool) -> str:
    function = specification(tool)["function"]
    schema = json.dumps(function["parameters"], ensure_ascii=False)
    return f"- {tool.name}: {tool.description}\n  arguments: {schema}"


def format_history(messages: Sequence[Message], query: str) -> str:
    """Format the shortened history; the question itself is passed separately."""
    visible = [m for m in messages if m["role"] in {"user", "assistant"} and m.get("content")]
    visible = [m for m in visible if m["content"] != query][-MAX_HISTORY_MESSAGES:]
    lines = [f"{m['role']}: {str(m['content'])[:MAX_SHOWN_CHARS]}" for m in visible]
    return "Said before:\n" + "\n".join(lines) + "\n\n" if lines else ""


def _format_results(executed_plan: ExecutedPlan) -> list[str]:
    done = [(name, o) for name, o in executed_plan.outcomes.items() if o.status == "done"]
    return [f"“{name}” gave: {o.text[:MAX_SHOWN_CHARS]}" for name, o in done]


def _failure_feedback(executed_plan: ExecutedPlan, name: str) -> str:
    outcome = executed_plan.outcomes[name]
    step = next(step for step in executed_plan.plan.steps if step.name == name)
    if outcome.finding is None:
        return STEP_FAILED.format(name=name, why=outcome.reason)
    why = f"{outcome.reason} {outcome.finding.feedback}".strip()
    return STEP_UNEXPECTED.format(name=name, expected=step.expected_outcome, why=why)
