"""Metrics for Prometheus and compatible monitors.

Each process reports its own counters and status. Figures from the database are queried at each
scrape, and omitted while it is unavailable.
"""

import asyncio
import hmac
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from django.conf import settings
from django.db import Error, connection
from django.db.models import Count
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from agents.access.requests import Receive, Scope, Send
from agents.catalog.agent_factory import CIRCUITS
from agents.models import Approval, McpServer, Run
from agents.runs import event_writer

from . import process_status
from .counters import MAX_NAMES, EventCounters

logger = logging.getLogger(__name__)

UNAUTHORIZED_BODY = b"A bearer token is required.\n"

HttpResponse = tuple[int, list[tuple[bytes, bytes]], bytes]


class ProcessStatusCollector:
    """This process's last status report."""

    def collect(self) -> Iterator[Metric]:
        build = {"version": process_status.version()}
        yield InfoMetricFamily("ashiato_build", "Version of this process.", value=build)
        status = process_status.latest()
        for figure, (name, description) in GAUGES.items():
            if figure in status:
                yield GaugeMetricFamily(f"ashiato_{name}", description, value=status[figure])
        if status:
            description = "Number of times the event loop was blocked."
            yield CounterMetricFamily(
                "ashiato_loop_stalls", description, value=status["stalls"]
            )
        description = "1 if the circuit breaker of a model, provider or tool is open."
        circuits = GaugeMetricFamily("ashiato_circuit_open", description, labels=["circuit"])
        states = CIRCUITS.state()
        opened = {state.label for state in states if state.state != "closed"}
        for label in dict.fromkeys(state.label for state in states):
            circuits.add_metric([label], label in opened)
        yield circuits


GAUGES = {
    "runs": ("runs_driven", "Runs executing in this process."),
    "sockets": ("sockets", "WebSocket connections to this process."),
    "journal_lag": ("event_lag_seconds", "Time that events wait to be saved."),
    "lateness": ("loop_lag_seconds", "Event loop lag."),
    "longest_stall": ("loop_longest_stall_seconds", "Longest time the event loop was blocked."),
}


class DatabaseCollector:
    """Figures from the database, the same from every process."""

    def collect(self) -> Iterator[Metric]:
        try:
            yield from list(self._metrics())
        except Error as error:
            logger.info("The database isn't responding: %r", error)
            yield GaugeMetricFamily("ashiato_database_up", DATABASE_UP_HELP, value=0)
        finally:
            connection.close()

    def _metrics(self) -> Iterator[Metric]:
        live = GaugeMetricFamily(
            "ashiato_runs_live", "Live runs, by status.", labels=["status"]
        )
        counts = Run.objects.live().order_by().values_list("status").annotate(Count("pk"))
        for status, count in ({status.value: 0 for status in Run.LIVE} | dict(counts)).items():
            live.add_metric([status], count)
        yield live
        description = "Tool calls and plans waiting for approval."
        waiting = Approval.objects.waiting().count()
        yield GaugeMetricFamily("ashiato_approvals_pending", description, value=waiting)
        if settings.WORKERS:
            description = "Queued runs."
            depth = Run.objects.queued().count()
            yield GaugeMetricFamily("ashiato_queue_depth", description, value=depth)
        description = "1 for the current state of each MCP server."
        servers = GaugeMetricFamily(
            "ashiato_mcp_server_state", description, labels=["server", "state"]
        )
        rows = McpServer.objects.filter(enabled=True).values_list("name", "state")
        for name, state in rows[:MAX_NAMES]:
            servers.add_metric([name, state], 1)
        yield servers
        yield GaugeMetricFamily("ashiato_database_up", DATABASE_UP_HELP, value=1)


DATABASE_UP_HELP = "1 if the database responds."


def start() -> None:
    """Count everything this process saves from now on."""
    event_writer.readers.append(event_counters.on_events)


def response(authorization: str) -> HttpResponse:
    """Return all metrics as text, if authorized."""
    if not is_allowed(authorization):
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        return 401, headers, UNAUTHORIZED_BODY
    headers = [(b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode())]
    return 200, [*headers, (b"cache-control", b"no-store")], generate_latest(registry)


def is_allowed(authorization: str) -> bool:
    token = settings.ENVIRONMENT.metrics_token
    if token is None:
        return settings.ENVIRONMENT.metrics
    expected = f"Bearer {token.get_secret_value()}"
    return hmac.compare_digest(authorization.encode(), expected.encode())


async def handle_request(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one scrape at a time, in its own thread, so that no page waits."""
    tokens = [value for name, value in scope["headers"] if name == b"authorization"]
    authorization = tokens[0].decode("latin-1") if len(tokens) == 1 else ""
    loop = asyncio.get_running_loop()
    status, headers, body = await loop.run_in_executor(_executor, response, authorization)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def listen(host: str, port: int) -> ThreadingHTTPServer:
    """Serve metrics on a port, for a process without pages."""
    server = ThreadingHTTPServer((host, port), _MetricsHandler)
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


class _MetricsHandler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self) -> None:
        if self.path != "/metrics":
            self.send_error(404)
            return
        authorization = self.headers.get("authorization", "")
        status, headers, body = _executor.submit(response, authorization).result()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name.decode(), value.decode())
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Skip logging, because scrapes are frequent."""


registry = CollectorRegistry()
event_counters = EventCounters(registry)
registry.register(ProcessStatusCollector())
registry.register(DatabaseCollector())
ProcessCollector(registry=registry)
_executor = ThreadPoolExecutor(1, thread_name_prefix="metrics")
