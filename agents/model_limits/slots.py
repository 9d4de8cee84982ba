"""The slots of models with limits, in the database. All times are the database's.

A transaction that admits calls locks the model's gate first and reads the slots in a second
statement, so it sees what the one before it has committed.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import Count, ExpressionWrapper, Q, Value
from django.db.models.functions import Now

from agents.engine.resilience import WINDOW_SECONDS, LimitKind, Limits
from agents.models import ModelGate, ModelSlot

LEASE_SECONDS = 20.0
RENEW_SECONDS = 5.0
ROUNDING = 1e-6  # of a request; drained floats are rarely whole


@dataclass(slots=True, kw_only=True)
class Line:
    """A model's line as a process sees it: which of its calls run, and where others stand."""

    admitted: set[str] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=dict)  # 1 is next
    limit: LimitKind = "concurrency"
    seconds: float | None = None  # until the next can be admitted, if known
    is_open: bool = False  # the next is ours, and a slot is free


@dataclass(frozen=True, slots=True)
class QueueLength:
    """How many calls of a model run and wait now."""

    running: int = 0
    waiting: int = 0


def join(key: str, model: str, limits: Limits) -> Line:
    """Join the line; run at once if it is empty and a slot is free."""
    with transaction.atomic():
        gate, now = _lock(model)
        _drain(gate, now, limits)
        slots = [*_live_slots(model, now, purge=True), (key, False)]
        line, admitted = _measure(gate, slots, limits, {key})
        ModelSlot.objects.create(
            key=key, model=model, is_running=bool(admitted), expires_at=_lease_end(now)
        )
        return _count(gate, limits, line, admitted)


def rejoin(key: str, model: str, limits: Limits) -> Line:
    """Join the line again at its end, after the place expired."""
    ModelSlot.objects.filter(key=key).delete()
    return join(key, model, limits)


def admit(model: str, limits: Limits, ours: Collection[str]) -> Line:
    """Admit our calls that are next; without a lock if none can be."""
    if not (line := look(model, limits, ours)).is_open:
        return line
    with transaction.atomic():
        gate, now = _lock(model)
        return _admit(gate, now, limits, ours)


def look(model: str, limits: Limits, ours: Collection[str]) -> Line:
    """Return the line as it is, without changing it."""
    gate = _with_time(ModelGate.objects.filter(model=model)).first()
    if gate is None:
        return Line(is_open=True)
    _drain(gate, gate.now, limits)
    return _measure(gate, _live_slots(model, gate.now), limits, ours)[0]


def leave(key: str, model: str, limits: Limits, tokens: int = 0) -> None:
    """Free the slot or the place in line, and count the tokens used."""
    if not tokens or limits.tokens is None:
        ModelSlot.objects.filter(key=key).delete()
        return
    with transaction.atomic():
        gate, now = _lock(model)
        _drain(gate, now, limits)
        gate.tokens_used += tokens
        gate.save()
        ModelSlot.objects.filter(key=key).delete()


def renew(keys: Iterable[str]) -> None:
    """Extend the slots and places of this process."""
    later = Now() + Value(timedelta(seconds=LEASE_SECONDS), models.DurationField())
    end = ExpressionWrapper(later, output_field=models.DateTimeField())
    ModelSlot.objects.filter(key__in=list(keys)).update(expires_at=end)


def queue_lengths() -> dict[str, QueueLength]:
    """Return how many calls run and wait now, by model."""
    live = ModelSlot.objects.filter(expires_at__gt=Now()).order_by().values("model")
    counted = live.annotate(
        running=Count("pk", filter=Q(is_running=True)),
        waiting=Count("pk", filter=Q(is_running=False)),
    )
    return {row["model"]: QueueLength(row["running"], row["waiting"]) for row in counted}


