"""Runs that ended several processes: each is driven in a process of its own."""

import asyncio
from contextlib import suppress

from agents.db import database, jobs
from agents.engine.events import Event
from agents.engine.loop import StopReason
from agents.engine.sentences import Sentence as _
from agents.models import Run

from . import event_store, event_writer, executor, leases, pubsub

RELAY_SECONDS = 0.5
ENDED_PROCESS = _("The process of this run crashed twice (%(signal)s), so the run was stopped.")
ADVICE = _(
    "It may need more memory than the server has. Ask for less at "
    "once, or contact your administrator."
)

tasks: dict[int, asyncio.Task[None]] = {}


def start(run: Run) -> asyncio.Task[None]:
    """Drive an acquired run in a process of its own, and relay its events to the pages here."""
    task = asyncio.create_task(_drive(run))
    tasks[run.pk] = task
    task.add_done_callback(lambda _task: tasks.pop(run.pk, None))
    return task


async def _drive(run: Run) -> None:
    relay = asyncio.create_task(_relay(run))
    try:
        ended_by = await asyncio.to_thread(jobs.isolate, leases.KIND, run.pk, run.owner)
    except jobs.NotIsolated:
        await database.run(leases.release, run)
        return
    finally:
        relay.cancel()
    if jobs.stopping.is_set():
        return
    if ended_by:
        for ended, events in await database.run(_record_crash, run.pk, ended_by):
            await event_writer.publish(ended, events)
    else:
        await pubsub.publish(run.topic, pubsub.REFRESH_KIND)
    current = await Run.objects.select_related("agent").filter(pk=run.pk).afirst()
    if current is not None and current.status != Run.Status.RUNNING:
        await executor.notify_followers(current)


def _record_crash(pk: int, ended_by: str) -> list[tuple[Run, list[Event]]]:
    """Count the crash; return the run with its last events if it is given up.

    Otherwise it is found as abandoned, like every run whose process has died.
    """
    run = Run.objects.running().filter(pk=pk).first()
    if run is None or not jobs.record_crash(leases.KIND, pk, leases.finished_steps(run)):
        return []
    ending = event_store.Ending(
        StopReason.ERROR, ENDED_PROCESS.fill(signal=ended_by), ADVICE, is_sure=False
    )
    return [(run, event_store.close(pk, ending, run.epoch))]


async def _relay(run: Run) -> None:
    """Let pages read the rows whenever the other process has saved some.

    Without a shared channel layer it can't reach them by itself.
    """
    published = 0
    while True:
        with suppress(*event_writer.DATABASE_ERRORS):  # it is looked at again
            saved = await database.run(event_store.last_seq, run)
            if saved > published:
                published = saved
                await pubsub.publish(run.topic, pubsub.REFRESH_KIND)
        await asyncio.sleep(RELAY_SECONDS)
