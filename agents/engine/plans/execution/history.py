"""The recorded events of an interrupted run, by step."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...events import Event, EventType


class RecordedEvents:
    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._under: dict[int | None, list[Event]] = defaultdict(list)
        self._tasks: dict[tuple[int | None, str, int], int] = {}
        self._ends: dict[int, Event] = {}
        self._responses: dict[str, Event] = {}
        for event in events:
            data = event.data
            self._under[data.get("parent")].append(event)
            if event.type is EventType.TASK and data["kind"] == "task":
                self._tasks[data.get("parent"), data["name"], data["plan"]] = data["step"]
            elif event.type is EventType.STEP:
                self._ends[data["step"]] = event
            elif event.type is EventType.TOOL_RESPONSE:
                self._responses[data["tool_call_id"]] = event

    def under(self, parent: int | None, type: EventType) -> Iterator[Event]:
        """Yield events of this type below that step, oldest first."""
        return (event for event in self._under.get(parent, ()) if event.type is type)

    def task(self, parent: int | None, name: str, version: int) -> int | None:
        """Return the row of this plan step, if it was started."""
        return self._tasks.get((parent, name, version))

    def end(self, step: int) -> Event | None:
        return self._ends.get(step)

    def response(self, call: str) -> Event | None:
        return self._responses.get(call)

    def calls(self, step: int | None) -> Iterator[Event]:
        """Yield every call made for this step or, without a step, in the run."""
        everything = (event for events in self._under.values() for event in events)
        events = everything if step is None else self.tree(step)
        return (event for event in events if event.type is EventType.TOOL_CALL)

    def tree(self, step: int) -> list[Event]:
        """Return all events below this step, at any depth, in order."""
        tree: list[Event] = []
        waiting = [step]
        visited = {step}
        while waiting:
            events = self._under.get(waiting.pop(), ())
            tree += events
            steps = {event.data["step"] for event in events if "step" in event.data}
            waiting += steps - visited
            visited |= steps
        return sorted(tree, key=lambda event: event.seq)
