"""Replays a run: its state after any event, and what each event changed.

Events are applied by the same projection as when they were saved, to unsaved rows, and rendered
by the same fragments as on a live page.
"""

from bisect import insort
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from agents.access.masking import Masker, mask_row
from agents.engine.events import DELTA_TYPES, Event, EventType
from agents.models import AgentStep, Approval, GuardrailHit, Run, RunEvent
from agents.runs.projection import Projection, Wait, queue_waits_of
from agents.web.presentation import RunView
from agents.web.presentation.live_run import LiveRunView

MAX_FRAMES = 250
MAX_HTML_CHARS = 1_500_000
# The state of a run before its first event.
INITIAL_RUN: dict[str, Any] = {
    "status": Run.Status.RUNNING,
    "stopped_reason": "",
    "answer": "",
    "output": None,
    "detail": "",
    "advice": "",
    "route": "",
    "version": "",
    "turns": 0,
    "tasks": 0,
    "tool_calls": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "cost": None,
    "takeovers": 0,
    "ended_at": None,
    "seconds": None,
    "waited": 0.0,
}


class ReplayProjection(Projection):
    """A run, its steps and approvals, as they were after an event."""

    def __init__(self, run: Run) -> None:
        self.seq = 0
        self.time = run.started_at
        self.speaker = ""
        self.last = run
        self.run = copy(run)
        vars(self.run).update(INITIAL_RUN)
        self._approvals: dict[int, Approval] = {}
        self._names = dict(run.approvals.values_list("step", "pk"))
        self._list: list[AgentStep] = []
        self._questions: list[Approval] = []
        vars(self.run)["_prefetched_objects_cache"] = {
            "steps": _prefill(self.run.steps.all(), self._list),
            "approvals": _prefill(self.run.approvals.all(), self._questions),
        }

    @classmethod
    def after(cls, run: Run, seq: int) -> "ReplayProjection":
        projection = cls(run)
        events = run.events.filter(seq__lte=seq).order_by("seq")
        projection.apply_events(row.value for row in events.exclude(type__in=DELTA_TYPES))
        if (last := events.last()) is not None:
            projection.seq = last.seq
            projection.time = last.time
        return projection

    def apply_events(self, events: Iterable[Event]) -> None:
        for event in events:
            self.take(self.run.pk, event)
            # What was saved without an event of its own.
            is_waiting = any(approval.is_waiting for approval in self._questions)
            if event.type is EventType.APPROVAL_RESOLVED and not is_waiting:
                self.run.status = Run.Status.RUNNING
            if event.type is EventType.RUN_FINISHED or event.data.get("kind") == "resumed":
                self.run.takeovers = self.last.takeovers
            self.seq = event.seq
            self.time = event.time
            if event.type not in DELTA_TYPES:
                self.speaker = event.agent

    def update_run(self, run: int, **changes: Any) -> None:
        vars(self.run).update(changes)

    def count(self, run: int, **amounts: float) -> None:
        for name, amount in amounts.items():
            setattr(self.run, name, (getattr(self.run, name) or 0) + amount)

    def add_step(self, step: AgentStep) -> None:
        insort(self._list, step, key=lambda step: step.number)

    def add_hit(self, hit: GuardrailHit) -> None:
        """Skip: it was counted when it was saved."""

    def update_step(self, run: int, event: Event, **changes: Any) -> None:
        self.steps(run, event).update(**changes)

    def steps(  # type: ignore[override]  # a list with the queryset methods used here
        self, run: int, event: Event
    ) -> "RowList":
        return self._find_steps(event.data["step"])

    def depth(self, run: int, number: int) -> int:
        return self._find_steps(number)[0].depth

    def beginning(self, run: int) -> tuple[datetime, bool]:
        return self.run.started_at, self.run.waited > 0

    def mark_outside_text(self, run: int) -> None:
        """Skip: the chat remembers it since the run ended."""

    def waits(self, run: int, *, has_queued: bool) -> list[Wait]:
        decision_waits: list[Wait] = [
            (approval.asked_at, approval.decided_at)
            for approval in self._questions
            if not approval.granted_scope
        ]
        return decision_waits + queue_waits_of(self._list)

    def step_types(self, run: int) -> str:
        """Return no tags: a replayed state is in no list."""
        return ""

    def ask(self, run: int, step: int, question: dict[str, Any]) -> None:
        pk = self._names.get(step, 0)
        self._approvals[step] = Approval(pk=pk, run=self.run, step=step, **question)
        self._questions[:] = self._approvals.values()

    def decide(self, run: int, step: int, **decision: Any) -> None:
        decider = get_user_model().objects.filter(pk=decision.pop("decided_by")).first()
        approval = self._approvals[step]
        vars(approval).update(decision)
        approval.decided_by = decider

    def withdraw(self, run: int, time: datetime, **condition: Any) -> None:
        pending = [approval for approval in self._questions if approval.is_waiting]
        withdrawn = {"verdict": Approval.Verdict.WITHDRAWN, "decided_at": time}
        RowList(pending).filter(**condition).update(**withdrawn)

    def was_declined(self, run: int, number: int) -> bool:
        statuses = {step.status for step in self._list if step.parent == number}
        return AgentStep.Status.REJECTED in statuses and AgentStep.Status.FAILED not in statuses

    def write(self) -> None:
        """Skip: nothing is saved."""

    _write_steps = write

    def _find_steps(self, number: int) -> "RowList":
        return RowList(step for step in self._list if step.number == number)


