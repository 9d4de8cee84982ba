"""Measures that are added up, and the rates that follow from them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F
from django.db.models.expressions import Combinable

from . import histograms
from .histograms import Histogram
from .models import MEASURES, Figures

NANOS = 1_000_000_000
COST_LINES = ("answer_cost", "replan_cost", "retry_cost", "check_cost", "title_cost")
# The same as `Totals.cost`, in billionths of a dollar, and `Totals.tokens`, in queries.
COST_COLUMNS: Combinable = sum((F(name) for name in COST_LINES[1:]), F(COST_LINES[0]))
TOKEN_COLUMNS: Combinable = F("input_tokens") + F("output_tokens")


@dataclass(slots=True)
class Totals:
    """Sums over runs; `calls` and `call_ms` are those of one tool's calls."""

    measures: Counter[str] = field(default_factory=Counter)
    active: Histogram = field(default_factory=Counter)
    first: Histogram = field(default_factory=Counter)
    calls: Histogram = field(default_factory=Counter)
    call_ms: int = 0

    def __getitem__(self, name: str) -> int:
        return self.measures[name]

    def __add__(self, other: "Totals") -> "Totals":
        measures = self.measures.copy()
        measures.update(other.measures)  # unlike +, it keeps what is below zero
        return Totals(
            measures=measures,
            active=self.active + other.active,
            first=self.first + other.first,
            calls=self.calls + other.calls,
            call_ms=self.call_ms + other.call_ms,
        )

    def merge(self, other: "Totals") -> None:
        self.measures.update(other.measures)
        self.active.update(other.active)
        self.first.update(other.first)
        self.calls.update(other.calls)
        self.call_ms += other.call_ms

    def add_measures(self, row: Mapping[str, Any]) -> None:
        for name in MEASURES:
            if row[name]:
                self.measures[name] += int(row[name])

    def add_run(self, row: Mapping[str, Any]) -> None:
        """Add one summary."""
        self.add_measures(row)
        if row["active_class"] is not None:
            self.active[row["active_class"]] += 1
        if row["first_class"] is not None:
            self.first[row["first_class"]] += 1

    def add_calls(self, row: Mapping[str, Any], tool: Mapping[str, Any]) -> None:
        """Add a summary with the calls of one tool instead of all."""
        own = {"tool_calls": tool["calls"], "tool_errors": tool["errors"]}
        self.add_run({**row, **own, "tool_timeouts": tool["timeouts"]})
        self.call_ms += tool["call_ms"]
        histograms.add_encoded(self.calls, tool["call_histogram"])

    def add_figures(self, row: Figures) -> None:
        self.add_measures(vars(row))
        self.call_ms += row.call_ms
        self.add_histograms(row.active_histogram, row.first_histogram, row.call_histogram)

    def add_histograms(self, active: str, first: str, calls: str = "") -> None:
        histograms.add_encoded(self.active, active)
        histograms.add_encoded(self.first, first)
        histograms.add_encoded(self.calls, calls)

    def columns(self) -> dict[str, Any]:
        """Return what a row of figures stores."""
        return {
            **self.measures,
            "call_ms": self.call_ms,
            "active_histogram": histograms.encode(self.active),
            "first_histogram": histograms.encode(self.first),
            "call_histogram": histograms.encode(self.calls),
        }

    @property
    def decided(self) -> int:
        """Runs that ended by themselves: neither stopped by a user nor out of budget."""
        return self["runs"] - self["cancelled"] - self["over_budget"]

    @property
    def ratings(self) -> int:
        return self["ratings_up"] + self["ratings_down"]

    @property
    def cost(self) -> float:
        """Dollars, without calls of an unknown price."""
        return sum(self[name] for name in COST_LINES) / NANOS

    @property
    def cost_per_run(self) -> float | None:
        priced = self["runs"] - self["unpriced"]
        return self.cost / priced if priced > 0 else None

    @property
    def tokens(self) -> int:
        return self["input_tokens"] + self["output_tokens"]

    @property
    def seconds_per_call(self) -> float | None:
        count = self.calls.total()
        return self.call_ms / 1000 / count if count else None

    def percentile(self, name: str, share: float) -> float | None:
        """Return seconds of a histogram: of active time, to the first word, or of calls."""
        histogram = {"active": self.active, "first": self.first, "calls": self.calls}[name]
        milliseconds = histograms.percentile(histogram, share)
        return None if milliseconds is None else milliseconds / 1000
