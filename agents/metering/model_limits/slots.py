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

from agents.engine.resilience import WINDOW_SECONDS, LimitKind, Limits, TokenBucket
from agents.models import ModelGate, ModelSlot

LEASE_SECONDS = 20.0
RENEW_SECONDS = 5.0
PER_MINUTE: tuple[LimitKind, ...] = ("requests", "tokens")


@dataclass(slots=True, kw_only=True)
class QueueState:
    """A model's line as a process sees it: which of its calls run, and where others stand."""

    admitted: set[str] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=dict)  # 1 is next
    limit: LimitKind = "concurrency"
    seconds: float | None = None  # until the next can be admitted, if known


@dataclass(frozen=True, slots=True)
class QueueLength:
    """How many calls of a model run and wait now."""

    running: int = 0
    waiting: int = 0


class Gate:
    """A model's limits and what was used of them, at the time when its row was read."""

    def __init__(self, row: Any, limits: Limits) -> None:
        self.row = row
        self.limits = limits
        self.now: datetime = row.now
        self.lease_end = self.now + timedelta(seconds=LEASE_SECONDS)
        self.buckets: dict[LimitKind, TokenBucket] = {}
        for limit in PER_MINUTE:
            if max_amount := limits.most(limit):
                self.buckets[limit] = TokenBucket(
                    max_amount,
                    max_amount / WINDOW_SECONDS,
                    used=getattr(row, f"{limit}_used"),
                    since=row.counted_at.timestamp(),
                    clock=self.now.timestamp,
                )

    def spend(self, limit: LimitKind, permits: int) -> None:
        """Count requests or tokens, unless they have no limit; `save` keeps it."""
        if limit in self.buckets:
            self.buckets[limit].spend(permits)

    def save(self) -> None:
        for limit, bucket in self.buckets.items():
            setattr(self.row, f"{limit}_used", bucket.used)
        self.row.counted_at = max(self.now, self.row.counted_at)
        self.row.save()

    def live_slots(self, *, purge: bool = False) -> list[tuple[str, bool]]:
        """Return the model's slots in order of arrival, without those that expired."""
        slots = ModelSlot.objects.filter(model=self.row.model).order_by("pk")
        rows = list(slots.values_list("key", "is_running", "expires_at"))
        live = [(key, is_running) for key, is_running, expires in rows if expires > self.now]
        if purge and len(live) < len(rows):
            slots.filter(expires_at__lte=self.now).delete()
        return live

    def admit_next(
        self, slots: list[tuple[str, bool]], own_keys: Collection[str]
    ) -> tuple[QueueState, list[str]]:
        """Return the line, and which of our calls at its head can run now."""
        running = sum(is_running for _, is_running in slots)
        waiting = [key for key, is_running in slots if not is_running]
        queue = QueueState()
        admitted: list[str] = []
        for key in waiting:
            if self.limits.concurrency is not None and running >= self.limits.concurrency:
                queue.limit = "concurrency"
                queue.seconds = float("inf")  # nobody knows when a call ends
                break
            for limit, bucket in self.buckets.items():
                if seconds := bucket.seconds_until_free():
                    queue.limit = limit
                    queue.seconds = seconds
                    break
            if queue.seconds is not None or key not in own_keys:
                break
            self.spend("requests", 1)
            running += 1
            admitted.append(key)
        behind = enumerate(waiting[len(admitted) :], 1)
        queue.places = {key: position for position, key in behind if key in own_keys}
        queue.admitted = {key for key, is_running in slots if is_running and key in own_keys}
        queue.admitted.update(admitted)
        return queue, admitted


def join(key: str, model: str, limits: Limits) -> QueueState:
    """Join the line; run at once if it is empty and a slot is free."""
    with transaction.atomic():
        gate = _lock(model, limits)
        slots = [*gate.live_slots(purge=True), (key, False)]
        queue, admitted = gate.admit_next(slots, {key})
        ModelSlot.objects.create(
            key=key, model=model, is_running=bool(admitted), expires_at=gate.lease_end
        )
        if admitted and limits.requests is not None:
            gate.save()
    return queue


def rejoin(key: str, model: str, limits: Limits) -> QueueState:
    """Join the line again at its end, after the place expired."""
    ModelSlot.objects.filter(key=key).delete()
    return join(key, model, limits)


def admit(model: str, limits: Limits, own_keys: Collection[str]) -> QueueState:
    """Admit our calls that are next; without a lock if none can be."""
    row = _gate_rows(model).first()
    if row is not None:
        gate = Gate(row, limits)
        queue, admitted = gate.admit_next(gate.live_slots(), own_keys)
        if not admitted:
            return queue
    with transaction.atomic():
        gate = _lock(model, limits)
        queue, admitted = gate.admit_next(gate.live_slots(purge=True), own_keys)
        if admitted:
            rows = ModelSlot.objects.filter(key__in=admitted)
            rows.update(is_running=True, expires_at=gate.lease_end)
        if admitted and limits.requests is not None:
            gate.save()
    return queue


def leave(key: str, model: str, limits: Limits, tokens: int = 0) -> None:
    """Free the slot or the place in line, and count the tokens used."""
    if not tokens or limits.tokens is None:
        ModelSlot.objects.filter(key=key).delete()
        return
    with transaction.atomic():
        gate = _lock(model, limits)
        gate.spend("tokens", tokens)
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


def _lock(model: str, limits: Limits) -> Gate:
    """Lock the model's gate until the transaction ends."""
    rows = _gate_rows(model).select_for_update()
    row = rows.first()
    if row is None:
        counted_at = ExpressionWrapper(Now(), output_field=models.DateTimeField())
        new = ModelGate(model=model, counted_at=counted_at)
        ModelGate.objects.bulk_create([new], ignore_conflicts=True)
        row = rows.get()
    return Gate(row, limits)


def _gate_rows(model: str) -> Any:
    database_time = ExpressionWrapper(Now(), output_field=models.DateTimeField())
    return ModelGate.objects.filter(model=model).annotate(now=database_time)
