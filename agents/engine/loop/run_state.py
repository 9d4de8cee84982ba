"""Where a run stands, and how to find that out from what happened so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

from agents.engine.events import Event, EventFactory, EventType
from agents.engine.state import AgentState, Message
from agents.engine.turn.assembly import ToolCall

from .approval import ApprovalDecision
from .termination import BudgetPolicy, Progress

Data = Mapping[str, Any]

# What another run used up, and which models and tools failed it, is no matter of this one.
_ORIGIN_ONLY = {EventType.USAGE, EventType.STATUS}


@dataclass(slots=True)
class RunState:
    """The course of one agent so far: what it was asked, what it said, did and used.

    `open` are the calls of its last turn that have no result yet; `begun` those of them that
    are under way, `asked` those that a person was asked about, each with its step; `pending`
    ones have no word yet, of `unsure` ones nobody knows whether they were made, and `barred`
    ones are not made because a rule says so. `shared` are questions that may go to others:
    whoever asked has approved that. `sent` is what its model was sent last, and
    `replaced` what it was not shown, by alias. `path` are the agents that a task was handed on
    through, `budgets` theirs. `past` is what it was retraced from, and `cut` what was going on
    at its end.
    """

    emit: EventFactory
    state: AgentState
    query: str = ""
    progress: Progress = field(default_factory=Progress)
    turn: int = 0
    step: int = 0
    repairs: int = 0
    thought: str = ""
    model: str = ""
    sent: list[Message] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    open: tuple[ToolCall, ...] = ()
    begun: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, ApprovalDecision] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    tools: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    out_of_order: set[str] = field(default_factory=set)
    is_degraded: bool = False
    is_over: bool = False
    cut: "Interruption" = field(default_factory=lambda: Interruption())
    budgets: tuple[BudgetPolicy, ...] = ()
    path: tuple[str, ...] = ()
    past: Sequence[Event] = ()

    @classmethod
    def start(cls, agent: str, query: str, state: AgentState | None = None) -> Self:
        return cls(EventFactory(agent), state or AgentState(), query, path=(agent,))

    def next_step(self) -> int:
        self.step = self.emit.next_step()
        return self.step

    def replace_query(self, query: str) -> None:
        """The question with what the model must not see masked."""
        self.state.replace_message("user", self.query, query)
        self.query = query

    def say(self, message: Message) -> None:
        self.state.add_message(**message)

    def close(self, call: ToolCall, observation: str) -> None:
        """This call has its result."""
        self.state.add_message("tool", observation, tool_call_id=call.id)
        self.open = tuple(other for other in self.open if other.id != call.id)
        self.begun.pop(call.id, None)


@dataclass(slots=True)
class Interruption:
    """What a trail that breaks off says of its last moments."""

    is_checked: bool = False
    thinking: int | None = None
    is_shaping: bool = False
    words: list[str] = field(default_factory=list)
    unended: dict[int, Data] = field(default_factory=dict)
    is_decided: bool = False
    answer: Data | None = None
    finding: Data | None = None
    error: Data | None = None


def rebuild(
    events: Sequence[Event],
    stamp: EventFactory,
    state: AgentState,
    calls: tuple[ToolCall, ...] = (),
) -> RunState:
    """The trail that these events left; `state` holds what was said before the run.

    `calls` are open from the start, where they are not the model's to decide on.
    """
    trail = RunState(stamp, state, path=(stamp.agent,), past=events, open=calls)
    if events:
        stamp.clock.advance_to(events[-1].time)
    for event in events:
        stamp.count.seq = max(stamp.count.seq, event.seq)
        stamp.count.steps = max(stamp.count.steps, event.data.get("step", 0))
        if event.type is EventType.STEP_STARTED:
            # Whoever was asked: agents that work for each other share their aliases.
            trail.replaced |= event.data["request"].get("replaced", {})
        if event.is_replayed and event.type in _ORIGIN_ONLY:
            continue
        if event.type is EventType.USAGE:
            trail.progress.used.add(dict(event.data))
        elif event.data.get("parent") == stamp.parent and event.type in _HANDLERS:
            _HANDLERS[event.type](trail, event.data)
    trail.progress.began -= _worked_seconds(events)
    return trail


def _worked_seconds(events: Sequence[Event]) -> float:
    """How long the run has worked; while it waited, or nobody drove it, it did not."""
    own = [event for event in events if not event.is_replayed]
    pairs = [(a, b) for a, b in pairwise(own) if not _ends_pause(b)]
    return sum(max(0.0, (b.time - a.time).total_seconds()) for a, b in pairs)


def _ends_pause(event: Event) -> bool:
    goes_on = event.data.get("kind") in {"resumed", "replayed"}
    return event.type is EventType.APPROVAL_RESOLVED or goes_on


def _on_run_started(trail: RunState, data: Data) -> None:
    trail.query = data["query"]
    trail.state.add_message("user", trail.query)


def _on_step_started(trail: RunState, data: Data) -> None:
    trail.turn, trail.step = data["turn"], data["step"]
    request = data["request"]
    trail.sent = trail.sent[: request["kept"]] + request["messages"]
    is_shaping = data.get("phase") == "output"
    trail.cut = Interruption(
        is_checked=True,
        thinking=data["step"],
        is_shaping=is_shaping,
        unended=trail.cut.unended,
        answer=trail.cut.answer if is_shaping else None,
    )


def _on_delta(trail: RunState, data: Data) -> None:
    trail.cut.words.append(data["content"])


def _on_step(trail: RunState, data: Data) -> None:
    trail.cut.unended.pop(data["step"], None)
    if data["kind"] not in {"thought", "answer"}:
        return
    trail.cut.thinking = None
    for message in data.get("messages", ()):
        trail.say(message)
    trail.open = tuple(_tool_call(call) for call in data.get("calls", ()))
    trail.thought = data.get("thought", "")
    trail.repairs += data["status"] == "failed" and data["kind"] == "thought"
    if data.get("answer") is not None and data["status"] == "done" and not trail.open:
        trail.cut.answer = data


def _on_approval_requested(trail: RunState, data: Data) -> None:
    id = data["id"]
    if data["why"] == "unknown":
        trail.unsure.add(id)
        trail.begun.pop(id, None)
    elif id not in trail.asked:
        trail.progress.record(_tool_call(data))
    trail.asked[id] = data["step"]
    # As it was asked about: what a rule masked stays so, whatever rules there are by then.
    trail.open = tuple(_tool_call(data) if call.id == id else call for call in trail.open)
    trail.tools[id] = data["tool"]
    trail.reasons[id] = data["why"]
    trail.pending.add(id)
    trail.verdicts.pop(id, None)
    trail.cut.is_decided = True


def _on_approval_resolved(trail: RunState, data: Data) -> None:
    id, verdict = data["id"], ApprovalDecision.from_dict(data)
    trail.pending.discard(id)
    if trail.reasons.get(id) == "sharing" and verdict.is_approved:
        # Not the answer yet: the question may go out now, as it was approved.
        trail.shared.add(id)
        trail.open = tuple(verdict.of(call) if call.id == id else call for call in trail.open)
    else:
        trail.verdicts[id] = verdict


def _on_tool_call(trail: RunState, data: Data) -> None:
    made = _tool_call(data)
    trail.begun[made.id] = data["step"]
    if data.get("is_barred"):
        trail.barred.add(made.id)
    # As it was made: a person may have changed it, and that is what has to be asked about.
    trail.open = tuple(made if call.id == made.id else call for call in trail.open)
    trail.cut.is_decided = True
    if made.id not in trail.asked:
        trail.progress.record(made)


def _on_tool_response(trail: RunState, data: Data) -> None:
    trail.close(ToolCall(id=data["tool_call_id"], name=data["name"]), data["content"])
    trail.is_degraded = trail.is_degraded and data["is_error"]
    trail.cut.unended[data["step"]] = data


def _on_guardrail(trail: RunState, data: Data) -> None:
    details = data["details"]
    trail.cut.is_checked = True
    if "text" in details:
        trail.replace_query(details["text"])
    if data["action"] == "block" and not details.get("observed") and "tool" not in details:
        trail.cut.finding = data


def _on_task(trail: RunState, data: Data) -> None:
    trail.cut.is_checked = True


def _on_error(trail: RunState, data: Data) -> None:
    trail.cut.error = data
    trail.cut.thinking = None


def _on_finished(trail: RunState, data: Data) -> None:
    trail.is_over = True


def _on_status(trail: RunState, data: Data) -> None:
    match data["kind"]:
        case "degraded":
            trail.out_of_order.add(data["tool"])
            trail.is_degraded = True
        case "tool_fallback":
            trail.out_of_order.add(data["tool"])
        case "model_fallback":
            trail.model = data["to"]


def _tool_call(data: Data) -> ToolCall:
    function = data["function"]
    return ToolCall(id=data["id"], name=function["name"], arguments=function["arguments"])


_HANDLERS: dict[EventType, Callable[[RunState, Data], None]] = {
    EventType.RUN_STARTED: _on_run_started,
    EventType.HANDOFF: _on_run_started,
    EventType.STEP_STARTED: _on_step_started,
    EventType.TASK: _on_task,
    EventType.DELTA: _on_delta,
    EventType.THOUGHT_DELTA: _on_delta,
    EventType.STEP: _on_step,
    EventType.APPROVAL_REQUESTED: _on_approval_requested,
    EventType.APPROVAL_RESOLVED: _on_approval_resolved,
    EventType.TOOL_CALL: _on_tool_call,
    EventType.TOOL_RESPONSE: _on_tool_response,
    EventType.STATUS: _on_status,
    EventType.GUARDRAIL: _on_guardrail,
    EventType.ERROR: _on_error,
    EventType.HANDOFF_RETURN: _on_finished,
    EventType.RUN_FINISHED: _on_finished,
}
