"""The job queue for workers, in the database (Procrastinate).

A job only asks for a run to be driven; the run's lease decides who drives it. So duplicate jobs
do no harm, and lost ones are enqueued again.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

from django.db import transaction

logger = logging.getLogger(__name__)

TASK_NAME = "agents.drive"
QUEUE_NAME = "runs"


def enqueue(run: int) -> None:
    """Enqueue a run in the current transaction, unless it is already queued."""
    from procrastinate.contrib.django import app
    from procrastinate.exceptions import AlreadyEnqueued

    job = app.configure_task(TASK_NAME, queue=QUEUE_NAME, queueing_lock=f"run {run}")
    with suppress(AlreadyEnqueued), transaction.atomic():
        job.defer(run=run)


def queued_runs() -> set[int]:
    """Return the queued runs."""
    from procrastinate.contrib.django.models import ProcrastinateJob

    jobs = ProcrastinateJob._default_manager.filter(queue_name=QUEUE_NAME, status="todo")
    return {args["run"] for args in jobs.values_list("args", flat=True)}


async def run_worker(drive: Callable[[int], Awaitable[None]], max_runs: int) -> None:
    """Drive queued runs, up to `max_runs` concurrently, until cancelled."""
    from procrastinate import App
    from procrastinate.contrib.django import app
    from procrastinate.contrib.django.django_connector import DjangoConnector
    from procrastinate.jobs import Status

    # A separate app: enqueuing continues to use Django's connection.
    worker_app = App(connector=cast(DjangoConnector, app.connector).get_worker_connector())
    worker_app.task(name=TASK_NAME, queue=QUEUE_NAME)(drive)
    async with worker_app.open_async():
        # Delete jobs of dead workers: their runs are found by their leases and enqueued again.
        job_manager = worker_app.job_manager
        for job in await job_manager.get_stalled_jobs(queue=QUEUE_NAME):
            await job_manager.finish_job(job, status=Status.ABORTED, delete_job=True)
        await worker_app.run_worker_async(
            queues=[QUEUE_NAME],
            concurrency=max_runs,
            delete_jobs="always",
            install_signal_handlers=False,
            # An abandoned job doesn't end its run, which continues by itself.
            shutdown_graceful_timeout=0,
        )
