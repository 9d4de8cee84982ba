"""What the start, a pause, an error and the end of a run change."""

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from agents.engine.events import Event
from agents.engine.loop import StopReason
from agents.models import AgentStep, Run

from .rows import ProjectedRows
from .waiting_time import waited_seconds

STATUS_BY_REASON = {
    StopReason.COMPLETED: Run.Status.COMPLETED,
    StopReason.DEGRADED: Run.Status.COMPLETED,
    StopReason.BLOCKED: Run.Status.BLOCKED,
    StopReason.ERROR: Run.Status.FAILED,
    StopReason.INTERRUPTED: Run.Status.INTERRUPTED,
}
# Fields of a run's start that describe its setup.
SETUP_FIELDS = ("model", "dialect", "instructions", "tools", "max_steps")
VERSION_CHARS = 8


def on_run_started(rows: ProjectedRows, run: int, event: Event) -> None:
    rows.update_run(run, route=event.data.get("route", ""), version=setup_version(event.data))


def setup_version(started: Mapping[str, Any]) -> str:
    """Return a short hash of a run's setup, equal for equal setups."""
    setup = {name: started.get(name) for name in SETUP_FIELDS}
    text = json.dumps(setup, sort_keys=True, ensure_ascii=False, default=str)
    return sha256(text.encode(errors="replace")).hexdigest()[:VERSION_CHARS]


def on_run_paused(rows: ProjectedRows, run: int, event: Event) -> None:
    if not event.is_replayed:
        rows.update_run(run, status=Run.Status.WAITING)


def on_error(rows: ProjectedRows, run: int, event: Event) -> None:
    rows.steps(run, event).filter(ended_at=None).update(
        status=AgentStep.Status.FAILED, observation=event.data["message"], ended_at=event.time
    )


def on_run_finished(rows: ProjectedRows, run: int, event: Event) -> None:
    reason = StopReason(event.data["stopped_reason"])
    ended = datetime.fromisoformat(event.data["ended"]) if "ended" in event.data else event.time
    began, has_queued = rows.beginning(run)
    step_types = rows.step_types(run)
    if f"|{AgentStep.Kind.TOOL}|" in step_types:
        rows.mark_outside_text(run)
    waits = rows.waits(run, has_queued=has_queued)
    rows.update_run(
        run,
        status=STATUS_BY_REASON.get(reason, Run.Status.STOPPED),
        stopped_reason=reason.value,
        answer=event.data["answer"],
        detail=event.data["detail"],
        advice=event.data["advice"],
        output=event.data.get("output"),
        turns=event.data["turns"],
        ended_at=ended,
        seconds=(seconds := max(0.0, (ended - began).total_seconds())),
        waited=min(seconds, waited_seconds(waits, ended)),
        step_types=step_types,
    )
    if waits:  # most runs need no approval
        rows.withdraw(run, ended)
