"""The web process: Daphne and Twisted on uvloop."""

import asyncio
import gc
from typing import Any

import uvloop
from twisted.internet import asyncioreactor

asyncioreactor.install(uvloop.new_event_loop())  # Daphne uses the installed one

# ruff: noqa: E402
from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.core.signals import request_finished
from django.db import connections
from django.utils.module_loading import import_string
from twisted.internet import reactor as chosen_reactor
from twisted.internet.defer import Deferred

from agents import runs
from agents.db import database, jobs, periodic
from agents.knowledge import ingestion
from agents.models import ServerProcess
from agents.runs.observability import process_status

from . import health, warmup
from .daphne_sockets import BackpressureMixin, install_socket_class
from .request_body import BodyFileMixin
from .request_timeout import install_request_timeouts

WARMUP_DELAY_SECONDS = 1.0  # seconds, so that the first page doesn't wait for it

# The reactor is installed at runtime, so its type is unknown.
reactor: Any = chosen_reactor
_tasks: list[asyncio.Task[None]] = []


class DrainingServer(BackpressureMixin, BodyFileMixin, Server):
    """Stops listening as soon as shutdown starts, so that new clients go to another process."""

    port: Any = None

    def listen_success(self, port: Any) -> None:
        self.port = port
        super().listen_success(port)
        reactor.callLater(WARMUP_DELAY_SECONDS, warmup.start)

    def stop_listening(self) -> None:
        if self.port is not None:
            self.port.stopListening()


def serve(host: str, port: int) -> None:
    freeze_gc()
    install_socket_class()
    install_request_timeouts()
    reactor.callWhenRunning(_start_background)
    reactor.addSystemEventTrigger("before", "shutdown", health.start_draining)
    reactor.addSystemEventTrigger("before", "shutdown", _shut_down)
    # A page's request has its own thread, whose connections would stay open.
    request_finished.connect(_close_connections)
    # No proxy headers are read here: which ones are trusted is decided in one place
    # (agents.access.audit.request_context).
    server = DrainingServer(
        application=import_string(settings.ASGI_APPLICATION),
        endpoints=build_endpoint_description_strings(host=host, port=port),
        signal_handlers=True,
        websocket_timeout=-1,
        websocket_connect_timeout=20,
        application_close_timeout=10,
        server_name="ashiato",
    )
    reactor.addSystemEventTrigger("before", "shutdown", server.stop_listening)
    server.run()


def freeze_gc() -> None:
    """Exclude code and settings from garbage collection, which takes 0.5 s to scan them.

    What remains takes a few milliseconds. A whole collection comes after about 400 answers,
    which leave 16 kB each in reference cycles, most of it Twisted's connections. With 20 as the
    last number it came after 4,000, and 80 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 2)


def _close_connections(**_signal: Any) -> None:
    if not database.EXECUTOR.is_current():
        connections.close_all()


def _start_background() -> None:
    _tasks.append(asyncio.ensure_future(periodic.run_jobs()))
    asyncio.get_event_loop().call_soon(process_status.start, ServerProcess.Kind.WEB)


def _shut_down() -> Deferred[None]:
    """Let every run end or hand it over before the process ends."""
    for task in _tasks:
        task.cancel()
    return Deferred.fromFuture(asyncio.ensure_future(_drain(settings.ENVIRONMENT.grace)))


async def _drain(grace: float) -> None:
    try:
        await ingestion.shut_down()
        await asyncio.to_thread(jobs.wait_until_idle)
        await runs.shut_down(grace)
    finally:
        await process_status.stop()
