"""Where a run stands, and how to find that out from what happened so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

from agents.engine.events import Event, Stamp, Type
from agents.engine.state import AgentState, Message
from agents.engine.turn.assembly import ToolCall

from .approval import Verdict
from .termination import BudgetPolicy, Progress

Data = Mapping[str, Any]

# What another run used up, and which models and tools failed it, is no matter of this one.
_OF_THE_ORIGIN = {Type.USAGE, Type.STATUS}


@dataclass(slots=True)
class Trail:
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

    emit: Stamp
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
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    tools: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    out_of_order: set[str] = field(default_factory=set)
    is_degraded: bool = False
    is_over: bool = False
    cut: "Cut" = field(default_factory=lambda: Cut())
    budgets: tuple[BudgetPolicy, ...] = ()
    path: tuple[str, ...] = ()
    past: Sequence[Event] = ()

    @classmethod
    def start(cls, agent: str, query: str, state: AgentState | None = None) -> Self:
        return cls(Stamp(agent), state or AgentState(), query, path=(agent,))

    def next_step(self) -> int:
        self.step = self.emit.next_step()
        return self.step

    def ask_instead(self, query: str) -> None:
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
class Cut:
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


def retrace(
    events: Sequence[Event],
    stamp: Stamp,
    state: AgentState,
    calls: tuple[ToolCall, ...] = (),
) -> Trail:
    """The trail that these events left; `state` holds what was said before the run.

    `calls` are open from the start, where they are not the model's to decide on.
    """
    trail = Trail(stamp, state, path=(stamp.agent,), past=events, open=calls)
    if events:
        stamp.clock.go_on_from(events[-1].time)
    for event in events:
        stamp.count.seq = max(stamp.count.seq, event.seq)
        stamp.count.steps = max(stamp.count.steps, event.data.get("step", 0))
        if event.type is Type.STEP_STARTED:
            # Whoever was asked: agents that work for each other share their aliases.
            trail.replaced |= event.data["request"].get("replaced", {})
        if event.is_replayed and event.type in _OF_THE_ORIGIN:
            continue
        if event.type is Type.USAGE:
            trail.progress.used.add(dict(event.data))
        elif event.data.get("parent") == stamp.parent and event.type in _READERS:
            _READERS[event.type](trail, event.data)
    trail.progress.began -= _seconds(events)
    return trail


def _seconds(events: Sequence[Event]) -> float:
    """How long the run has worked; while it waited, or nobody drove it, it did not."""
    own = [event for event in events if not event.is_replayed]
    pairs = [(a, b) for a, b in pairwise(own) if not _ends_a_rest(b)]
    return sum(max(0.0, (b.time - a.time).total_seconds()) for a, b in pairs)


def _ends_a_rest(event: Event) -> bool:
    goes_on = event.data.get("kind") in {"resumed", "replayed"}
    return event.type is Type.APPROVAL_RESOLVED or goes_on


def _asked(trail: Trail, data: Data) -> None:
    trail.query = data["query"]
    trail.state.add_message("user", trail.query)


def _thinking(trail: Trail, data: Data) -> None:
    trail.turn, trail.step = data["turn"], data["step"]
    request = data["request"]
    trail.sent = trail.sent[: request["kept"]] + request["messages"]
    is_shaping = data.get("phase") == "output"
    trail.cut = Cut(
        is_checked=True,
        thinking=data["step"],
        is_shaping=is_shaping,
        unended=trail.cut.unended,
        answer=trail.cut.answer if is_shaping else None,
    )


def _said(trail: Trail, data: Data) -> None:
    trail.cut.words.append(data["content"])


def _ended(trail: Trail, data: Data) -> None:
    trail.cut.unended.pop(data["step"], None)
    if data["kind"] not in {"thought", "answer"}:
        return
    trail.cut.thinking = None
    for message in data.get("messages", ()):
        trail.say(message)
    trail.open = tuple(_call(call) for call in data.get("calls", ()))
    trail.thought = data.get("thought", "")
    trail.repairs += data["status"] == "failed" and data["kind"] == "thought"
    if data.get("answer") is not None and data["status"] == "done" and not trail.open:
        trail.cut.answer = data


def _requested(trail: Trail, data: Data) -> None:
    id = data["id"]
    if data["why"] == "unknown":
        trail.unsure.add(id)
        trail.begun.pop(id, None)
    elif id not in trail.asked:
        trail.progress.record(_call(data))
    trail.asked[id] = data["step"]
    # As it was asked about: what a rule masked stays so, whatever rules there are by then.
    trail.open = tuple(_call(data) if call.id == id else call for call in trail.open)
    trail.tools[id] = data["tool"]
    trail.reasons[id] = data["why"]
    trail.pending.add(id)
    trail.verdicts.pop(id, None)
    trail.cut.is_decided = True


def _resolved(trail: Trail, data: Data) -> None:
    id, verdict = data["id"], Verdict.from_dict(data)
    trail.pending.discard(id)
    if trail.reasons.get(id) == "sharing" and verdict.is_approved:
        # Not the answer yet: the question may go out now, as it was approved.
        trail.shared.add(id)
        trail.open = tuple(verdict.of(call) if call.id == id else call for call in trail.open)
    else:
        trail.verdicts[id] = verdict


def _called(trail: Trail, data: Data) -> None:
    made = _call(data)
    trail.begun[made.id] = data["step"]
    if data.get("is_barred"):
        trail.barred.add(made.id)
    # As it was made: a person may have changed it, and that is what has to be asked about.
    trail.open = tuple(made if call.id == made.id else call for call in trail.open)
    trail.cut.is_decided = True
    if made.id not in trail.asked:
        trail.progress.record(made)


def _answered(trail: Trail, data: Data) -> None:
    trail.close(ToolCall(id=data["tool_call_id"], name=data["name"]), data["content"])
    trail.is_degraded = trail.is_degraded and data["is_error"]
    trail.cut.unended[data["step"]] = data


def _guarded(trail: Trail, data: Data) -> None:
    details = data["details"]
    trail.cut.is_checked = True
    if "text" in details:
        trail.ask_instead(details["text"])
    if data["action"] == "block" and not details.get("observed") and "tool" not in details:
        trail.cut.finding = data


def _planned(trail: Trail, data: Data) -> None:
    trail.cut.is_checked = True


def _failed(trail: Trail, data: Data) -> None:
    trail.cut.error = data
    trail.cut.thinking = None


def _over(trail: Trail, data: Data) -> None:
    trail.is_over = True


def _status(trail: Trail, data: Data) -> None:
    match data["kind"]:
        case "degraded":
            trail.out_of_order.add(data["tool"])
            trail.is_degraded = True
        case "tool_fallback":
            trail.out_of_order.add(data["tool"])
        case "model_fallback":
            trail.model = data["to"]


def _call(data: Data) -> ToolCall:
    function = data["function"]
    return ToolCall(id=data["id"], name=function["name"], arguments=function["arguments"])


_READERS: dict[Type, Callable[[Trail, Data], None]] = {
    Type.RUN_STARTED: _asked,
    Type.HANDOFF: _asked,
    Type.STEP_STARTED: _thinking,
    Type.TASK: _planned,
    Type.DELTA: _said,
    Type.THOUGHT_DELTA: _said,
    Type.STEP: _ended,
    Type.APPROVAL_REQUESTED: _requested,
    Type.APPROVAL_RESOLVED: _resolved,
    Type.TOOL_CALL: _called,
    Type.TOOL_RESPONSE: _answered,
    Type.STATUS: _status,
    Type.GUARDRAIL: _guarded,
    Type.ERROR: _failed,
    Type.HANDOFF_RETURN: _over,
    Type.RUN_FINISHED: _over,
}
