"""The agent runtime: think, act and observe until there is an answer, as an event stream."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Self

from agents.engine import errors
from agents.engine.attachments import AttachmentStore, MemoryAttachmentStore
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventFactory, EventType, mark_replayed
from agents.engine.guardrails.checks import Guardrails
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.resilience.circuit_breaker import Circuits
from agents.engine.resilience.retry import RetryPolicy
from agents.engine.spending import NO_LIMITS, SpendingGate
from agents.engine.state import AgentState, AgentStep, Message
from agents.engine.tool import ToolRegistry
from agents.engine.tool_selection import ToolSelector

from .approval import ApprovalPolicy, GrantCheck, UntrustedPolicy
from .compaction import HistoryLimits
from .error_filter import ErrorFilter
from .offered_tools import add_search_tools
from .output_schema import OutputSchema
from .run_loop import Events, RunLoop
from .run_state import RunState, rebuild
from .shared_context import fit_files
from .termination import ERRORS, StopReason, TerminationPolicy, standard_policy
from .tool_fallback import FallbackStrategy

WAITING = "waiting"


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
        planner: ReActPlanner,
        tool_registry: ToolRegistry,
        guardrails: Guardrails,
        fallback_strategy: FallbackStrategy,
        max_steps: int = 10,
        *,
        policy: TerminationPolicy | None = None,
        retry: RetryPolicy | None = None,
        auto_execute_tools: bool = True,
        output: OutputSchema | None = None,
        fallback_planners: Sequence[ReActPlanner] = (),
        circuits: Circuits | None = None,
        attachments: AttachmentStore | None = None,
        allows_sampling: bool = False,
        grants: GrantCheck | None = None,
        after_untrusted: UntrustedPolicy = "suspicious",
        retrieval_tool: str = "",
        history_limits: HistoryLimits | None = None,
        notes: Sequence[Mapping[str, Any]] = (),
        cites: bool = True,
        spending: SpendingGate = NO_LIMITS,
        tool_selector: ToolSelector | None = None,
        name: str = "agent",
    ) -> None:
        """`notes` are about the first request, e.g. what the instructions contain and why.

        With `cites`, numbers in brackets are citations once the run has searched. With
        `tool_selector`, a model with many tools is only sent those that fit the question.
        """
        self.planner = planner
        self.tools = tool_registry
        self.guardrails = guardrails
        self.fallback = fallback_strategy
        self.max_steps = max_steps
        self.policy = policy or standard_policy()
        self.retry = retry or RetryPolicy()
        self.output = output
        self.approval_policy = ApprovalPolicy(
            tool_registry, auto_execute_tools, grants=grants, after_untrusted=after_untrusted
        )
        self.retrieval_tool = retrieval_tool
        self.fallback_planners = tuple(fallback_planners)
        self.circuits = circuits
        self.attachments = attachments or MemoryAttachmentStore()
        self.allows_sampling = allows_sampling
        self.history_limits = history_limits
        self.notes = tuple(notes)
        self.cites = cites
        self.spending = spending
        self.name = name
        self.tool_selector = add_search_tools(tool_registry, tool_selector)

    async def run(
        self, query: str, state: AgentState | None = None, *, raise_on_failure: bool = False
    ) -> AgentResult:
        """Run to the end, or until a person has to decide.

        With `raise_on_failure` a failed run raises its error; see `agents.engine.errors`.
        """
        state = state or AgentState()
        failure: Event | None = None
        async for event in self.stream(query, state):
            last = event
            if _is_failure(event):
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

    def stream(self, query: str, state: AgentState | None = None) -> Events:
        """Run and yield events. The last one is `run_finished`, or `run_paused` if it waits."""
        return self._deliver(RunState.start(self.name, query, state))

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
        replayed = list(kept_events) or [await self._start_event(recorded[0])]
        if not kept_events:
            yield replayed[0]
        for event in map(mark_replayed, recorded[len(replayed) :]):
            replayed.append(event)
            yield event
        async with aclosing(self.resume(replayed, history)) as events:
            async for event in events:
                yield event

    async def _deliver(self, run_state: RunState) -> Events:
        """Yield a run's events in contiguous numbers, with error texts filtered."""
        error_filter = ErrorFilter(self.guardrails)
        seq = run_state.emit.seq
        async with aclosing(self.events(run_state)) as events:
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
        planners = [self.planner, *self.fallback_planners]
        planner, *others = [planner.with_instructions(instructions) for planner in planners]
        return AgentRuntime(
            planner,
            ToolRegistry(),
            self.guardrails.without_model_checks(),
            self.fallback,
            policy=self.policy,
            retry=self.retry,
            output=output,
            fallback_planners=others,
            circuits=self.circuits,
            attachments=self.attachments,
            cites=False,  # a plan or a verdict isn't an answer
            name=name,
        )

    async def _start_event(self, origin: Event) -> Event:
        """Return the start event of a run with another run's question and its own setup."""
        run_loop = self.run_loop(RunState.start(self.name, origin.data["query"]))
        await run_loop.select_tools()
        return run_loop.start_event()


def _is_failure(event: Event) -> bool:
    """Whether this agent or one of its tools failed, not an agent it handed off to."""
    if "parent" in event.data:
        return False
    return event.type is EventType.ERROR or bool(event.data.get("error_type"))


def _error(last: Event, failure: Event | None) -> AgentError | None:
    """Return a run's error from its last event and its last failure."""
    reason = last.data.get("stopped_reason", StopReason.COMPLETED)
    if reason == StopReason.COMPLETED:
        return None
    data, detail = failure.data if failure else {}, last.data.get("detail", "")
    if failure is not None and failure.type is EventType.ERROR:
        return errors.error_class(data["type"])(detail, advice=last.data.get("advice", ""))
    if reason == StopReason.DEGRADED:
        detail = str(data.get("content", "")).removeprefix("Error: ") or detail
    return ERRORS[StopReason(reason)](detail, advice=last.data.get("advice", ""))
