"""A panel: asks several agents at once and merges their answers."""

import json
from contextlib import aclosing
from typing import Any

from agents.engine.loop.handoff import Handoff
from agents.engine.loop.lifecycle_events import finish_event, pause_event
from agents.engine.loop.limit_step import stop_event
from agents.engine.loop.run_loop import Events, RunLoop, Step
from agents.engine.loop.run_state import RunState
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.termination import StopReason
from agents.engine.loop.tool_calls.tool_runner import ToolRunner
from agents.engine.turn.assembly import PlanResult

from ..events import Event, EventType
from ..sentences import Sentence, joined
from ..sentences import Sentence as _
from ..tool import ToolRegistry
from .definition.plan import ExecutionPlan, ExecutionStep
from .execution.context import PlanContext, load_recorded_events
from .execution.executor import PlanExecution
from .merging.answer_merging import (
    AnswerMerger,
    MergeResult,
    MergeStrategy,
    PanelMember,
    format_answers,
)
from .plan_writer import format_history

SYNTHESIS_PROMPT = """\
These agents were asked the question, each without knowing of the others: {names}.

{answers}

Where they differ:
{differences}

Now write one answer to the question from theirs, in its language. Name after every statement \
in brackets who said it, as in (helper) or (helper, reader). Add nothing that none of them \
said. Where they differ, say so in a short list at the end. No tools can be used any more."""


