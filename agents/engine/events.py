"""The events of a run.

Everything else reads this stream. The first five types and their data are the wire format that
other programs read. An event that ends something has its start time (`started`) and its step
(`step`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from . import clock


class EventType(StrEnum):
    DELTA = "delta"
    TOOL_CALL = "tool_call"
    TOOL_RESPONSE = "tool_response"
    USAGE = "usage"
    ERROR = "error"

    RUN_STARTED = "run_started"
    STEP_STARTED = "step_started"
    THOUGHT_DELTA = "thought_delta"
    THOUGHT = "thought"
    GUARDRAIL = "guardrail"
    STATUS = "status"
    STEP = "step"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_RESOLVED = "approval_resolved"
    PLAN = "plan"
    TASK = "task"
    EVALUATION = "evaluation"
    HANDOFF = "handoff"
    HANDOFF_RETURN = "handoff_return"
    RUN_PAUSED = "run_paused"
    RUN_FINISHED = "run_finished"


# Streamed text; the whole text is in the event that ends its step.
DELTA_TYPES = (EventType.DELTA, EventType.THOUGHT_DELTA)


class StatusKind(StrEnum):
    """Kinds of `status` events, each with the data that it has besides its step."""

    CITATIONS_REMOVED = "citations_removed"  # numbers that no source has
    COMPACTION = "compaction"  # dropped, shortened: messages; see also `compaction_note`
    DEGRADED = "degraded"  # tool
    EARLIER_SOURCES = "earlier_sources"  # sources: cited passages of earlier answers
    EMBEDDED_INSTRUCTIONS = "embedded_instructions"  # tool, message: what it returned
    EXPERIENCE = "experience"  # used: experiences of earlier runs
    FIGURES_RETURNED = "figures_returned"  # figures of the draft that no result has
    FILES_READ = "files_read"  # model, count, cost: how the question's files became text
    FINISHED_ANYWAY = "finished_anyway"  # Stop came too late
    LIMITED = "limited"  # limit, most, model, place in line (0: its turn), since, waited
    MEMORY = "memory"  # saved, used: memories
    MODEL_FALLBACK = "model_fallback"  # from, to, message
    REPLAYED = "replayed"
    RERANKED = "reranked"  # model, or message: why not
    RESUMED = "resumed"
    RETRY = "retry"  # message, seconds, attempt, tool if it is a tool's
    SAMPLING = "sampling"  # tool, source, prompt, reply, model; message if it was refused
    SLOW = "slow"  # seconds
    TOOLS_SELECTED = "tools_selected"  # sent: name, why, score; left_out: names; count of them
    TOOL_FALLBACK = "tool_fallback"  # tool, stand_in, message, is_preferred
    TOOL_PROGRESS = "tool_progress"  # tool, progress, total, message
    UNSENT_ATTACHMENTS = "unsent_attachments"  # count, message
    UNSENT_TOOL = "unsent_tool"  # tool, how (`direct`, `bridge`), is_known, function if it is


# The note of a step whose provider reported more than was sent and asked for.
REPORTED_USAGE_NOTE = "reported_usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a run, as it is saved and sent."""

    type: EventType
    data: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    seq: int = 0

    @property
    def is_replayed(self) -> bool:
        """Whether the event happened in another run and is replayed in this one."""
        return bool(self.data.get("replayed"))

    def to_dict(self) -> dict[str, Any]:
        return {
            "time": self.time.isoformat(timespec="milliseconds"),
            "agent": self.agent,
            "type": self.type.value,
            "data": dict(self.data),
            "seq": self.seq,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            type=EventType(value["type"]),
            data=value["data"],
            agent=value["agent"],
            time=datetime.fromisoformat(value["time"]),
            seq=value["seq"],
        )


def mark_replayed(event: Event) -> Event:
    """Return the event marked as replayed, with its time and number unchanged."""
    return replace(event, data={**event.data, "replayed": True})


@dataclass(slots=True)
class RunCounters:
    """Number of events and steps in a run so far, across all its agents."""

    seq: int = 0
    steps: int = 0


class EventFactory:
    """Gives events their agent, time and place in the run.

    Events of an agent that works for another one have that agent's step as `parent`.
    """

    def __init__(self, agent: str, after: int = 0, *, steps: int = 0) -> None:
        self.agent = agent
        self.counters = RunCounters(after, steps)
        self.parent: int | None = None
        self.clock = clock.current()

    def __call__(self, type: EventType, /, **data: Any) -> Event:
        self.counters.seq += 1
        if self.parent is not None:
            data["parent"] = self.parent
        time = self.clock.now()
        return Event(type=type, data=data, agent=self.agent, time=time, seq=self.counters.seq)

    @property
    def seq(self) -> int:
        return self.counters.seq

    def next_step(self) -> int:
        self.counters.steps += 1
        return self.counters.steps

    def child(self, agent: str, parent: int) -> "EventFactory":
        """Return a factory for an agent that works for this one in the same run."""
        factory = EventFactory(agent)
        factory.counters = self.counters
        factory.parent = parent
        factory.clock = self.clock
        return factory
