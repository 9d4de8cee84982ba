"""The state of a run, rebuilt from its events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

from agents.engine.attachments import AttachmentRef, refs_of
from agents.engine.errors import ToolNotFoundError, UnreadableArguments
from agents.engine.events import Event, EventFactory, EventType, StatusKind
from agents.engine.history_summary import summary_messages
from agents.engine.material.run_material import RunMaterial
from agents.engine.state import AgentState, Message
from agents.engine.turn.assembly import ToolCall

from .run_limits import BUDGET, is_about_limit
from .termination import BudgetPolicy, Progress
from .tool_calls.approval import ELICITATION, ApprovalDecision

Data = Mapping[str, Any]

# Calls that can't be made, however often the model repeats them.
IMPOSSIBLE_CALLS = {ToolNotFoundError.__name__, UnreadableArguments.__name__}
# The origin's usage and its failed models and tools don't concern a rerun.
_ORIGIN_ONLY = {EventType.USAGE, EventType.STATUS}


@dataclass(slots=True)
class RunState:
    """The state of one agent's run: what it was asked, said, did and used.

    `open` are the calls of its last turn without a result: `started_calls` are running,
    `requested_approvals` have an approval request (each with its step), `pending` ones have no
    decision yet, `unsure` ones may or may not have been made, and `barred` ones are blocked by
    a guardrail.
    `shared` are questions the user allowed to go to others, and `questions` those that a
    running call has asked. `notes`, and what they used, belong to the next request. `sent` is
    the last request to the model, and `replaced` what it wasn't sent, by alias. `path` are the
    agents a task was handed through, `budgets` theirs; `material` is what all of them have
    read. `offered` are the tools that the model was sent at the start, `opening_tool` was
    called before its first turn. `judged_answer` has
    passed the model checks that hold it back, and `judged_rules` have judged it.
    `recorded_events` are those it was rebuilt from, and `interruption` what was running at
    their end.
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
    started_calls: dict[str, int] = field(default_factory=dict)
    requested_approvals: dict[str, int] = field(default_factory=dict)
    decisions: dict[str, ApprovalDecision] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    tool_fingerprints: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    questions: dict[str, Data] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    barred: set[str] = field(default_factory=set)
    out_of_order: set[str] = field(default_factory=set)
    impossible_turns: set[int] = field(default_factory=set)
    is_degraded: bool = False
    has_checked_citations: bool = False
    has_returned_draft: bool = False
    judged_answer: str | None = None
    judged_rules: set[str] = field(default_factory=set)
    is_over: bool = False
    interruption: "Interruption" = field(default_factory=lambda: Interruption())
    notes: list[Data] = field(default_factory=list)
    budgets: tuple[BudgetPolicy, ...] = ()
    material: RunMaterial = field(default_factory=RunMaterial)
    path: tuple[str, ...] = ()
    offered: frozenset[str] = frozenset()
    opening_tool: str = ""
    recorded_events: Sequence[Event] = ()

    @classmethod
    def start(cls, agent: str, query: str, state: AgentState | None = None) -> Self:
        state = state or AgentState()
        material = RunMaterial.of_history([*state.get_messages(), state.question])
        material.name_pages(query)
        return cls(EventFactory(agent), state, query, path=(agent,), material=material)

    def next_step(self) -> int:
        self.step = self.emit.next_step()
        return self.step

    def replace_query(self, query: str) -> None:
        """Replace the question by its masked version."""
        self.state.replace_message("user", self.query, query)
        self.query = query

    def claim_stand_in(self, limits: Mapping[str, int], tool: str) -> bool:
        """Count a call of this tool in place of another; False if its limit is reached."""
        progress = self.progress
        waiting = [c for c in self.open if c.name == tool and c.id not in progress.recorded]
        call_count = progress.per_tool()[tool] + progress.stand_ins[tool] + len(waiting)
        if call_count >= limits.get(tool, call_count + 1):
            return False
        progress.stand_ins[tool] += 1
        return True

    def note_impossible(self, turn: int, error_type: str) -> None:
        """Note in which turns in a row the model made calls that can't be made."""
        if error_type in IMPOSSIBLE_CALLS:
            self.impossible_turns.add(turn)
        else:
            self.impossible_turns.clear()

    def say(self, message: Message) -> None:
        self.state.add_message(**message)

    def close(
        self,
        call: ToolCall,
        observation: str,
        attachments: Sequence[AttachmentRef] = (),
        *,
        is_untrusted: bool = False,
    ) -> None:
        """Add a call's result and close the call."""
        fields: dict[str, Any] = {"tool_call_id": call.id}
        if attachments:
            fields["attachments"] = list(attachments)
        if is_untrusted:
            fields["untrusted"] = call.name
        self.state.add_message("tool", observation, **fields)
        self.open = tuple(open_call for open_call in self.open if open_call.id != call.id)
        self.started_calls.pop(call.id, None)