class RowList(list[Any]):
    """Found rows that can be updated like a queryset."""

    def filter(self, **same: Any) -> "RowList":
        return RowList(
            row
            for row in self
            if all(getattr(row, name) == value for name, value in same.items())
        )

    def update(self, **changes: Any) -> int:
        for row in self:
            vars(row).update(changes)
        return len(self)


def _prefill(rows: QuerySet[Any], results: list[Any]) -> QuerySet[Any]:
    """Prefill a queryset, so that the database isn't queried."""
    vars(rows).update(_result_cache=results, _prefetch_done=True)
    return rows


@dataclass
class ReplayRunView(LiveRunView):
    """A page that replays a run from an event on."""

    projection: ReplayProjection = field(kw_only=True)

    rest: ClassVar[float] = 0.0

    def last_saved_seq(self) -> int:
        return self.projection.seq

    def next(self, event: Event) -> str:
        """Return frames for the next event."""
        self.projection.apply_events([event])
        events = [event.to_dict()]
        return self.delta_frames(events) if self.are_deltas(events) else self.changes(events)

    def _row(self) -> Run:
        """Return the run; its final text is the only one that isn't masked yet."""
        run = self.projection.run
        return run if self.masker is None or run.is_live else mask_row(run)

    def _view(self, run: Run) -> RunView:
        """Return the view without feedback, which came later."""
        return replace(
            super()._view(run),
            now=self.projection.time,
            speaker=self.projection.speaker,
            is_judged=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What one event changed on the page, and when."""

    seq: int
    ms: int
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayChunk:
    """A part of a replay: the state after an event, and a frame per following event."""

    after: int
    until: int
    ms: int
    whole: str
    frames: list[Frame]


def replay_view(
    run: Run,
    seq: int,
    place: str = "chat",
    masker: Masker | None = None,
    viewer: int | None = None,
) -> ReplayRunView:
    """Return the page of a run after that event; before the first one, as asked.

    With a masker the run is already masked, and so is everything rendered.
    """
    return ReplayRunView(
        run.pk,
        place,
        viewer=viewer,
        masker=masker,
        projection=ReplayProjection.after(run, seq),
    )


def load_chunk(
    run: Run,
    seq: int,
    place: str = "chat",
    masker: Masker | None = None,
    viewer: int | None = None,
) -> ReplayChunk:
    view = replay_view(run, seq, place, masker, viewer)
    start_seq = view.projection.seq
    html = view.snapshot()
    ms = elapsed_ms(run, view.projection.time)
    frames = []
    size = 0
    rows = RunEvent.objects.filter(run=run, seq__gt=start_seq).order_by("seq")[:MAX_FRAMES]
    for event in (row.value for row in rows):
        frames.append(
            Frame(seq=event.seq, ms=elapsed_ms(run, event.time), html=view.next(event))
        )
        size += len(frames[-1].html)
        if size > MAX_HTML_CHARS:
            break
    until = frames[-1].seq if frames else start_seq
    return ReplayChunk(after=start_seq, until=until, ms=ms, whole=html, frames=frames)


def elapsed_ms(run: Run, time: datetime) -> int:
    """Return milliseconds since the run's start."""
    return max(0, round((time - run.started_at).total_seconds() * 1000))
