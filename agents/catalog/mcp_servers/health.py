"""The health of a server, saved with samples over time."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from agents.models import McpServer, ServerSample
from agents.tools.mcp.connection.health import Health

from .definitions import SyncResult, sync_tools

SAMPLE_RETENTION = timedelta(hours=24)
SAMPLE_INTERVAL = timedelta(seconds=50)  # slightly less than a heartbeat
MAX_SAMPLES = 2_000


@transaction.atomic
def save_health(name: str, health: Health) -> SyncResult:
    """Save a server's status and, if it is ready, its current tools."""
    server = McpServer.objects.select_for_update().filter(name=name).first()
    if server is None:
        return SyncResult(health=health)
    server.state = health.state
    server.state_since = health.since
    server.last_error = health.error
    server.latency_ms = None if health.latency is None else round(health.latency * 1000, 1)
    server.restarts = health.restarts
    server.save(update_fields=["state", "state_since", "last_error", "latency_ms", "restarts"])
    _record_sample(server)
    return sync_tools(server, health) if health.state == "ready" else SyncResult(health=health)


def _record_sample(server: McpServer) -> None:
    """Record a sample for the chart; connecting or unused servers have none."""
    if server.state not in {server.State.READY, server.State.FAILED}:
        return
    time = timezone.now()
    is_up = server.state == server.State.READY
    samples = ServerSample.objects.filter(server=server)
    last = samples.order_by("-at").first()
    if last and last.is_up == is_up and time - last.at < SAMPLE_INTERVAL:
        return
    latency_ms = server.latency_ms if is_up else None
    samples.create(server=server, at=time, is_up=is_up, latency_ms=latency_ms)
    samples.filter(at__lt=time - SAMPLE_RETENTION).delete()
    if one_too_many := samples.order_by("-at")[MAX_SAMPLES : MAX_SAMPLES + 1].first():
        samples.filter(at__lte=one_too_many.at).delete()