@dataclass(slots=True)
class Interruption:
    """What was going on when the events of an interrupted run end."""

    is_checked: bool = False
    model_step: int | None = None
    is_shaping: bool = False
    texts: list[str] = field(default_factory=list)
    unended: dict[int, Data] = field(default_factory=dict)
    is_decided: bool = False
    answer: Data | None = None
    finding: Data | None = None
    error: Data | None = None


def rebuild(
    events: Sequence[Event],
    event_factory: EventFactory,
    state: AgentState,
    calls: tuple[ToolCall, ...] = (),
) -> RunState:
    """Rebuild the state from these events; `state` has the history before the run.

    `calls` are open from the start if the model didn't decide on them.
    """
    run_state = RunState(
        event_factory,
        state,
        path=(event_factory.agent,),
        recorded_events=events,
        open=calls,
        material=RunMaterial.of_history([*state.get_messages(), state.question]),
    )
    if events:
        event_factory.clock.advance_to(events[-1].time)
    for event in events:
        event_factory.counters.seq = max(event_factory.counters.seq, event.seq)
        event_factory.counters.steps = max(
            event_factory.counters.steps, event.data.get("step", 0)
        )
        if event.type is EventType.STEP_STARTED:
            # For all agents, because agents that work for each other share their aliases.
            run_state.replaced |= event.data["request"].get("replaced", {})
        elif event.type is EventType.TOOL_RESPONSE:
            run_state.material.record(event.data)
        elif event.type is EventType.RUN_STARTED:
            run_state.material.name_pages(event.data.get("query", ""))
        if event.is_replayed and event.type in _ORIGIN_ONLY and not is_compaction(event.data):
            continue
        if not event.is_replayed and is_about_limit(event):
            # Of all agents, which share their limits.
            run_state.progress.limit_decisions.record(event)
        if event.type is EventType.USAGE:
            run_state.progress.used.add(dict(event.data))
        elif event.data.get("parent") == event_factory.parent and event.type in _HANDLERS:
            _HANDLERS[event.type](run_state, event.data)
    worked_seconds = 0.0  # without the time it waited or had no owner
    for previous, event in pairwise(event for event in events if not event.is_replayed):
        kind = event.data.get("kind")
        is_resumed = kind in {StatusKind.RESUMED, StatusKind.REPLAYED}
        has_waited = kind == StatusKind.LIMITED and event.data.get("waited")
        if event.type is EventType.APPROVAL_RESOLVED or is_resumed or has_waited:
            continue
        worked_seconds += max(0.0, (event.time - previous.time).total_seconds())
    run_state.progress.time.began -= worked_seconds
    return run_state


def _on_run_started(run_state: RunState, data: Data) -> None:
    run_state.query = data["query"]
    run_state.offered = frozenset(tool["function"]["name"] for tool in data.get("tools", ()))
    run_state.state.add_question(run_state.query)


def _on_step_started(run_state: RunState, data: Data) -> None:
    run_state.turn = data["turn"]
    run_state.step = data["step"]
    run_state.judged_rules.clear()
    request = data["request"]
    run_state.sent = run_state.sent[: request["kept"]] + request["messages"]
    is_shaping = data.get("phase") == "output"
    run_state.interruption = Interruption(
        is_checked=True,
        model_step=data["step"],
        is_shaping=is_shaping,
        unended=run_state.interruption.unended,
        answer=run_state.interruption.answer if is_shaping else None,
    )


def _on_delta(run_state: RunState, data: Data) -> None:
    run_state.interruption.texts.append(data["content"])


def _on_step(run_state: RunState, data: Data) -> None:
    run_state.interruption.unended.pop(data["step"], None)
    if data["kind"] not in {"thought", "answer"}:
        return
    run_state.interruption.model_step = None
    for message in data.get("messages", ()):
        run_state.say(message)
    run_state.open = tuple(_tool_call(call) for call in data.get("calls", ()))
    run_state.thought = data.get("thought", "")
    run_state.repairs += data["status"] == "failed" and data["kind"] == "thought"
    if data.get("answer") is not None and data["status"] == "done" and not run_state.open:
        run_state.interruption.answer = data


