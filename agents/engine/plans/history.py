"""What was told of a run before it was cut off, sorted by what it belongs to."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..events import Event, EventType


class RecordedEvents:
    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._under: dict[int | None, list[Event]] = defaultdict(list)
        self._tasks: dict[tuple[int | None, str, int], int] = {}
        self._ends: dict[int, Event] = {}
        self._responses: dict[str, Event] = {}
        for event in events:
            self._under[event.data.get("parent")].append(event)
            self._index(event)

    def under(self, parent: int | None, type: EventType) -> Iterator[Event]:
        """Events of this type that are a part of that step, the oldest first."""
        return (event for event in self._under.get(parent, ()) if event.type is type)

    def task(self, parent: int | None, name: str, version: int) -> int | None:
        """The row of this step of a plan, where it was begun."""
        return self._tasks.get((parent, name, version))

    def end(self, step: int) -> Event | None:
        return self._ends.get(step)

    def response(self, call: str) -> Event | None:
        return self._responses.get(call)

    def calls(self, step: int | None) -> Iterator[Event]:
        """Every call that was made for this step, or at all, whoever made it."""
        everything = (event for events in self._under.values() for event in events)
        events = everything if step is None else self.tree(step)
        return (event for event in events if event.type is EventType.TOOL_CALL)

    def tree(self, step: int) -> list[Event]:
        """All that was done for this step, and for what was done for it, in order."""
        found: list[Event] = []
        waiting, seen = [step], {step}
        while waiting:
            events = self._under.get(waiting.pop(), ())
            found += events
            steps = {event.data["step"] for event in events if "step" in event.data}
            waiting += steps - seen
            seen |= steps
        return sorted(found, key=lambda event: event.seq)

    def _index(self, event: Event) -> None:
        told = event.data
        if event.type is EventType.TASK and told["kind"] == "task":
            self._tasks[told.get("parent"), told["name"], told["plan"]] = told["step"]
        elif event.type is EventType.STEP:
            self._ends[told["step"]] = event
        elif event.type is EventType.TOOL_RESPONSE:
            self._responses[told["tool_call_id"]] = event
