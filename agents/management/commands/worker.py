"""A process that drives runs and serves no pages; start as many as needed."""

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents import runs
from agents.catalog.samples import sample_data
from agents.db import jobs, periodic
from agents.knowledge import ingestion
from agents.llm import tokens
from agents.management import memory
from agents.management.commands.serve import check_data_folder, check_egress, check_model
from agents.models import ServerProcess
from agents.runs import job_queue, leases
from agents.runs.observability import process_status
from agents.web.asgi import warmup

logger = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Command(BaseCommand):
    help = "Executes the runs that the web processes queue (ASHIATO_WORKERS=true)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--runs",
            type=int,
            default=settings.ENVIRONMENT.worker_runs,
            help="max concurrent runs",
        )

    def handle(self, **options: Any) -> None:
        if not settings.WORKERS:
            raise CommandError(
                "Workers are disabled. Set ASHIATO_WORKERS=true for all processes."
            )
        memory.share_memory()
        check_egress()
        check_model()
        check_data_folder()
        if not settings.SAMPLE_DATABASE.exists():  # a file per machine
            sample_data.create_database(settings.SAMPLE_DATABASE, timezone.localdate())
        tokens.keep_loading_off_loop()
        warmup.start()
        serve_metrics()
        asyncio.run(_run_worker(options["runs"], self._announce))

    def _announce(self, max_runs: int) -> None:
        self.stdout.write(
            f"Worker {leases.owner()} started (up to {max_runs} concurrent runs)."
        )
        self.stdout.flush()


def serve_metrics() -> None:
    """Serve metrics, because this process has no pages."""
    port = settings.ENVIRONMENT.metrics_port
    if settings.METRICS and port:
        from agents.runs.observability import metrics

        try:
            metrics.listen(settings.ENVIRONMENT.host, port)
        except OSError as error:
            raise CommandError(
                f"ASHIATO_METRICS_PORT: can't listen on port {port}: {error.strerror}."
            ) from error


async def _run_worker(max_runs: int, announce: Callable[[int], None]) -> None:
    """Work until a signal arrives; then start nothing new, and end or hand over runs."""
    stopping = asyncio.Event()
    for signal_number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(signal_number, stopping.set)
    # Only now: an earlier signal would end the process without handing over.
    announce(max_runs)
    process_status.start(ServerProcess.Kind.WORKER)
    ingestion.leases.is_worker = True
    working = asyncio.create_task(_work_loop(max_runs, stopping))
    periodic_jobs = asyncio.create_task(periodic.run_jobs())
    await stopping.wait()
    periodic_jobs.cancel()
    working.cancel()
    await ingestion.shut_down()
    await asyncio.to_thread(jobs.wait_until_idle)
    await runs.shut_down(settings.ENVIRONMENT.grace)
    await asyncio.wait([working], timeout=RETRY_SECONDS)
    await process_status.stop()


async def _work_loop(max_runs: int, stopping: asyncio.Event) -> None:
    """Process jobs; runs continue if the queue fails, and it is retried after a while.

    If the database is unavailable, its error can't even be reported, so this is logged instead.
    """
    while not stopping.is_set():
        try:
            await job_queue.run_worker(runs.drive, max_runs)
        except Exception as error:
            logger.warning("Can't reach the run queue: %s", error)
        await asyncio.sleep(RETRY_SECONDS)
