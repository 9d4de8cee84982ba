"""What can happen in a run. Everything else reads this stream.

The first five types and their data are those of the wire format that other programs read;
an event that ends something says when it began (`started`), and belongs to a step (`step`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self


class Type(StrEnum):
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
    RUN_FINISHED = "run_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, as it is kept and sent."""

    type: Type
    data: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    seq: int = 0

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
            type=Type(value["type"]),
            data=value["data"],
            agent=value["agent"],
            time=datetime.fromisoformat(value["time"]),
            seq=value["seq"],
        )


class Stamp:
    """Gives events their agent, their time and their place in the run."""

    def __init__(self, agent: str, after: int = 0) -> None:
        self.agent = agent
        self.seq = after

    def __call__(self, type: Type, /, **data: Any) -> Event:
        self.seq += 1
        return Event(type=type, data=data, agent=self.agent, seq=self.seq)
