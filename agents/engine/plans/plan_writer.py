"""Has a model write a plan, validates it, and requests approval if required."""

import json
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from agents.engine.loop.handoff import Handoff, HandoffRun
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.loop.tool_calls.approval import ApprovalDecision, AskPersonTool, digest
from agents.engine.loop.tool_calls.call_events import PREVIEW_CHARS
from agents.engine.turn.assembly import ToolCall

from ..errors import NoPlan
from ..events import Event, EventType
from ..sentences import Sentence as _
from ..sentences import joined
from ..state import Message
from ..tool import specification
from .definition.graph import diff_with_dependents
from .definition.plan import ExecutionPlan, without_approvals
from .execution.context import PlanContext
from .execution.outcome import StepOutcome

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
STEP_FAILED = _("“%(name)s” failed: %(why)s")
STEP_UNEXPECTED = _("“%(name)s” didn't return the expected result (%(expected)s): %(why)s")
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
        """Return what the next plan has to improve."""
        expected = {step.name: step.expected_outcome for step in self.plan.steps}
        feedback = list[str]()
        for name, outcome in self.outcomes.items():
            if outcome.status != "failed":
                continue
            if outcome.finding is None:
                feedback.append(STEP_FAILED.fill(name=name, why=outcome.reason))
                continue
            why = joined(" ", filter(None, (outcome.reason, outcome.finding.feedback)))
            feedback.append(STEP_UNEXPECTED.fill(name=name, expected=expected[name], why=why))
        return feedback

    def reusable_outcomes(self, plan: ExecutionPlan) -> dict[str, StepOutcome]:
        """Return the outcomes of unchanged, finished steps, which needn't be repeated."""
        changes = diff_with_dependents(
            self.plan.with_step_names().steps, plan.with_step_names().steps
        )
        return {
            name: outcome
            for name, outcome in self.outcomes.items()
            if changes.get(name) == "kept" and outcome.status == "done"
        }


