"""Runs that stand in line for a worker. The line is kept in the database, by Procrastinate.

A job is no more than a wish that somebody drives a run: who may, the run's lease says. So it
does no harm to wish twice, and a job that was lost is wished for again.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from django.db import transaction

logger = logging.getLogger(__name__)

TASK_NAME = "agents.drive"
QUEUE_NAME = "runs"


def enqueue(run: int) -> None:
    """Put it in line, with the rows of the same transaction, unless it stands there already."""
    from procrastinate.contrib.django import app
    from procrastinate.exceptions import AlreadyEnqueued

    job = app.configure_task(TASK_NAME, queue=QUEUE_NAME, queueing_lock=f"run {run}")
    with suppress(AlreadyEnqueued), transaction.atomic():
        job.defer(run=run)


def queued_runs() -> set[int]:
    """The runs that stand in line."""
    from procrastinate.contrib.django.models import ProcrastinateJob

    jobs = ProcrastinateJob.objects.filter(queue_name=QUEUE_NAME, status="todo")
    return {args["run"] for args in jobs.values_list("args", flat=True)}


async def run_worker(drive: Callable[[int], Awaitable[None]], at_once: int) -> None:
    """Drive what stands in line, so many at once, until this is cancelled."""
    from procrastinate import App
    from procrastinate.contrib.django import app

    # One of its own: what adds jobs uses Django's connection, and goes on doing so.
    line = App(connector=app.connector.get_worker_connector())
    line.task(drive, name=TASK_NAME, queue=QUEUE_NAME)
    async with line.open_async():
        await _drop_stalled_jobs(line)
        await line.run_worker_async(
            queues=[QUEUE_NAME],
            concurrency=at_once,
            delete_jobs="always",
            install_signal_handlers=False,
            # A job that is given up does not end its run: that goes on by itself.
            shutdown_graceful_timeout=0,
        )


async def _drop_stalled_jobs(line) -> None:
    """Jobs of workers that died: their runs are found by their leases, and wished for anew."""
    from procrastinate.jobs import Status

    for job in await line.job_manager.get_stalled_jobs(queue=QUEUE_NAME):
        await line.job_manager.finish_job(job, status=Status.ABORTED, delete_job=True)