def _lock(model: str) -> tuple[ModelGate, datetime]:
    """Lock the model's gate until the transaction ends; return it with the time."""
    same = _with_time(ModelGate.objects.select_for_update().filter(model=model))
    gate = same.first()
    if gate is None:
        now = ExpressionWrapper(Now(), output_field=models.DateTimeField())
        new = ModelGate(model=model, counted_at=now)
        ModelGate.objects.bulk_create([new], ignore_conflicts=True)
        gate = same.get()
    return gate, gate.now


def _with_time(gates: Any) -> Any:
    return gates.annotate(now=ExpressionWrapper(Now(), output_field=models.DateTimeField()))


def _lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=LEASE_SECONDS)


def _live_slots(model: str, now: datetime, *, purge: bool = False) -> list[tuple[str, bool]]:
    """Return the model's slots in order of arrival, without those that expired."""
    slots = ModelSlot.objects.filter(model=model).order_by("pk")
    found = list(slots.values_list("key", "is_running", "expires_at"))
    live = [(key, is_running) for key, is_running, expires in found if expires > now]
    if purge and len(live) < len(found):
        slots.filter(expires_at__lte=now).delete()
    return live


def _admit(gate: ModelGate, now: datetime, limits: Limits, ours: Collection[str]) -> Line:
    """Admit our calls at the head of the line, as long as slots are free."""
    _drain(gate, now, limits)
    slots = _live_slots(gate.model, now, purge=True)
    line, admitted = _measure(gate, slots, limits, ours)
    if admitted:
        taken = ModelSlot.objects.filter(key__in=admitted)
        taken.update(is_running=True, expires_at=_lease_end(now))
    return _count(gate, limits, line, admitted)


def _count(gate: ModelGate, limits: Limits, line: Line, admitted: set[str]) -> Line:
    """Count the admitted calls as requests, and return the line behind them."""
    if admitted and limits.requests is not None:
        gate.requests_used += len(admitted)
        gate.save()
    line.admitted = admitted
    line.places = {key: place - len(admitted) for key, place in line.places.items()}
    line.places = {key: place for key, place in line.places.items() if key not in admitted}
    line.is_open = False
    return line


def _measure(
    gate: ModelGate, slots: list[tuple[str, bool]], limits: Limits, ours: Collection[str]
) -> tuple[Line, set[str]]:
    """Return the line, and which of our calls can run now."""
    running = sum(is_running for _, is_running in slots)
    waiting = [key for key, is_running in slots if not is_running]
    line = Line(places={key: at for at, key in enumerate(waiting, 1) if key in ours})
    line.admitted = {key for key, is_running in slots if is_running and key in ours}
    admitted: set[str] = set()
    for key in waiting:
        seconds = _blocked(gate, limits, running + len(admitted), len(admitted), line)
        if seconds is not None or key not in ours:
            line.seconds = seconds
            break
        admitted.add(key)
    line.is_open = bool(admitted)
    return line, admitted


def _blocked(
    gate: ModelGate, limits: Limits, running: int, admitted: int, line: Line
) -> float | None:
    """Return for how long a limit is reached, None if it isn't; infinite is unknown."""
    if limits.concurrency is not None and running >= limits.concurrency:
        line.limit = "concurrency"
        return float("inf")
    if limits.requests is not None:
        over = gate.requests_used + admitted + 1 - limits.requests
        if over > ROUNDING:
            line.limit = "requests"
            return over * WINDOW_SECONDS / limits.requests
    if limits.tokens is not None and (over := gate.tokens_used + 1 - limits.tokens) > ROUNDING:
        line.limit = "tokens"
        return over * WINDOW_SECONDS / limits.tokens
    return None


def _drain(gate: ModelGate, now: datetime, limits: Limits) -> None:
    """Let what was used drain at the limits' rate since it was counted."""
    share = max(0.0, (now - gate.counted_at).total_seconds()) / WINDOW_SECONDS
    gate.requests_used = max(0.0, gate.requests_used - share * (limits.requests or 0))
    gate.tokens_used = max(0.0, gate.tokens_used - share * (limits.tokens or 0))
    gate.counted_at = max(now, gate.counted_at)
