"""How long people, and turns in a model's line, were waited for."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from agents.engine.events import StatusKind
from agents.models import AgentStep

from ..intervals import total_length, union

Wait = tuple[datetime, datetime | None]


def waited_seconds(waits: Iterable[Wait], until: datetime) -> float:
    """Return how many seconds were waited, counting overlaps once."""
    spans = [
        (requested.timestamp(), (answered or until).timestamp())
        for requested, answered in waits
    ]
    return total_length(union((start, min(end, until.timestamp())) for start, end in spans))


def queue_waits(notes: Sequence[Any], ended: datetime | None) -> list[Wait]:
    """Return when a step waited for its model, from its notes; None is until now."""
    return [
        (since, since + timedelta(seconds=note["waited"]))
        # It is its turn, or it has given up and did something else.
        if not note["place"] or note is not notes[-1]
        else (since, ended)
        for note in notes
        if isinstance(note, dict) and note["kind"] == StatusKind.LIMITED and "since" in note
        for since in [datetime.fromisoformat(note["since"])]
    ]


def queue_waits_of(steps: Iterable[AgentStep]) -> list[Wait]:
    """Return when these steps waited for their models."""
    return [
        wait for step in steps if step.notes for wait in queue_waits(step.notes, step.ended_at)
    ]


def load_queue_waits(run: int) -> list[Wait]:
    """Return when the steps of a run waited for their models."""
    noted = AgentStep.objects.filter(run=run).exclude(notes=[])
    return queue_waits_of(noted.only("notes", "ended_at"))
