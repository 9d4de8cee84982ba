"""Outcomes of plan steps and their evaluations."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal, Self

from agents.engine.loop.tool_calls.call_events import MAX_OBSERVATION_CHARS

from ...tool import ToolResult

StepStatus = Literal["done", "failed", "skipped", "unreached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """Whether a result meets its expectation, why, and what the next plan should change."""

    is_met: bool
    reason: str = ""
    feedback: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        texts = {name: str(value.get(name) or "") for name in ("reason", "feedback")}
        return cls(is_met=bool(value.get("is_met")), **texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step's outcome; `number` is its row, or None if it was never started."""

    status: StepStatus
    output: Any = None
    reason: str = ""
    number: int | None = None
    finding: EvaluationResult | None = None

    @property
    def is_ok(self) -> bool:
        return self.status in {"done", "skipped"}

    @property
    def facts(self) -> dict[str, Any]:
        """The values that expressions can refer to."""
        return {"output": self.output, "status": self.status, "error": self.reason}

    @property
    def text(self) -> str:
        return to_text(self.output) if self.status == "done" else self.reason

    def to_dict(self) -> dict[str, Any]:
        finding = self.finding.to_dict() if self.finding else None
        facts = {"status": self.status, "output": self.output, "reason": self.reason}
        return {**facts, "finding": finding}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], number: int) -> Self:
        finding = value.get("finding")
        return cls(
            status=value["status"],
            output=value.get("output"),
            reason=value.get("reason", ""),
            number=number,
            finding=EvaluationResult.from_dict(finding) if finding else None,
        )


def result_value(result: ToolResult) -> Any:
    """Return the value later steps refer to: data if the tool returns data, else text.

    A number that a float can't hold exactly stays text.
    """
    text = result.output
    if len(text) > MAX_OBSERVATION_CHARS:
        return text
    if not result.is_data and text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return json.loads(text, parse_float=_exact_float)
    except (ValueError, RecursionError):
        return text


def _exact_float(literal: str) -> float | str:
    number = float(literal)
    return number if Decimal(repr(number)) == Decimal(literal) else literal


def to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
