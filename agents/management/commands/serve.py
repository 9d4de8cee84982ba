"""Everything `make run` does after the installation: migrate, seed, say where, serve."""

import asyncio
import gc
import socket
import sys
from errno import EADDRINUSE
from threading import Thread

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.signals import request_finished
from django.db import connections
from django.utils.module_loading import import_string
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from agents import health, leases, planners, pulse, runs, servers
from agents.llm import litellm_model, tokens
from agents.models import Agent, ServerProcess
from agents.sockets import Patient, use_prompt_sockets

_tasks: list[asyncio.Task] = []


class LeavingServer(Patient, Server):
    """Stops to listen as soon as it is to end: whoever comes then goes to another process."""

    port = None

    def listen_success(self, port) -> None:
        self.port = port
        super().listen_success(port)

    def stop_listening(self) -> None:
        if self.port is not None:
            self.port.stopListening()


class Command(BaseCommand):
    help = "Migrates, seeds and serves the chat."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--host", default=settings.ENVIRONMENT.host)
        parser.add_argument("--port", type=int, default=settings.ENVIRONMENT.port)

    def handle(self, host: str, port: int, **options) -> None:
        check_free(host, port)
        check_egress()
        self.stdout.write("")
        call_command("setup", stdout=self.stdout)
        if not settings.WORKERS and (left := len(leases.abandoned())) > 0:
            what = "a run that was" if left == 1 else f"{left} runs that were"
            self.stdout.write(f"Goes on   with {what} left behind")
        choice = planners.default_model()
        self.stdout.write(f"Model     {choice.label} ({choice.source})")
        self.stdout.write(f"Open      http://{_shown(host)}:{port}/")
        self.stdout.write("Stop      Ctrl-C\n")
        sys.stdout.flush()
        warm()
        serve(host, port)


def warm() -> None:
    """Load what is slow to load while nobody waits for it."""
    gc.freeze()
    Thread(target=_warm_tokens, daemon=True).start()
    agents = Agent.objects.filter(enabled=True)
    setups = [s for agent in agents for s in planners.chain(agent, planners.model_name(agent))]
    if any(getattr(planners.connected(each), "road", "") == "litellm" for each in setups):
        litellm_model.warm().add_done_callback(lambda _: gc.freeze())


def _warm_tokens() -> None:
    """What was loaded stays, and is left out when the event loop's garbage is looked for."""
    tokens.count("warm")
    gc.freeze()


def serve(host: str, port: int) -> None:
    leave_alone_what_stays()
    use_prompt_sockets()
    reactor.callWhenRunning(_tend)
    reactor.addSystemEventTrigger("before", "shutdown", health.leave)
    reactor.addSystemEventTrigger("before", "shutdown", _shut_down)
    # Each request has a thread of its own, whose connection nobody else would close.
    request_finished.connect(_close_connections)
    server = LeavingServer(
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


def leave_alone_what_stays() -> None:
    """Programs and settings are no rubbish: looking through them again costs half a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _close_connections(**about) -> None:
    connections.close_all()


def _tend() -> None:
    _tasks.append(asyncio.ensure_future(runs.tend()))
    asyncio.get_event_loop().call_soon(pulse.start, ServerProcess.Kind.WEB)


def _shut_down() -> Deferred:
    """Let every run end, or leave it to the next process, before this one has its end."""
    for task in _tasks:
        task.cancel()
    return Deferred.fromFuture(asyncio.ensure_future(_leave(settings.ENVIRONMENT.grace)))


async def _leave(grace: float) -> None:
    try:
        await runs.shut_down(grace)
    finally:
        await pulse.stop()


def check_free(host: str, port: int) -> None:
    """Say so at once and in words where the server could not listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == EADDRINUSE:
                reason = f"Port {port} is taken. Choose another one: PORT={port + 1} make run"
            else:
                reason = f"Cannot listen on {host}:{port}: {error.strerror}."
            raise CommandError(reason) from error


def check_egress() -> None:
    try:
        servers.egress()
    except ValueError as error:
        raise CommandError(f"ASHIATO_EGRESS_ALLOW: {error}") from error


def _shown(host: str) -> str:
    shown = "127.0.0.1" if host in {"0.0.0.0", "::"} else host
    return f"[{shown}]" if ":" in shown else shown