class Panel(AgentRuntime):
    """An agent that asks all its agents and merges their answers by `merge`.

    It doesn't wait longer than `most_seconds` for an answer.
    """

    def __init__(
        self,
        *args: Any,
        merge: MergeStrategy = "synthesis",
        most_seconds: float | None = 300,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.merge: MergeStrategy = merge
        self.most_seconds = most_seconds

    @property
    def members(self) -> list[str]:
        tools = map(self.tools.get, self.tools.list_tools())
        return [tool.agent for tool in tools if isinstance(tool, Handoff)]

    def run_loop(self, run_state: RunState) -> RunLoop:
        return PanelRunLoop(self, run_state)


class PanelRunLoop(RunLoop):
    """A panel's run: asks the members, compares their answers, and answers."""

    agent: Panel

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recorded = load_recorded_events(self.run_state)
        self.is_merged = False

    def _choose_step(self) -> Step:
        if self.is_merged:
            return super()._choose_step()
        history = format_history(self.state.get_messages(), self.run_state.query)
        question = (
            f"{history}Question: {self.run_state.query}" if history else self.run_state.query
        )
        # By reference, because the user's text isn't a template.
        arguments = {"task": "${parameters.question}"}
        seconds = self.agent.most_seconds
        steps = [
            ExecutionStep("", arguments, timeout=seconds, name=name, agent=name, parallel=True)
            for name in self.agent.members
        ]
        plan = ExecutionPlan("", steps, {"question": question})
        return PanelPoll(PlanContext(self, self.recorded), plan)

    async def _follow_up(self, step: Step) -> list[Event]:
        match step:
            case PanelPoll():
                if (early_end := self._early_end(step)) is not None:
                    return [early_end]
                context = step.execution.context
                self.next_step = AnswerMerger(context, self.agent.merge, step.members)
                return []
            case AnswerMerger():
                self.is_merged = True
                return await self._answer_events(step)
        return await super()._follow_up(step)

    def _early_end(self, poll: "PanelPoll") -> Event | None:
        """Return the final event if there is nothing to merge."""
        members = poll.members
        execution = poll.execution
        if execution.is_waiting:
            return pause_event(self.run_state)
        answered = [member for member in members if not member.problem]
        limit = self.due_limit()
        if limit is not None and limit.ending == "stop":
            return stop_event(self.run_state, limit, format_answers(answered))
        is_finishing = limit is not None and limit.ending == "finish" and bool(answered)
        if execution.spent and not is_finishing:
            reason = StopReason.BUDGET
            answers = format_answers(answered)
            return finish_event(self.run_state, reason, answer=answers, detail=execution.spent)
        if not answered:
            problems = [
                Sentence("%(name)s: %(problem)s", name=member.name, problem=member.problem)
                for member in members
            ]
            detail = (
                _("No panel member could answer. %(reasons)s", reasons=joined(" ", problems))
                if members
                else _("This panel has no members.")
            )
            return finish_event(self.run_state, StopReason.ERROR, detail=detail)
        return None

    async def _answer_events(self, merger: AnswerMerger) -> list[Event]:
        """Return the final events, unless the model has to write the answer."""
        merge_result = merger.merge_result
        members = merger.answered
        if merge_result.needs_synthesis or self.agent.output is not None:
            self.tool_runner = ToolRunner(ToolRegistry(), self.agent.fallback)
            prompt = SYNTHESIS_PROMPT.format(
                names=", ".join(member.name for member in members),
                answers=format_answers(members),
                differences=_differences_list(merge_result) or "—",
            )
            self.state.add_message("user", prompt)
            return []
        chosen = next(
            (member for member in members if member.name == merge_result.chosen), None
        )
        arithmetic = merge_result.arithmetic
        differences = _differences_list(merge_result)
        if arithmetic is not None and isinstance(arithmetic["output"], dict):
            paragraphs = [json.dumps(arithmetic["output"], ensure_ascii=False)]
        elif arithmetic is not None:
            result = arithmetic["results"][0]
            why = f"> {merge_result.reason}" if arithmetic["left_out"] else ""
            paragraphs = [f"**{result['value']}**", result["working"], why]
        elif chosen is None:
            paragraphs = [merge_result.reason, format_answers(members), differences]
        else:
            is_judged = merge_result.merge == "judge" and not merge_result.is_agreed
            reason = " ".join(merge_result.reason.split())
            why = f"> **{chosen.name}**: {reason}" if is_judged else ""
            paragraphs = [chosen.answer, why, differences]
        text = "\n\n".join(filter(None, paragraphs))
        output = chosen.output if chosen else (arithmetic or {}).get("output")
        # Each answer had a length limit; the merged one may be longer.
        guardrails = self.agent.guardrails.without_length_limits()
        return await self._conclude(PlanResult(), text, output, guardrails)


class PanelPoll:
    """The question sent to all members; ends with `members`."""

    def __init__(self, context: PlanContext, plan: ExecutionPlan) -> None:
        self.execution = PlanExecution(context, plan)
        self._member_events = [
            event for event in context.run_state.recorded_events if event.type in _MEMBER_EVENTS
        ]

    async def events(self) -> Events:
        async with aclosing(self.execution.events()) as events:
            async for event in events:
                if event.type in _MEMBER_EVENTS:
                    self._member_events.append(event)
                yield event

    @property
    def members(self) -> list[PanelMember]:
        """The members' answers, in the members' order."""
        calls = {
            e.data["step"]: e.data for e in self._member_events if e.type is EventType.TOOL_CALL
        }
        # Structured answers by the row of the step that asked for them.
        outputs = dict[int | None, Any]()
        for event in self._member_events:
            if event.type is EventType.HANDOFF_RETURN:
                call = calls.get(event.data.get("parent", 0), {})
                outputs[call.get("parent")] = event.data.get("output")
        members = list[PanelMember]()
        for step in self.execution.plan.steps:
            outcome = self.execution.outcomes.get(step.name)
            if outcome is None:
                continue
            if outcome.status != "done" or not outcome.text.strip():
                problem = outcome.reason or _("No answer.")
                members.append(PanelMember(name=step.name, problem=problem))
                continue
            output = outputs.get(outcome.number)
            members.append(PanelMember(name=step.name, answer=outcome.text, output=output))
        return members


_MEMBER_EVENTS = {EventType.TOOL_CALL, EventType.HANDOFF_RETURN}


def _differences_list(merge_result: MergeResult) -> str:
    if not merge_result.differences:
        return ""
    items = "\n".join(
        f"- {' '.join(difference.split())}" for difference in merge_result.differences
    )
    return f"**{merge_result.heading or 'Differences'}**\n\n{items}"
