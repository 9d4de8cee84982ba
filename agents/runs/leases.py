"""Leases: which process owns a run, for as long as it sends heartbeats.

A lease is an owner, an epoch and a heartbeat by the database's clock. Taking over a run raises
its epoch in one statement, so only one process can; writes of a former owner are rejected,
because they name an old epoch.

It isn't one of `agents.db.claims` because a process has hundreds of runs: one statement renews
all of them, and one per batch of events checks and locks them in the writing transaction
(`lock_epochs`). The owner's name tells at once that a process of this machine is dead, so a run
doesn't wait for the end of its lease; and a waiting run has an epoch, but no owner.
"""

import os
import secrets
import socket
from collections.abc import Collection, Iterable
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import (
    Case,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Now

from agents.db import jobs
from agents.db.compiled_queries import compiled_query
from agents.db.raw_cursor import fetch
from agents.models import AgentStep, Run

# A random token, because in a container every process has the same PID as its predecessor.
PROCESS_TOKEN = secrets.token_hex(4)
# Hostnames can be shared, and PIDs are only valid in one container and boot.
NAMESPACE_PATH = Path("/proc/self/ns/pid")
BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")
BOOT_NAMESPACE = (
    f"{BOOT_ID_PATH.read_text()[:8]}.{NAMESPACE_PATH.stat().st_ino}"
    if BOOT_ID_PATH.exists()
    else ""
)
HOST = f"{socket.gethostname()}/{BOOT_NAMESPACE}"
HEARTBEAT_SECONDS = 5.0
LEASE_SECONDS = 20.0
KIND = "run"


def owner() -> str:
    return f"{os.getpid()}.{PROCESS_TOKEN}@{HOST}"


def owner_fields() -> dict[str, Any]:
    """Return the owner of a run to continue: this process, or none if workers drive runs."""
    if settings.WORKERS:
        return {"owner": "", "heartbeat_at": None}
    return {"owner": owner(), "heartbeat_at": Now()}


def is_ours(run: Run) -> bool:
    return run.owner == owner()


def lock_epochs(pks: Collection[int]) -> dict[int, int]:
    """Return the epochs of these live runs; only the process with that epoch may write.

    Call it in the writing transaction: it locks the rows until then.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    rows: list[Any] = fetch(wrapper, _epochs_sql(len(pks)), [Run.Status.RUNNING, *pks])
    return dict(rows)


@lru_cache(maxsize=256)
def _epochs_sql(count: int) -> str:
    """Return the SQL, written by hand because every batch runs it."""
    table = connection.ops.quote_name(Run._meta.db_table)
    placeholders = ", ".join(["%s"] * count)
    can_lock = connection.features.has_select_for_update
    lock = connection.ops.for_update_sql() if can_lock else ""
    return f"SELECT id, epoch FROM {table} WHERE status = %s AND id IN ({placeholders}) {lock}"


def renew(runs: Iterable[Run]) -> None:
    held_runs = Run.objects.running().filter(pk__in=[run.pk for run in runs], owner=owner())
    held_runs.update(heartbeat_at=Now())


def release(run: Run) -> None:
    """Release the lease, so that another process can take it at once."""
    Run.objects.filter(pk=run.pk, epoch=run.epoch).update(heartbeat_at=None)


def request_stop(run: Run) -> bool:
    """Ask the owner to stop the run; return False if it has none."""
    driven = Run.objects.running().filter(pk=run.pk, heartbeat_at__isnull=False)
    return bool(driven.update(is_to_stop=True))


def stop_requests(runs: Iterable[Run]) -> tuple[set[int], set[int]]:
    """Return which of these runs should stop, and which belong to another process now."""
    epochs = {run.pk: run.epoch for run in runs}
    to_stop: set[int] = set()
    lost = set(epochs)
    for pk, epoch, is_to_stop in _live_states(*epochs):
        if epoch == epochs[pk]:
            lost.remove(pk)
            if is_to_stop:
                to_stop.add(pk)
    return to_stop, lost


@compiled_query
def _live_states(*pks: int) -> QuerySet[Run, tuple[int, int, bool]]:
    return Run.objects.live().filter(pk__in=pks).values_list("pk", "epoch", "is_to_stop")


def find_abandoned() -> list[Run]:
    """Return runs without an owner: released, expired, or of a dead process."""
    abandoned = [
        pk
        for pk, lease_owner, is_expired in _running_leases()
        if is_expired or _is_dead(lease_owner)
    ]
    if not abandoned:  # as nearly always
        return []
    return list(Run.objects.running().select_related("agent").filter(pk__in=abandoned))


@compiled_query
def _running_leases() -> QuerySet[Run, tuple[int, str, bool]]:
    is_expired = Case(When(_expired_filter(), then=True), default=False)
    return Run.objects.running().values_list("pk", "owner", is_expired)


def acquire(run: Run) -> Run | None:
    """Take over the run; return None if another process was faster or its owner is alive."""
    claimable = Run.objects.running().filter(pk=run.pk, epoch=run.epoch, owner=run.owner)
    if not _is_dead(run.owner):
        claimable = claimable.filter(_expired_filter())
    # A queued run had no owner yet.
    takeover = 1 if run.owner else 0
    acquired = _claim(
        claimable, run, owner=owner(), heartbeat_at=Now(), takeovers=F("takeovers") + takeover
    )
    if acquired is not None and run.owner:
        has_died = run.heartbeat_at is not None  # it wasn't released
        acquired.needs_isolation = jobs.take_over(
            KIND, run.pk, finished_steps(run), has_died=has_died
        )
    return acquired


def adopt(pk: int, parent: str) -> Run | None:
    """Take over the run from the process that has started this one for it."""
    run = Run.objects.running().filter(pk=pk, owner=parent).first()
    if run is None:
        return None
    claimable = Run.objects.running().filter(pk=pk, owner=parent, epoch=run.epoch)
    return _claim(claimable, run, owner=owner(), heartbeat_at=Now())


def finished_steps(run: Run) -> int:
    """Return the number of finished steps; interrupted ones aren't progress."""
    unfinished = [AgentStep.Status.RUNNING, AgentStep.Status.WAITING, AgentStep.Status.CUT]
    return run.steps.exclude(status__in=unfinished).count()


def wake(run: Run) -> Run | None:
    """Mark a waiting run as running; return None if another process was faster."""
    claimable = Run.objects.waiting().filter(pk=run.pk)
    return _claim(claimable, run, **owner_fields(), status=Run.Status.RUNNING)


def _claim(claimable: QuerySet[Run], run: Run, **changes: Any) -> Run | None:
    if not claimable.update(**changes, epoch=F("epoch") + 1):
        return None
    return Run.objects.select_related("agent").filter(pk=run.pk).first()


def _expired_filter() -> Q:
    threshold = ExpressionWrapper(
        Now() - Value(timedelta(seconds=LEASE_SECONDS), output_field=DurationField()),
        output_field=Run._meta.get_field("heartbeat_at"),
    )
    return Q(heartbeat_at=None) | Q(heartbeat_at__lt=threshold)


def _is_dead(lease_owner: str) -> bool:
    """Whether the owner is a dead process of this machine; others can't be checked."""
    name, _, host = lease_owner.partition("@")
    pid, _, process = name.partition(".")
    if host != HOST or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return process != PROCESS_TOKEN
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
