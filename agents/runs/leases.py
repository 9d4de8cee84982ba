"""Which process a run belongs to: one at a time, and no longer than it is heard of.

A lease is an owner, an epoch and a heartbeat by the database's clock. Whoever takes a run over
raises its epoch in one statement, so only one can; what a former owner still wants to write
is refused, because it names an epoch that is over.
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
from django.db.models import DurationField, ExpressionWrapper, F, Q, Value
from django.db.models.functions import Now

from agents.db.raw_cursor import fetch
from agents.models import AgentStep, Run

# A number of its own: in a container every process has the same id as the one before it.
PROCESS_TOKEN = secrets.token_hex(4)
# Machines may share a name; ids of processes mean something in one container of one boot only.
NAMESPACE_PATH, BOOT_ID_PATH = (
    Path("/proc/self/ns/pid"),
    Path("/proc/sys/kernel/random/boot_id"),
)
BOOT_NAMESPACE = (
    f"{BOOT_ID_PATH.read_text()[:8]}.{NAMESPACE_PATH.stat().st_ino}"
    if BOOT_ID_PATH.exists()
    else ""
)
HOST = f"{socket.gethostname()}/{BOOT_NAMESPACE}"
HEARTBEAT_SECONDS = 5.0
LEASE_SECONDS = 20.0
MAX_CRASHES = 5


def owner() -> str:
    return f"{os.getpid()}.{PROCESS_TOKEN}@{HOST}"


def owner_fields() -> dict[str, Any]:
    """Whose a run is that is to go on now: ours, or that of the worker who takes it."""
    if settings.WORKERS:
        return {"owner": "", "heartbeat_at": None}
    return {"owner": owner(), "heartbeat_at": Now()}


def is_ours(run: Run) -> bool:
    return run.owner == owner()


def lock_epochs(pks: Collection[int]) -> dict[int, int]:
    """The epoch of each of these runs that goes on: only whoever was given it may write.

    Asked in the transaction that writes for them: their rows are locked until it is over.
    """
    ours = connections[DEFAULT_DB_ALIAS]
    return dict(fetch(ours, _epochs_sql(len(pks)), [Run.Status.RUNNING, *pks]))


@lru_cache(maxsize=256)
def _epochs_sql(count: int) -> str:
    """Asked in every batch, and so put into SQL by hand."""
    table, blanks = connection.ops.quote_name(Run._meta.db_table), ", ".join(["%s"] * count)
    can_lock = connection.features.has_select_for_update
    lock = connection.ops.for_update_sql() if can_lock else ""
    return f"SELECT id, epoch FROM {table} WHERE status = %s AND id IN ({blanks}) {lock}"


def renew(runs: Iterable[Run]) -> None:
    ours = Run.objects.running().filter(pk__in=[run.pk for run in runs], owner=owner())
    ours.update(heartbeat_at=Now())


def release(run: Run) -> None:
    """Whoever comes next may take it at once."""
    Run.objects.filter(pk=run.pk, epoch=run.epoch).update(heartbeat_at=None)


def request_stop(run: Run) -> bool:
    """Tell whoever drives it that it is to end; False where nobody does."""
    driven = Run.objects.running().filter(pk=run.pk, heartbeat_at__isnull=False)
    return bool(driven.update(is_to_stop=True))


def stop_requests(runs: Iterable[Run]) -> tuple[set[int], set[int]]:
    """Of these runs, those that somebody wants to end, and those that are not ours any more."""
    asked = {run.pk: run.epoch for run in runs}
    rows = Run.objects.live().filter(pk__in=asked).values_list("pk", "epoch", "is_to_stop")
    ours = {pk: is_to_stop for pk, epoch, is_to_stop in rows if asked[pk] == epoch}
    return {pk for pk, is_to_stop in ours.items() if is_to_stop}, asked.keys() - ours.keys()


def find_abandoned() -> list[Run]:
    """Runs that nobody drives: released, not heard of for too long, or of a dead process."""
    running = Run.objects.running().select_related("agent")
    found = list(running.filter(_expired_filter()))
    known = {run.pk for run in found}
    here = running.filter(owner__endswith=f"@{HOST}").exclude(pk__in=known)
    return found + [run for run in here if _is_dead(run.owner)]


def acquire(run: Run) -> Run | None:
    """The run, now ours; None where somebody was quicker, or it was heard of meanwhile."""
    same = Run.objects.running().filter(pk=run.pk, epoch=run.epoch, owner=run.owner)
    if not _is_dead(run.owner):
        same = same.filter(_expired_filter())
    # One that stood in line had no owner yet.
    before = 1 if run.owner else 0
    ours = {"owner": owner(), "heartbeat_at": Now(), **_crash_fields(run)}
    return _claim(same, run, **ours, takeovers=F("takeovers") + before)


def is_crash_looping(run: Run) -> bool:
    """Whether it ended one process after the other without getting a step further."""
    is_stuck = _finished_steps(run) <= run.steps_at_crash
    return not _was_released(run) and is_stuck and run.crashes >= MAX_CRASHES


def _crash_fields(run: Run) -> dict[str, Any]:
    """What is counted when a run is taken over; one that was handed over did nobody harm."""
    if not run.owner or _was_released(run):
        return {}
    recorded = _finished_steps(run)
    if recorded > run.steps_at_crash:
        return {"crashes": 0, "steps_at_crash": recorded}
    return {"crashes": F("crashes") + 1}


def _was_released(run: Run) -> bool:
    return run.heartbeat_at is None


def _finished_steps(run: Run) -> int:
    """The steps that came to an end; one that is cut off is taken again, and is no progress."""
    unfinished = [AgentStep.Status.RUNNING, AgentStep.Status.WAITING, AgentStep.Status.CUT]
    return run.steps.exclude(status__in=unfinished).count()


def wake(run: Run) -> Run | None:
    """A run that waited, now running; None where somebody else was quicker."""
    same = Run.objects.waiting().filter(pk=run.pk)
    return _claim(same, run, **owner_fields(), status=Run.Status.RUNNING)


def _claim(same, run: Run, **changes) -> Run | None:
    if not same.update(**changes, epoch=F("epoch") + 1):
        return None
    return Run.objects.select_related("agent").filter(pk=run.pk).first()


def _expired_filter() -> Q:
    late = ExpressionWrapper(
        Now() - Value(timedelta(seconds=LEASE_SECONDS), output_field=DurationField()),
        output_field=Run._meta.get_field("heartbeat_at"),
    )
    return Q(heartbeat_at=None) | Q(heartbeat_at__lt=late)


def _is_dead(owner: str) -> bool:
    """Whether this is a process of this machine that is gone; of others nobody can say."""
    name, _, host = owner.partition("@")
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
