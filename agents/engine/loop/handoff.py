"""Another agent as a tool: it gets a task, works under its own name and answers."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from agents.engine.events import Event, EventType
from agents.engine.state import AgentState, Message
from agents.engine.tool import ToolInput, ToolResult, text_argument

from ..sentences import Sentence as _
from .run_state import RunState, rebuild
from .shared_context import shared_files
from .termination import StopReason

MAX_HANDOFF_DEPTH = 3
HANDOFF_PREFIX = "ask_"  # followed by the agent's name, this is the tool's name
UNFINISHED = _("%(agent)s couldn't finish: %(reason)s")
SUCCESS_REASONS = {StopReason.COMPLETED, StopReason.DEGRADED}

Events = AsyncGenerator[Event, None]


class SubAgent(Protocol):
    """An agent that can be handed a task."""

    name: str

    def events(self, run_state: RunState) -> Events: ...

    def fit_files(self, files: Message) -> Message: ...


class Handoff:
    """The tool with which an agent hands a task to another agent.

    The other agent is built when called, because two agents can refer to each other. With
    `is_role` it is the same agent in another role and may have another agent's name. With
    `is_first` the caller is a workflow, not an agent, and may have the same name. It gets the
    files of the chat unless it needn't (`reads_files`).
    """

    needs_approval = False
    effect = "at_most_once"
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": _(
                    "What to do, with everything the agent needs to know. It hasn't seen this "
                    "chat, only its files."
                ),
            }
        },
        "required": ["task"],
    }

    def __init__(
        self,
        agent: str,
        sub_agent: Callable[[], SubAgent],
        description: str = "",
        *,
        most_depth: int = MAX_HANDOFF_DEPTH,
        is_role: bool = False,
        is_first: bool = False,
        reads_files: bool = True,
    ) -> None:
        self.name = f"{HANDOFF_PREFIX}{agent}"
        self.agent = agent
        self.sub_agent = sub_agent
        self.description = _(
            "Hand off a task to the agent %(agent)s. %(description)s",
            agent=agent,
            description=description,
        ).strip()
        self.most_depth = most_depth
        self.is_role = is_role
        self.is_first = is_first
        self.reads_files = reads_files

    async def execute(self, input: ToolInput, /) -> ToolResult:
        """Call the other agent outside of any run."""
        run_state = RunState.start(self.agent, text_argument(input, "task"))
        async for event in self.sub_agent().events(run_state):
            last = event
        return _to_result(self.agent, last.data)


class HandoffRun:
    """One handoff; ends with a `result`, unless it waits for a person.

    `output` is the answer as data if the other agent has an output schema.
    """

    def __init__(self, handoff: Handoff, task: str, caller: RunState, step: int) -> None:
        self.handoff = handoff
        self.task = task
        self.caller = caller
        self.step = step
        self.result: ToolResult | None = None
        self.output: Any = None

    async def events(self) -> Events:
        path = () if self.handoff.is_first else self.caller.path
        if refusal := self._refusal(path):
            self.result = ToolResult(error=refusal, mendable=True)
            return
        for event in self.caller.recorded_events:
            self._record_return(event)
        if self.result is not None:
            return
        event_factory = self.caller.emit.child(self.handoff.agent, self.step)
        sub_agent = self.handoff.sub_agent()
        state = AgentState()
        if self.handoff.reads_files and (files := shared_files(self.caller.state)):
            state.question = sub_agent.fit_files(files)
        has_started = any(
            event.data.get("parent") == self.step for event in self.caller.recorded_events
        )
        if has_started:
            run_state = rebuild(self.caller.recorded_events, event_factory, state)
        else:
            run_state = RunState(event_factory, state, self.task)
        run_state.path = (*path, self.handoff.agent)
        run_state.budgets = self.caller.budgets
        run_state.material = self.caller.material
        # The other agent spends the same budget, and decisions about it are for both.
        progress = self.caller.progress
        run_state.progress = replace(
            run_state.progress,
            used=progress.used,
            time=progress.time,
            limit_decisions=progress.limit_decisions,
        )
        async with aclosing(sub_agent.events(run_state)) as events:
            async for event in events:
                self._record_return(event)
                yield event

    def _record_return(self, event: Event) -> None:
        """Record the other agent's result, possibly from before an interruption."""
        if event.type is EventType.HANDOFF_RETURN and event.data["parent"] == self.step:
            self.result = _to_result(self.handoff.agent, event.data)
            self.output = event.data.get("output")

    def _refusal(self, callers: tuple[str, ...]) -> str:
        """Return why the handoff isn't allowed: a cycle, or too deep."""
        if self.handoff.is_role:
            return ""
        if self.handoff.agent in callers:
            return _(
                "This handoff would loop: %(path)s. Do the task yourself.",
                path=" → ".join([*callers, self.handoff.agent]),
            )
        if len(callers) > self.handoff.most_depth:
            return _(
                "Handoffs can be up to %(times)s levels deep. Do the task yourself.",
                times=self.handoff.most_depth,
            )
        if not self.task.strip():
            return _("Describe the task.")
        return ""


def _to_result(agent: str, ending: Mapping[str, Any]) -> ToolResult:
    answer: str = ending.get("answer", "")
    if ending.get("stopped_reason") in SUCCESS_REASONS:
        return ToolResult(answer)
    why = ending.get("detail") or ending.get("stopped_reason") or _("it is waiting for a user")
    sentence = UNFINISHED.fill(agent=agent, reason=why)
    partly = _("%(sentence)s Partial result: %(answer)s", sentence=sentence, answer=answer)
    return ToolResult(error=partly if answer else sentence, mendable=True)