class PlanWriter:
    """Writes one version of a plan.

    It ends with a `plan`, or a `refusal` that says why there is none, unless it `is_waiting`
    for approval.
    """

    def __init__(
        self,
        context: PlanContext,
        executed_plans: Sequence[ExecutedPlan],
        *,
        check: PlanCheck,
        roles: Collection[str] = (),
        shows: bool = False,
    ) -> None:
        self.context = context
        self.executed_plans = executed_plans
        self.check = check
        self.roles = roles
        self.shows = shows
        self.plan: ExecutionPlan | None = None
        self.refusal: str | None = None
        self.is_waiting = False
        self._problems: list[str] = []

    async def events(self) -> Events:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            number = self._recorded_step(attempt)
            if number is None:
                number = self.context.next_step()
                name = f"{PLAN} {self.context.version}"
                yield self._emit(EventType.TASK, number, name=name, work=PLAN, attempt=attempt)
            recorded_plans = list(self._recorded(EventType.PLAN, number))
            plan = ExecutionPlan.from_dict(recorded_plans[-1]) if recorded_plans else None
            if (end := self.context.recorded.end(number)) is not None:
                match end.data["status"]:
                    case "done":
                        self.plan = plan
                    case "failed":
                        self._problems.append(end.data["reason"])
                    case _:
                        self.refusal = end.data["reason"]
            elif plan is None:
                handoff = self._handoff_run(number)
                async with aclosing(handoff.events()) as events:
                    async for event in events:
                        yield event
                plan = self._parse_plan(handoff)
                if plan is None:
                    status = "failed" if self.refusal is None else "cancelled"
                    yield self._end_event(number, status, self.refusal or self._problems[-1])
                else:
                    yield self._plan_event(number, plan, by=PLANNER)
                    for event in self._approval_events(number, plan):
                        yield event
            else:
                for event in self._approval_events(number, plan):
                    yield event
            if self.plan or self.refusal is not None or self.is_waiting:
                return
        raise NoPlan(_("The model didn't write a valid plan: %(why)s", why=self._problems[-1]))

    def _recorded_step(self, attempt: int) -> int | None:
        for event in self.context.recorded.under(
            self.context.run_state.emit.parent, EventType.TASK
        ):
            data = event.data
            is_attempt = data["kind"] == PLAN and data["attempt"] == attempt
            if is_attempt and data["plan"] == self.context.version:
                number: int = data["step"]
                return number
        return None

    def _recorded(self, type: EventType, number: int) -> Iterator[Mapping[str, Any]]:
        """Yield what was recorded by events of this type about this step."""
        events = self.context.recorded.under(self.context.run_state.emit.parent, type)
        return (event.data for event in events if event.data["step"] == number)

    def _handoff_run(self, number: int) -> HandoffRun:
        tool_lines = list[str]()
        agents = list[str]()
        for tool in self.context.run.tools:
            if isinstance(tool, Handoff):
                agents.append(f"{tool.agent}: {tool.description}")
            elif not isinstance(tool, AskPersonTool):
                parameters = specification(tool)["function"]["parameters"]
                schema = json.dumps(parameters, ensure_ascii=False)
                tool_lines.append(f"- {tool.name}: {tool.description}\n  arguments: {schema}")
        instructions = INSTRUCTIONS.format(
            tools="\n".join(tool_lines) or "none",
            agents="; ".join(agents) or "none",
            roles=", ".join(sorted(self.roles)) or "none",
            own=self.context.run.planners[0].instructions,
        )
        output_schema = OutputSchema(PLAN_SCHEMA, name=PLAN)
        planner = self.context.agent.in_role(PLANNER, instructions, output_schema)
        handoff = Handoff(PLANNER, lambda: planner, is_role=True)
        run_state = self.context.run_state
        history = format_history(run_state.state.get_messages(), run_state.query)
        paragraphs = [f"{history}Question: {run_state.query}"]
        for executed_plan in self.executed_plans:
            plan_json = json.dumps(
                executed_plan.plan.to_dict(), ensure_ascii=False, default=str
            )
            paragraphs.append(TRIED_PLAN.format(plan=plan_json))
            paragraphs += [
                f"“{name}” gave: {outcome.text[:MAX_SHOWN_CHARS]}"
                for name, outcome in executed_plan.outcomes.items()
                if outcome.status == "done"
            ]
            paragraphs.append(f"What was wrong: {' '.join(executed_plan.feedback())}")
        if self.executed_plans:
            paragraphs.append(REPLAN_INSTRUCTIONS)
        paragraphs += [INVALID_PLAN.format(why=why) for why in self._problems]
        question = "\n\n".join(paragraphs)
        return HandoffRun(handoff, question, self.context.step_state(number), number)

    def _parse_plan(self, handoff: HandoffRun) -> ExecutionPlan | None:
        """Return the model's plan if it is valid; otherwise record its problems."""
        value = handoff.output
        if not isinstance(value, dict):
            self._problems.append(
                handoff.result.text if handoff.result else _("The model wrote nothing.")
            )
            return None
        if cancel := str(value.get("cancel") or "").strip():
            self.refusal = cancel
            return None
        try:
            plan = without_approvals(ExecutionPlan.from_dict(value)).with_step_names()
            problems = list(self.check(plan))
        except (TypeError, ValueError, AttributeError) as error:
            problems = [_("The plan can't be parsed: %(reason)s.", reason=error)]
        if problems:
            self._problems.append(joined(" ", problems))
            return None
        return plan

    def _plan_event(self, number: int, plan: ExecutionPlan, *, by: str) -> Event:
        last = self.executed_plans[-1] if self.executed_plans else None
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
        resolved = next(self._recorded(EventType.APPROVAL_RESOLVED, number), None)
        decision = ApprovalDecision.from_dict(resolved) if resolved is not None else None
        was_asked = any(self._recorded(EventType.APPROVAL_REQUESTED, number))
        if decision is None and not self.shows and not was_asked:
            decision = ApprovalDecision(is_approved=True)
        if decision is None:
            self.is_waiting = True
            if was_asked:
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
        if not decision.is_approved:
            self.refusal = decision.reason or _("The plan was rejected.")
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

    def _end_event(self, number: int, status: str, reason: str) -> Event:
        preview = reason if len(reason) <= PREVIEW_CHARS else reason[:PREVIEW_CHARS]
        texts = {"observation": preview, "reason": reason}
        return self._emit(EventType.STEP, number, status=status, action=PLAN, **texts)

    def _emit(self, type: EventType, number: int, **fields: Any) -> Event:
        version = self.context.version
        return self.context.event_factory(None)(
            type, step=number, turn=version, plan=version, kind=PLAN, **fields
        )


def format_history(messages: Sequence[Message], query: str) -> str:
    """Format the shortened history; the question itself is passed separately."""
    visible = [m for m in messages if m["role"] in {"user", "assistant"} and m.get("content")]
    visible = [m for m in visible if m["content"] != query][-MAX_HISTORY_MESSAGES:]
    lines = [f"{m['role']}: {str(m['content'])[:MAX_SHOWN_CHARS]}" for m in visible]
    return "Said before:\n" + "\n".join(lines) + "\n\n" if lines else ""
