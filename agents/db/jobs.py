"""Jobs that outlive their process (documents, imports, runs), and whose fault a crash is.

A process that ends takes everything with it that it has in hand, so its end says nothing about
any one job. A job that was in hand several times, without progress, gets a process of its own
(`isolate`). Only if that process is ended by a signal while its parent lives is the job the
cause; after MAX_CRASHES of these it is given up.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents.models import JobCrash
from agents.tools.sandbox import unconfined

logger = logging.getLogger(__name__)

ISOLATED_AFTER = 2
MAX_CRASHES = 2
MAX_ISOLATED = 2
CHECK_SECONDS = 0.5
STOP_SECONDS = 5.0
KEPT_FOR = timedelta(days=30)

Handler = Callable[[int, str], None]

stopping = threading.Event()
_slots = threading.BoundedSemaphore(MAX_ISOLATED)
_in_hand = threading.Condition()
_in_hand_count = 0
_handlers: dict[str, Handler] = {}


class NotIsolated(Exception):
    """Raised when a job can't have a process of its own now; it is tried again later."""


def register(kind: str, handler: Handler) -> None:
    """Do jobs of this kind with a function of their ID and of the claim on them."""
    _handlers[kind] = handler


@transaction.atomic
def take_over(kind: str, item: int, progress: int, *, has_died: bool) -> bool:
    """Return whether a claimed job needs a process of its own.

    `has_died`: the process that had it in hand before ended without giving it back.
    """
    crash = JobCrash.objects.select_for_update().filter(kind=kind, item=item).first()
    if crash is None:
        if has_died:
            JobCrash.objects.filter(updated_at__lt=timezone.now() - KEPT_FOR).delete()
            JobCrash.objects.create(kind=kind, item=item, deaths=1, progress=progress)
        return False
    if progress > crash.progress:
        crash.deaths = 0
        crash.crashes = 0
        crash.progress = progress
    if has_died:
        crash.deaths += 1
    crash.save()
    return crash.deaths >= ISOLATED_AFTER


@transaction.atomic
def record_crash(kind: str, item: int, progress: int) -> bool:
    """Count a crash of the job's own process; return whether the job is to be given up."""
    crash, _ = JobCrash.objects.select_for_update().get_or_create(kind=kind, item=item)
    if progress > crash.progress:
        crash.crashes = 0
        crash.progress = progress
    crash.crashes += 1
    is_given_up = crash.crashes >= MAX_CRASHES
    if is_given_up:  # a user can try again, and that goes to a process of its own at once
        crash.crashes = 0
        crash.deaths = ISOLATED_AFTER
    crash.save()
    return is_given_up


def isolate(
    kind: str, item: int, claim: str, *, watch: Callable[[], object] = lambda: None
) -> str:
    """Do a job in a process of its own; return the signal that ended it, or "".

    `watch` is called while it works. The child does the job with the parent's claim, and gives
    it back if the parent stops or dies: then its end of the pipe is closed.
    """
    if stopping.is_set() or not _slots.acquire(blocking=False):
        raise NotIsolated
    try:
        command = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "run_job"]
        logger.warning("The %s %s gets a process of its own after several crashes.", kind, item)
        with unconfined.start(
            unconfined.Reason.OWN_JOB,
            [*command, kind, str(item), claim],
            grace_seconds=2 * STOP_SECONDS,
        ) as child:
            code = None
            while code is None and not stopping.is_set():
                code = child.wait(CHECK_SECONDS)
                watch()
    finally:
        _slots.release()
    if code is None or code == 0:
        return ""
    if code > 0:
        logger.error("The process for the %s %s failed with exit code %s.", kind, item, code)
        raise NotIsolated
    name = signal.Signals(-code).name
    logger.error("The %s %s has ended its own process with %s.", kind, item, name)
    return name


def run_isolated(kind: str, item: int, claim: str) -> None:
    """Do one job as the only work of this process, until its parent stops or dies."""
    # If memory runs out, this process is the one to end, not the server.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    _handlers[kind](item, claim)


def _stop_with_parent() -> None:
    while not stopping.is_set() and os.read(sys.stdin.fileno(), 1):
        pass
    stopping.set()
    time.sleep(STOP_SECONDS)
    os._exit(0)


@contextmanager
def in_hand() -> Iterator[None]:
    """Let a stop of the process wait for this work, which looks at `stopping`."""
    global _in_hand_count
    with _in_hand:
        _in_hand_count += 1
    try:
        yield
    finally:
        with _in_hand:
            _in_hand_count -= 1
            _in_hand.notify_all()


def wait_until_idle() -> None:
    """Tell work to stop, and wait until it has given its claims back, or it is too late."""
    stopping.set()
    with _in_hand:
        _in_hand.wait_for(lambda: not _in_hand_count, timeout=STOP_SECONDS)
