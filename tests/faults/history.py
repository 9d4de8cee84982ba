"""What was displayed and saved during a fault, and the invariants that must hold."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

Rows = Sequence[dict[str, Any]]

LIVE = {"running", "waiting"}
STARTS = {"step_started", "task", "tool_call"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A message as sent; once acknowledged, the server must not lose it."""

    chat: int
    client_id: str
    text: str
    is_acknowledged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one tab displays at the end, and a page loaded then."""

    tab: str
    live: Any
    reloaded: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    sent: Sequence[Sent] = ()
    messages: Rows = ()
    runs: Rows = ()
    events: Rows = ()
    steps: Rows = ()
    approvals: Rows = ()
    effects: Sequence[str] = ()
    seen: Sequence[Seen] = ()
    told: Sequence[Sequence[dict[str, Any]]] = ()
    waits: frozenset[int] = field(default_factory=frozenset)

    def of(self, run: int) -> list[dict[str, Any]]:
        return [event for event in self.events if event["run_id"] == run]


Violations = Iterator[str]


def violations(history: History) -> list[str]:
    """Return all violations, with the names of their invariants."""
    return [f"{name}: {what}" for name, check in INVARIANTS.items() for what in check(history)]


def no_acknowledged_message_is_lost_or_doubled(history: History) -> Violations:
    kept = Counter(message["client_id"] for message in history.messages)
    for sent in history.sent:
        if sent.is_acknowledged and not kept[sent.client_id]:
            yield f"{sent.text!r} was acknowledged and is lost"
    for client_id, times in kept.items():
        if times > 1:
            yield f"{client_id} is kept {times} times"


def a_session_is_in_the_order_in_which_it_was_said(history: History) -> Violations:
    for chat in {sent.chat for sent in history.sent}:
        said = [sent.client_id for sent in history.sent if sent.chat == chat]
        mine = [m for m in history.messages if m["session_id"] == chat]
        kept = [message["client_id"] for message in mine]
        if kept != [client_id for client_id in said if client_id in kept]:
            yield f"chat {chat} is in another order"
        for message in mine:
            if message["run_id"] is None:
                yield f"message {message['pk']} of chat {chat} is answered by no run"


def events_are_numbered_without_a_gap_and_end_once(history: History) -> Violations:
    for run in history.runs:
        events = history.of(run["pk"])
        numbers = [event["seq"] for event in events]
        if numbers != list(range(1, len(events) + 1)):
            yield f"the events of run {run['pk']} are numbered {numbers}"
        ends = [at for at, event in enumerate(events) if event["type"] == "run_finished"]
        wanted = [] if run["status"] in LIVE else [len(events) - 1]
        if ends != wanted:
            yield f"run {run['pk']} is {run['status']}, and its ends are at {ends}"


def a_step_begins_once_and_ends_once(history: History) -> Violations:
    over = {run["pk"] for run in history.runs if run["status"] not in LIVE}
    for run in over:
        events = history.of(run)
        begun = Counter(e["data"]["step"] for e in events if e["type"] in STARTS)
        ended = Counter(e["data"]["step"] for e in events if e["type"] == "step")
        failed = {e["data"]["step"] for e in events if e["type"] == "error"}
        again = _made_again(events)
        for step, times in begun.items():
            if times > 1 + again[step]:
                yield f"step {step} of run {run} began {times} times"
            if ended[step] != 1 and not (ended[step] == 0 and step in failed):
                yield f"step {step} of run {run} ended {ended[step]} times"
    for step in history.steps:
        if step["run_id"] in over and step["ended_at"] is None:
            yield f"step {step['number']} of run {step['run_id']} never ended"


def _made_again(events: Rows) -> Counter[int]:
    """Return how often a user had an uncertain call repeated."""
    unknown: set[int] = set()
    again: Counter[int] = Counter()
    for event in events:
        data = event["data"]
        if event["type"] == "approval_requested" and data["why"] == "unknown":
            unknown.add(data["step"])
        elif event["type"] == "approval_resolved" and data["step"] in unknown:
            again[data["step"]] += data["is_approved"]
    return again


def a_run_comes_to_an_end_and_a_session_has_one_at_a_time(history: History) -> Violations:
    live = [run for run in history.runs if run["status"] in LIVE]
    for run in live:
        if run["pk"] not in history.waits:
            yield f"run {run['pk']} is still {run['status']}"
    for topic, times in Counter(run["topic"] for run in live).items():
        if times > 1:
            yield f"{times} runs live on {topic}"


def what_must_not_happen_twice_does_not_and_was_begun(history: History) -> Violations:
    begun = [
        f"{event['data']['function']['name']} {_first(event['data']['function']['arguments'])}"
        for event in history.events
        if event["type"] == "tool_call"
    ]
    for effect, times in Counter(history.effects).items():
        if times > 1:
            yield f"{effect!r} happened {times} times"
        if effect not in begun:
            yield f"{effect!r} happened, and no call of it is kept"


def every_tab_shows_what_a_new_page_shows(history: History) -> Violations:
    for seen in history.seen:
        if seen.live != seen.reloaded:
            yield f"{seen.tab} differs: {_difference(seen.live, seen.reloaded)}"


def a_model_is_told_only_whole_exchanges(history: History) -> Violations:
    for number, messages in enumerate(history.told):
        yield from (f"history {number}: {fault}" for fault in _illegal(messages))


INVARIANTS: dict[str, Callable[[History], Violations]] = {
    "I1": no_acknowledged_message_is_lost_or_doubled,
    "I2": a_session_is_in_the_order_in_which_it_was_said,
    "I3": events_are_numbered_without_a_gap_and_end_once,
    "I4": a_step_begins_once_and_ends_once,
    "I5": a_run_comes_to_an_end_and_a_session_has_one_at_a_time,
    "I6": what_must_not_happen_twice_does_not_and_was_begun,
    "I7": every_tab_shows_what_a_new_page_shows,
    "I8": a_model_is_told_only_whole_exchanges,
}


def _illegal(messages: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield calls without a result right after them, and results without a call."""
    open_calls: set[str] = set()
    for is_tool, group in groupby(messages, lambda message: message["role"] == "tool"):
        if is_tool:
            answered = [message["tool_call_id"] for message in group]
            if orphans := set(answered) - open_calls:
                yield f"{sorted(orphans)} were never called"
            if len(answered) != len(set(answered)):
                yield f"{answered} holds an answer twice"
            open_calls -= set(answered)
            continue
        for message in group:
            if open_calls:
                yield f"{sorted(open_calls)} have no answer"
            open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    if open_calls:
        yield f"{sorted(open_calls)} have no answer"


def _first(arguments: str) -> str:
    try:
        return str(next(iter(json.loads(arguments).values()), ""))
    except (ValueError, AttributeError):
        return arguments


def _difference(one: Any, other: Any) -> str:
    """Return the first difference between two shapes."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return next((_difference(a, b) for a, b in pairs if a != b), "")
    return f"{str(one)[:200]} is not {str(other)[:200]}"
