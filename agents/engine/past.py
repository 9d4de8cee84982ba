"""What was told of a run before it was cut off, sorted by what it belongs to."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from .events import Event, Type


class Past:
    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._under: dict[int | None, list[Event]] = defaultdict(list)
        self._ends: dict[int, Event] = {}
        for event in events:
            self._under[event.data.get("parent")].append(event)
            if event.type is Type.STEP:
                self._ends[event.data["step"]] = event

    def under(self, parent: int | None, type: Type) -> Iterator[Event]:
        """Events of this type that are a part of that step, the oldest first."""
        return (event for event in self._under.get(parent, ()) if event.type is type)

    def end(self, step: int) -> Event | None:
        return self._ends.get(step)

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

    def calls(self) -> Iterator[Event]:
        return (e for events in self._under.values() for e in events if e.type is Type.TOOL_CALL)
