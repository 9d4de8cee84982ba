"""Metrics of runs, counted from events as they are saved.

No label contains users' text: models and tools have configured names only, up to a limit.
Runs of experiments are left out: they say nothing about what users get.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from agents.engine.events import Event, EventType, StatusKind
from agents.engine.loop import StopReason
from agents.models import Run
from agents.runs.projection import STATUS_BY_REASON

logger = logging.getLogger(__name__)

MAX_NAMES = 200
MAX_OPEN_TURNS = 10_000
OTHER = "other"
BUCKETS_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
EXECUTED_STATUSES = {"done", "failed", "unknown"}


class KnownNames:
    """Configured names; names that a model makes up aren't included."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def register(self, names: Iterable[str]) -> None:
        for name in names:
            if len(self._known) < MAX_NAMES:
                self._known.add(name)

    def __getitem__(self, name: str) -> str:
        return name if name in self._known else OTHER


class EventCounters:
    """Counts events. It is called for every batch on the event loop, so it only adds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, description: str, *labels: str) -> Counter:
            return Counter(f"ashiato_{name}", description, labels, registry=registry)

        def histogram(name: str, description: str, *labels: str) -> Histogram:
            name = f"ashiato_{name}"
            return Histogram(
                name, description, labels, buckets=BUCKETS_SECONDS, registry=registry
            )

        self.events = counter("events_saved", "Saved events.")
        self.runs_started = counter("runs_started", "Started runs.")
        self.runs_ended = counter("runs_ended", "Ended runs, by status.", "status")
        self.model_calls = counter("model_calls", "Model calls.", "model")
        self.model_errors = counter(
            "model_errors", "Model calls that failed after all retries.", "model"
        )
        self.model_retries = counter("model_retries", "Retried model calls.", "model")
        self.tokens = counter("model_tokens", "Tokens, by direction.", "model", "direction")
        self.cost = counter(
            "model_cost_usd",
            "Cost of model calls in USD, where the price is known.",
            "model",
        )
        self.first_token_seconds = histogram(
            "time_to_first_token_seconds",
            "Time from the model request to the first token.",
            "model",
        )
        self.tool_calls = counter("tool_calls", "Tool calls.", "tool")
        self.tool_errors = counter("tool_errors", "Failed tool calls.", "tool")
        self.tool_seconds = histogram("tool_seconds", "Duration of tool calls.", "tool")
        self._models = KnownNames()
        self._tools = KnownNames()
        # Running turns: model, and since when nothing was received.
        self._open: OrderedDict[tuple[int, int], tuple[str, datetime | None]] = OrderedDict()

    def on_events(self, run: Run, events: list[Event]) -> None:
        try:
            self.events.inc(len(events))
            if run.is_experiment_run:
                return
            for event in events:
                if (handler := HANDLERS.get(event.type)) is not None and not event.is_replayed:
                    handler(self, run, event)
        except Exception:  # whatever the error, it must not fail the event writer
            logger.exception("Can't update the metrics for run %s.", run.pk)

    def count_title(self, usage: Mapping[str, Any]) -> None:
        """Count the request for a chat's title, which is no event of a run."""
        self._models.register([usage["model"]])
        model = self._models[usage["model"]]
        self.model_calls.labels(model).inc()
        self._count_usage(model, usage)

    def _count_usage(self, model: str, usage: Mapping[str, Any]) -> None:
        self.tokens.labels(model, "prompt").inc(usage["prompt_tokens"])
        self.tokens.labels(model, "completion").inc(usage["completion_tokens"])
        self.cost.labels(model).inc(usage.get("cost") or 0)

    def _on_run_started(self, run: Run, event: Event) -> None:
        """Register the models and tools of a run or a handoff."""
        self._models.register([event.data["model"]])
        self._tools.register(tool["function"]["name"] for tool in event.data["tools"])
        self._tools.register(event.data.get("unsent_tools", ()))
        if event.type is EventType.RUN_STARTED:
            self.runs_started.inc()

    def _on_run_finished(self, run: Run, event: Event) -> None:
        reason = StopReason(event.data["stopped_reason"])
        self.runs_ended.labels(STATUS_BY_REASON.get(reason, Run.Status.STOPPED).value).inc()

    def _on_step_started(self, run: Run, event: Event) -> None:
        name = event.data["request"].get("model") or run.model
        self._models.register([name])
        model = self._models[name]
        self.model_calls.labels(model).inc()
        self._open[run.pk, event.data["step"]] = model, event.time
        if len(self._open) > MAX_OPEN_TURNS:
            self._open.popitem(last=False)

    def _on_delta(self, run: Run, event: Event) -> None:
        turn_key = run.pk, event.data["step"]
        model, began = self._open.get(turn_key, ("", None))
        if began is not None:
            self._open[turn_key] = model, None
            self.first_token_seconds.labels(model).observe((event.time - began).total_seconds())

    def _on_usage(self, run: Run, event: Event) -> None:
        model = self._models[event.data.get("model") or run.model]
        self._count_usage(model, event.data)

    def _on_error(self, run: Run, event: Event) -> None:
        """Count a failed turn; other errors that end a run aren't the model's."""
        if (turn := self._open.pop((run.pk, event.data["step"]), None)) is not None:
            self.model_errors.labels(turn[0]).inc()

    def _on_status(self, run: Run, event: Event) -> None:
        turn = self._open.get((run.pk, event.data["step"]))
        if event.data["kind"] == StatusKind.RETRY and turn is not None:
            self.model_retries.labels(turn[0]).inc()

    def _on_tool_response(self, run: Run, event: Event) -> None:
        """Count the failure of a tool whose fallback made the call."""
        if failed_tool := event.data.get("failed_tool"):
            name = self._tools[failed_tool]
            self.tool_calls.labels(name).inc()
            self.tool_errors.labels(name).inc()

    def _on_step(self, run: Run, event: Event) -> None:
        data = event.data
        self._open.pop((run.pk, data["step"]), None)
        if data["kind"] != "tool" or data["status"] not in EXECUTED_STATUSES:
            return
        tool = self._tools[data["action"]]
        self.tool_calls.labels(tool).inc()
        if data["status"] == "failed":
            self.tool_errors.labels(tool).inc()
        began = datetime.fromisoformat(data["started"])
        ended = datetime.fromisoformat(data["ended"]) if "ended" in data else event.time
        self.tool_seconds.labels(tool).observe(max(0.0, (ended - began).total_seconds()))


HANDLERS = {
    EventType.RUN_STARTED: EventCounters._on_run_started,
    EventType.HANDOFF: EventCounters._on_run_started,
    EventType.RUN_FINISHED: EventCounters._on_run_finished,
    EventType.STEP_STARTED: EventCounters._on_step_started,
    EventType.DELTA: EventCounters._on_delta,
    EventType.THOUGHT_DELTA: EventCounters._on_delta,
    EventType.USAGE: EventCounters._on_usage,
    EventType.ERROR: EventCounters._on_error,
    EventType.STATUS: EventCounters._on_status,
    EventType.TOOL_RESPONSE: EventCounters._on_tool_response,
    EventType.STEP: EventCounters._on_step,
}