def _on_approval_requested(run_state: RunState, data: Data) -> None:
    id = data["id"]
    if data["why"] == BUDGET:
        return
    if data["why"] == ELICITATION:
        run_state.questions[id] = data
        return
    if data["why"] == "unknown":
        run_state.unsure.add(id)
        run_state.started_calls.pop(id, None)
    elif id not in run_state.requested_approvals:
        run_state.progress.record(_tool_call(data))
    run_state.requested_approvals[id] = data["step"]
    # As displayed for approval: what a rule masked then stays masked, even if the rules change.
    run_state.open = tuple(
        _tool_call(data) if call.id == id else call for call in run_state.open
    )
    run_state.tool_fingerprints[id] = data["tool"]
    run_state.reasons[id] = data["why"]
    run_state.pending.add(id)
    run_state.decisions.pop(id, None)
    run_state.interruption.is_decided = True


def _on_approval_resolved(run_state: RunState, data: Data) -> None:
    if run_state.questions.pop(data["id"], None) is not None or data.get("why") == BUDGET:
        return
    id = data["id"]
    decision = ApprovalDecision.from_dict(data)
    run_state.pending.discard(id)
    if run_state.reasons.get(id) == "sharing" and decision.is_approved:
        # Not the answer yet: the question may now be sent, as approved.
        run_state.shared.add(id)
        run_state.open = tuple(
            decision.of(call) if call.id == id else call for call in run_state.open
        )
    else:
        run_state.decisions[id] = decision


def _on_tool_call(run_state: RunState, data: Data) -> None:
    tool_call = _tool_call(data)
    run_state.started_calls[tool_call.id] = data["step"]
    if "messages" in data:  # a call that no model decided on
        for message in data["messages"]:
            run_state.say(message)
        run_state.opening_tool = tool_call.name
        run_state.open = (*run_state.open, tool_call)
        run_state.interruption.is_checked = True
    if data.get("is_barred"):
        run_state.barred.add(tool_call.id)
    # As it was made: a person may have edited it, and approval is about that version.
    run_state.open = tuple(
        tool_call if call.id == tool_call.id else call for call in run_state.open
    )
    run_state.interruption.is_decided = True
    if tool_call.id not in run_state.requested_approvals:
        run_state.progress.record(tool_call)


def _on_tool_response(run_state: RunState, data: Data) -> None:
    call = ToolCall(id=data["tool_call_id"], name=data["name"])
    run_state.progress.record_response(data)
    run_state.note_impossible(data["turn"], data.get("error_type", ""))
    untrusted = bool(data.get("is_untrusted"))
    run_state.close(call, data["content"], refs_of(data), is_untrusted=untrusted)
    run_state.is_degraded = run_state.is_degraded and data["is_error"]
    run_state.interruption.unended[data["step"]] = data


def _on_guardrail(run_state: RunState, data: Data) -> None:
    details = data["details"]
    run_state.interruption.is_checked = True
    is_elsewhere = "tool" in details or "history" in details
    if "judge" in details and details["stage"] == "output" and not is_elsewhere:
        run_state.judged_rules.add(details["rule"])
    if "text" in details:
        run_state.replace_query(details["text"])
    if data["action"] == "block" and not details.get("observed") and not is_elsewhere:
        run_state.interruption.finding = data


def _on_task(run_state: RunState, data: Data) -> None:
    run_state.interruption.is_checked = True


def _on_error(run_state: RunState, data: Data) -> None:
    run_state.interruption.error = data
    run_state.interruption.model_step = None


def _on_finished(run_state: RunState, data: Data) -> None:
    run_state.is_over = True


def _on_status(run_state: RunState, data: Data) -> None:
    match data["kind"]:
        case StatusKind.DEGRADED:
            run_state.out_of_order.add(data["tool"])
            run_state.is_degraded = True
        case StatusKind.TOOL_FALLBACK:
            run_state.out_of_order.add(data["tool"])
        case StatusKind.MODEL_FALLBACK:
            run_state.model = data["to"]
        case StatusKind.CITATIONS_REMOVED | StatusKind.EARLIER_SOURCES:
            run_state.has_checked_citations = True
        case StatusKind.FIGURES_RETURNED:
            run_state.has_returned_draft = True
        case StatusKind.COMPACTION if is_compaction(data):
            compact(run_state, data)


def is_compaction(data: Data) -> bool:
    """Whether older turns were replaced, and not just left out of one request."""
    return data.get("kind") == StatusKind.COMPACTION and "replaced" in data


def compact(run_state: RunState, data: Data) -> None:
    """Replace the oldest messages as this note says."""
    text = data.get("summary", "")
    run_state.state.replace_first(data["replaced"], summary_messages(text) if text else [])


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
