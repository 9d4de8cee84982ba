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
class QueueState:
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


def join(key: str, model: str, limits: Limits) -> QueueState:
    """Join the line; run at once if it is empty and a slot is free."""
    with transaction.atomic():
        gate, now = _lock(model)
        _drain(gate, now, limits)
        slots = [*_live_slots(model, now, purge=True), (key, False)]
        queue, admitted = _measure(gate, slots, limits, {key})
        ModelSlot.objects.create(
            key=key, model=model, is_running=bool(admitted), expires_at=_lease_end(now)
        )
        return _count(gate, limits, queue, admitted)


def rejoin(key: str, model: str, limits: Limits) -> QueueState:
    """Join the line again at its end, after the place expired."""
    ModelSlot.objects.filter(key=key).delete()
    return join(key, model, limits)


def admit(model: str, limits: Limits, own_keys: Collection[str]) -> QueueState:
    """Admit our calls that are next; without a lock if none can be."""
    if not (queue := read_queue(model, limits, own_keys)).is_open:
        return queue
    with transaction.atomic():
        gate, now = _lock(model)
        return _admit(gate, now, limits, own_keys)


def read_queue(model: str, limits: Limits, own_keys: Collection[str]) -> QueueState:
    """Return the line as it is, without changing it."""
    gate = _with_time(ModelGate.objects.filter(model=model)).first()
    if gate is None:
        return QueueState(is_open=True)
    _drain(gate, gate.now, limits)
    return _measure(gate, _live_slots(model, gate.now), limits, own_keys)[0]


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
    gates = _with_time(ModelGate.objects.select_for_update().filter(model=model))
    gate = gates.first()
    if gate is None:
        now = ExpressionWrapper(Now(), output_field=models.DateTimeField())
        new = ModelGate(model=model, counted_at=now)
        ModelGate.objects.bulk_create([new], ignore_conflicts=True)
        gate = gates.get()
    return gate, gate.now


def _with_time(gates: Any) -> Any:
    return gates.annotate(now=ExpressionWrapper(Now(), output_field=models.DateTimeField()))


def _lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=LEASE_SECONDS)


def _live_slots(model: str, now: datetime, *, purge: bool = False) -> list[tuple[str, bool]]:
    """Return the model's slots in order of arrival, without those that expired."""
    slots = ModelSlot.objects.filter(model=model).order_by("pk")
    rows = list(slots.values_list("key", "is_running", "expires_at"))
    live = [(key, is_running) for key, is_running, expires in rows if expires > now]
    if purge and len(live) < len(rows):
        slots.filter(expires_at__lte=now).delete()
    return live


def _admit(
    gate: ModelGate, now: datetime, limits: Limits, own_keys: Collection[str]
) -> QueueState:
    """Admit our calls at the head of the line, as long as slots are free."""
    _drain(gate, now, limits)
    slots = _live_slots(gate.model, now, purge=True)
    queue, admitted = _measure(gate, slots, limits, own_keys)
    if admitted:
        taken = ModelSlot.objects.filter(key__in=admitted)
        taken.update(is_running=True, expires_at=_lease_end(now))
    return _count(gate, limits, queue, admitted)


def _count(
    gate: ModelGate, limits: Limits, queue: QueueState, admitted: set[str]
) -> QueueState:
    """Count the admitted calls as requests, and return the line behind them."""
    if admitted and limits.requests is not None:
        gate.requests_used += len(admitted)
        gate.save()
    queue.admitted = admitted
    queue.places = {key: place - len(admitted) for key, place in queue.places.items()}
    queue.places = {key: place for key, place in queue.places.items() if key not in admitted}
    queue.is_open = False
    return queue


def _measure(
    gate: ModelGate, slots: list[tuple[str, bool]], limits: Limits, own_keys: Collection[str]
) -> tuple[QueueState, set[str]]:
    """Return the line, and which of our calls can run now."""
    running = sum(is_running for _, is_running in slots)
    waiting = [key for key, is_running in slots if not is_running]
    queue = QueueState(
        places={key: place for place, key in enumerate(waiting, 1) if key in own_keys}
    )
    queue.admitted = {key for key, is_running in slots if is_running and key in own_keys}
    admitted: set[str] = set()
    for key in waiting:
        seconds = _blocked(gate, limits, running + len(admitted), len(admitted), queue)
        if seconds is not None or key not in own_keys:
            queue.seconds = seconds
            break
        admitted.add(key)
    queue.is_open = bool(admitted)
    return queue, admitted


def _blocked(
    gate: ModelGate, limits: Limits, running: int, admitted: int, queue: QueueState
) -> float | None:
    """Return for how long a limit is reached, None if it isn't; infinite is unknown."""
    if limits.concurrency is not None and running >= limits.concurrency:
        queue.limit = "concurrency"
        return float("inf")
    if limits.requests is not None:
        over = gate.requests_used + admitted + 1 - limits.requests
        if over > ROUNDING:
            queue.limit = "requests"
            return over * WINDOW_SECONDS / limits.requests
    if limits.tokens is not None and (over := gate.tokens_used + 1 - limits.tokens) > ROUNDING:
        queue.limit = "tokens"
        return over * WINDOW_SECONDS / limits.tokens
    return None


def _drain(gate: ModelGate, now: datetime, limits: Limits) -> None:
    """Let what was used drain at the limits' rate since it was counted."""
    share = max(0.0, (now - gate.counted_at).total_seconds()) / WINDOW_SECONDS
    gate.requests_used = max(0.0, gate.requests_used - share * (limits.requests or 0))
    gate.tokens_used = max(0.0, gate.tokens_used - share * (limits.tokens or 0))
    gate.counted_at = max(now, gate.counted_at)
