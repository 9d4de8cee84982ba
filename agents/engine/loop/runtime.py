"""The agent runtime: think, act and observe until there is an answer, as an event stream."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from agents.engine import errors
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventFactory, EventType, mark_replayed
from agents.engine.guardrails.checks import Guardrails
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState, AgentStep, Message
from agents.engine.tool import Tool, ToolRegistry, specification

from ..sentences import without_error_prefix
from .cancellation import until_aborted
from .capability import Attachments, Capability, Hooks
from .model_calls.model_call import ModelCall
from .output.output_schema import OutputSchema
from .run_loop import Events, RunLoop
from .run_state import RunState, rebuild
from .screening.error_filter import ErrorFilter
from .shared_context import fit_files
from .termination import ERRORS, StopReason, Termination
from .tool_calls.approval import Approvals
from .tool_calls.tool_fallback import FallbackStrategy

WAITING = "waiting"
Found = TypeVar("Found", bound=Capability)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """The result of a run; `detail` says why it ended, `error` is its typed failure.

    A run that waits for a person hasn't failed.
    """

    answer: str
    steps: list[AgentStep]
    tool_calls: int
    stopped_reason: str
    detail: str = ""
    error: AgentError | None = None

    def raise_for_status(self) -> Self:
        """Return the result; raise `error` if there is one, e.g. `MaxStepsExceeded`."""
        if self.error is not None:
            raise self.error
        return self


class AgentRuntime:
    """An agent that can be run. It keeps no state between two questions."""

    def __init__(
        self,
        planner: ReActPlanner | Sequence[ReActPlanner],
        tool_registry: ToolRegistry | Iterable[Tool] = (),
        guardrails: Guardrails | None = None,
        fallback_strategy: FallbackStrategy | None = None,
        max_steps: int = 10,
        *,
        capabilities: Iterable[Capability] = (),
        output: OutputSchema | None = None,
        name: str = "agent",
    ) -> None:
        """Several planners are the model and its fallbacks, in their order."""
        self.planners = (planner,) if isinstance(planner, ReActPlanner) else tuple(planner)
        self.tools = (
            tool_registry
            if isinstance(tool_registry, ToolRegistry)
            else ToolRegistry(tool_registry)
        )
        self.guardrails = guardrails or Guardrails()
        self.fallback = fallback_strategy or FallbackStrategy()
        self.max_steps = max_steps
        self.capabilities = tuple(capabilities)
        self.output = output
        self.name = name
        self.hooks = Hooks(self.capabilities)
        self.model_handler = self.hooks.wrap_model(ModelCall.ask)
        self.policy = (self.find(Termination) or Termination()).policy
        self.approvals = self.find(Approvals) or Approvals()
        self.attachments = (self.find(Attachments) or Attachments()).store
        self.abort: asyncio.Event | None = None

    @property
    def planner(self) -> ReActPlanner:
        return self.planners[0]

    @property
    def available_tools(self) -> list[dict[str, Any]]:
        """The tools as a model is sent them."""
        return [specification(tool) for tool in self.tools]

    def find(self, kind: type[Found]) -> Found | None:
        """Return the agent's capability of this kind, if it has one."""
        return next((c for c in self.capabilities if isinstance(c, kind)), None)

    async def __aenter__(self) -> Self:
        """Return the agent with an abort event, which ends its runs; so does the exit."""
        self.abort = asyncio.Event()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self.abort is not None:
            self.abort.set()

    async def run(
        self,
        query: str,
        state: AgentState | None = None,
        *,
        abort_event: asyncio.Event | None = None,
        raise_on_failure: bool = False,
    ) -> AgentResult:
        """Run to the end, until a person has to decide, or until the abort event is set.

        With `raise_on_failure` a failed run raises its error; see `agents.engine.errors`.
        """
        state = state or AgentState()
        failure: Event | None = None
        async for event in self.stream(query, state, abort_event=abort_event):
            last = event
            # Not of an agent it handed off to.
            if "parent" not in event.data and (
                event.type is EventType.ERROR or event.data.get("error_type")
            ):
                failure = event
        result = AgentResult(
            answer=last.data.get("answer", ""),
            steps=state.get_steps(),
            tool_calls=last.data.get("tool_calls", 0),
            stopped_reason=last.data.get("stopped_reason", WAITING),
            detail=last.data.get("detail", ""),
            error=_error(last, failure),
        )
        return result.raise_for_status() if raise_on_failure else result

    def stream(
        self,
        query: str,
        state: AgentState | None = None,
        *,
        abort_event: asyncio.Event | None = None,
    ) -> Events:
        """Run and yield events. The last one is `run_finished`, or `run_paused` if it waits.

        The run ends as soon as the abort event is set, and the state is valid for the next one.
        """
        return self._deliver(RunState.start(self.name, query, state), abort_event)

    def resume(self, events: Sequence[Event], history: AgentState | None = None) -> Events:
        """Resume after these events.

        `history` is the conversation before the run. Decisions made meanwhile are applied.
        """
        return self._deliver(rebuild(events, EventFactory(self.name), history or AgentState()))

    async def rerun(
        self,
        recorded: Sequence[Event],
        kept_events: Sequence[Event] = (),
        history: AgentState | None = None,
    ) -> Events:
        """Replay another run's events without executing anything, then continue live.

        `kept_events` are those already replayed, if the rerun was interrupted.
        """
        replayed = list(kept_events)
        if not replayed:  # it starts with the other run's question and its own setup
            run_loop = self.run_loop(RunState.start(self.name, recorded[0].data["query"]))
            await run_loop.prepare()
            replayed.append(run_loop.start_event())
            yield replayed[0]
        for event in map(mark_replayed, recorded[len(replayed) :]):
            replayed.append(event)
            yield event
        async with aclosing(self.resume(replayed, history)) as events:
            async for event in events:
                yield event

    async def _deliver(
        self, run_state: RunState, abort_event: asyncio.Event | None = None
    ) -> Events:
        """Yield a run's events in contiguous numbers, with error texts filtered."""
        error_filter = ErrorFilter(self.guardrails)
        seq = run_state.emit.seq
        source = self.events(run_state)
        if (abort_event := abort_event or self.abort) is not None:
            source = until_aborted(source, run_state, abort_event)
        async with aclosing(source) as events:
            async for event in events:
                seq += 1
                # Concurrent streams can interleave their numbers.
                if event.seq != seq:
                    event = replace(event, seq=seq)
                yield (
                    await error_filter.filter(event)
                    if error_filter.applies_to(event)
                    else event
                )

    def events(self, run_state: RunState) -> Events:
        """Return the events of this agent alone, which may work for another one."""
        return self.run_loop(run_state).events()

    def run_loop(self, run_state: RunState) -> RunLoop:
        return RunLoop(self, run_state)

    def fit_files(self, files: Message) -> Message:
        """Return the files of a chat as they fit into this agent's context."""
        return fit_files(files, self.planner.window, self.planner.count_tokens)

    def in_role(self, name: str, instructions: str, output: OutputSchema) -> "AgentRuntime":
        """Return the same model in another role: without tools, with structured output."""
        wrappers = [c for c in self.capabilities if "model_call" in c.overridden]
        return AgentRuntime(
            [planner.with_instructions(instructions) for planner in self.planners],
            ToolRegistry(),
            self.guardrails.without_model_checks(),
            self.fallback,
            capabilities=[Termination(self.policy), Attachments(self.attachments), *wrappers],
            output=output,
            name=name,
        )


def _error(last: Event, failure: Event | None) -> AgentError | None:
    """Return a run's error from its last event and its last failure."""
    reason = last.data.get("stopped_reason", StopReason.COMPLETED)
    if reason == StopReason.COMPLETED:
        return None
    data = failure.data if failure else {}
    detail = last.data.get("detail", "")
    if failure is not None and failure.type is EventType.ERROR:
        return errors.error_class(data["type"])(detail, advice=last.data.get("advice", ""))
    if reason == StopReason.DEGRADED:
        detail = without_error_prefix(str(data.get("content", ""))) or detail
    return ERRORS[StopReason(reason)](detail, advice=last.data.get("advice", ""))
