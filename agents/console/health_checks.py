"""Health checks: status of each part, and advice if something is wrong."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.catalog import model_setups
from agents.catalog.agent_factory import CIRCUITS
from agents.db import data_folder
from agents.media import ffmpeg
from agents.models import (
    Agent,
    Approval,
    DatabaseConnection,
    McpServer,
    Run,
    ServerProcess,
    Upkeep,
)
from agents.runs.engine_messages import translate
from agents.web import health

from . import deployment_checks, sandbox_status

RECENT_PERIOD = timedelta(hours=1)
MAX_UPKEEP_AGE = timedelta(days=2)
MAX_SILENCE = timedelta(seconds=20)
MAX_QUEUE_WAIT = timedelta(seconds=30)
MAX_LAG_SECONDS = 2.0
MAX_LATENESS_SECONDS = 0.25
MAX_STALL_SECONDS, MAX_STALLS = 1.0, 10
MIN_RUNS_PER_FAILURE = 10
MAX_NAMES = 6
DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}

Processes = Sequence[ServerProcess]
# Checks of packages that this one can't import.
MORE_CHECKS: "list[Callable[[], Iterator[HealthCheck]]]" = []


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """One line: subject, status and advice."""

    what: str
    now: str
    advice: str = ""
    page: str = ""

    @property
    def is_good(self) -> bool:
        return not self.advice


def all_checks(processes: Processes) -> Iterator[HealthCheck]:
    yield check_processes(processes)
    yield check_runs()
    yield from check_queue(processes)
    yield check_approvals()
    yield check_failures()
    yield check_takeovers()
    yield check_event_writer(processes)
    yield check_event_loops(processes)
    yield check_sockets(processes)
    yield check_database()
    yield check_channel_layer()
    yield check_disk()
    yield check_data_folder()
    yield check_models()
    yield check_circuits()
    yield check_mcp_servers(processes)
    yield check_databases()
    yield check_sandbox()
    yield check_media()
    yield check_retention()
    for check in MORE_CHECKS:
        yield from check()
    yield check_settings()


def queue_depth() -> int | None:
    """Return how many runs wait for a worker; None without workers."""
    return Run.objects.queued().count() if settings.WORKERS else None


def check_processes(processes: Processes) -> HealthCheck:
    what = _("Processes")
    if not processes:
        advice = _("Start one with “manage.py serve”.")
        return HealthCheck(what=what, now=_("No heartbeat from any process."), advice=advice)
    kinds = Counter(process.get_kind_display() for process in processes)
    now = _(", ").join(
        _("%(count)d %(kind)s") % {"count": count, "kind": kind}
        for kind, count in kinds.items()
    )
    return HealthCheck(what=what, now=now, advice=_process_advice(processes))


def _process_advice(processes: Processes) -> str:
    if silent := [process.short_name for process in processes if process.silence > MAX_SILENCE]:
        sentence = _("No heartbeat from %(names)s. The process has crashed or is stuck.")
        return sentence % {"names": ", ".join(silent)}
    if len({process.version for process in processes}) > 1:
        return _("The processes run different versions. Restart the older ones.")
    return ""


def check_runs() -> HealthCheck:
    count = Run.objects.running().count()
    now = ngettext("%(count)d running.", "%(count)d running.", count)
    return HealthCheck(
        what=_("Runs"), now=now % {"count": count}, page=_trace_list_url("running")
    )


def check_queue(processes: Processes) -> Iterator[HealthCheck]:
    if (depth := queue_depth()) is None:
        return
    first = Run.objects.queued().order_by("started_at").first()
    waited = timezone.now() - first.started_at if first else timedelta()
    now = ngettext(
        "%(count)d run waiting for %(time)s.",
        "%(count)d runs waiting, the oldest for %(time)s.",
        depth,
    )
    now = (
        now % {"count": depth, "time": format_duration(waited)}
        if first
        else _("The queue is empty.")
    )
    yield HealthCheck(what=_("Queue"), now=now, advice=_queue_advice(processes, waited))


def _queue_advice(processes: Processes, waited: timedelta) -> str:
    if not any(process.kind == ServerProcess.Kind.WORKER for process in processes):
        return _("No worker is running. Start one with “manage.py worker”.")
    is_long = waited > MAX_QUEUE_WAIT
    return _("The workers can't keep up. Start another one.") if is_long else ""


def check_approvals() -> HealthCheck:
    """Check pending approvals; slow decisions aren't a fault."""
    what, waiting = _("Pending approvals"), Approval.objects.waiting().order_by("asked_at")
    count, first = waiting.count(), waiting.first()
    if first is None:
        return HealthCheck(what=what, now=_("Nothing to approve."))
    now = ngettext(
        "%(count)d approval pending for %(time)s.",
        "%(count)d approvals pending, the oldest for %(time)s.",
        count,
    )
    now %= {"count": count, "time": format_duration(timezone.now() - first.asked_at)}
    return HealthCheck(what=what, now=now, page=_trace_list_url("waiting"))


def check_failures() -> HealthCheck:
    ended = Run.objects.filter(ended_at__gt=timezone.now() - RECENT_PERIOD)
    failed, count = ended.filter(status=Run.Status.FAILED).count(), ended.count()
    now = _("%(failed)d of %(count)d in the last hour.") % {"failed": failed, "count": count}
    is_much = failed * MIN_RUNS_PER_FAILURE > count
    advice = (
        _("Check the errors of these runs, then test their models and tools.")
        if is_much
        else ""
    )
    return HealthCheck(
        what=_("Failed runs"), now=now, advice=advice, page=_trace_list_url("failed")
    )


def check_takeovers() -> HealthCheck:
    recent = Q(ended_at__gt=timezone.now() - RECENT_PERIOD) | Q(status=Run.Status.RUNNING)
    count = Run.objects.filter(recent, takeovers__gt=0).count()
    now = _("%(count)d in the last hour.") % {"count": count}
    advice = _("A process stopped unexpectedly. Check its log.") if count else ""
    return HealthCheck(what=_("Recovered runs"), now=now, advice=advice)


def check_event_writer(processes: Processes) -> HealthCheck:
    lag = max((process.journal_lag for process in processes), default=0.0)
    now = _("Events are saved within %(seconds)s s.") % {"seconds": format_number(lag)}
    now = now if lag else _("No recent events.")
    advice = (
        _("The database is slow or overloaded. Check its load.")
        if lag > MAX_LAG_SECONDS
        else ""
    )
    return HealthCheck(what=_("Event storage"), now=now, advice=advice)


def check_event_loops(processes: Processes) -> HealthCheck:
    what, count = _("Event loops"), sum(process.stalls for process in processes)
    if not count:
        return HealthCheck(what=what, now=_("Never blocked."))
    worst = max(processes, key=lambda process: process.longest_stall)
    now = ngettext(
        "Event loop blocked %(count)d time (%(seconds)s s).",
        "Event loop blocked %(count)d times (longest: %(seconds)s s).",
        count,
    )
    now %= {"count": count, "seconds": format_number(worst.longest_stall)}
    return HealthCheck(what=what, now=now, advice=_event_loop_advice(processes, worst))


def _event_loop_advice(processes: Processes, worst: ServerProcess) -> str:
    if late := [each.short_name for each in processes if each.lateness > MAX_LATENESS_SECONDS]:
        return _("Blocked right now: %(names)s.") % {"names": ", ".join(late)}
    is_lately = any(p.stalled_at and p.now - p.stalled_at < RECENT_PERIOD for p in processes)
    is_much = worst.longest_stall > MAX_STALL_SECONDS or worst.stalls > MAX_STALLS
    if not is_lately or not is_much:
        return ""
    if not worst.stalled_in:
        return _("Also blocked in the last hour. The machine is overloaded.")
    where = worst.stalled_in.partition(" ")[0]
    return _("Also blocked in the last hour. The longest block was in %(where)s.") % {
        "where": where
    }


def check_sockets(processes: Processes) -> HealthCheck:
    count = sum(process.sockets for process in processes)
    now = ngettext("%(count)d page connected.", "%(count)d pages connected.", count)
    return HealthCheck(what=_("WebSockets"), now=now % {"count": count})


def check_database() -> HealthCheck:
    kind = DATABASE_NAMES.get(connection.vendor, connection.vendor)
    version = ".".join(map(str, connection.get_database_version()))
    now = f"{kind} {version}, {filesizeformat(_database_size())}"
    return HealthCheck(what=_("Database"), now=now)


def _database_size() -> int:
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    if connection.vendor == "postgresql":
        size = "SELECT pg_database_size(current_database())"
    with connection.cursor() as cursor:
        cursor.execute(size)
        return cursor.fetchone()[0]


def check_channel_layer() -> HealthCheck:
    what, kind = _("Channel layer"), type(get_channel_layer()).__name__
    if (delay := async_to_sync(health.layer_latency)()) is None:
        now = _("%(kind)s isn't responding.") % {"kind": kind}
        advice = _("Pages update only every few seconds. Check that Redis is running.")
        return HealthCheck(what=what, now=now, advice=advice)
    now = _("%(kind)s responds in %(time)s ms.")
    return HealthCheck(what=what, now=now % {"kind": kind, "time": format_number(delay * 1000)})


def check_disk() -> HealthCheck:
    left = health.free_bytes()
    advice = (
        _("Disk is almost full. Free up space, or new messages can't be saved.")
        if left < health.MIN_FREE_BYTES
        else ""
    )
    now = _("%(size)s free.") % {"size": filesizeformat(left)}
    return HealthCheck(what=_("Disk"), now=now, advice=advice)


def check_data_folder() -> HealthCheck:
    what, folder = _("Data folder"), {"folder": settings.DATA_DIR}
    if not data_folder.is_exposed(settings.DATA_DIR):
        return HealthCheck(what=what, now=_("Only this server's user can read it."))
    now = _("Other users on this machine can read %(folder)s.") % folder
    advice = (
        _("It contains the secret key and the database. Run: chmod 700 %(folder)s") % folder
    )
    return HealthCheck(what=what, now=now, advice=advice)


def check_models() -> HealthCheck:
    """Check the models that agents use: their setup and circuits."""
    what, page = _("Models"), reverse("admin:agents_languagemodel_changelist")
    agents = Agent.objects.filter(enabled=True)
    rows = model_setups.model_rows()
    names = sorted({name for agent in agents for name in model_setups.model_names(agent, rows)})
    if not names:
        return HealthCheck(what=what, now=_("No agent is enabled."))
    if wrong := [
        str(error) for name in names if (error := model_setups.configuration_error(name, rows))
    ]:
        now = " ".join(map(translate, wrong))
        advice = _("Fix their settings, or choose other models for the agents.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    few = ", ".join(names[:MAX_NAMES]) + (" …" if len(names) > MAX_NAMES else "")
    out = {state.key for state in CIRCUITS.state() if state.state != "closed"}
    if broken := [name for name in names if f"model:{name}" in out]:
        advice = _("Failing: %(names)s. Check the provider's status, then try again.")
        advice %= {"names": ", ".join(broken)}
        return HealthCheck(what=what, now=few, advice=advice, page=page)
    return HealthCheck(what=what, now=few, page=page)


def check_settings() -> HealthCheck:
    what, count = (
        _("Settings"),
        sum(bool(remark.advice) for remark in deployment_checks.deploy_warnings()),
    )
    if not count:
        return HealthCheck(what=what, now=_("No problems found."))
    now = ngettext(
        "“check --deploy” found %(count)d problem.",
        "“check --deploy” found %(count)d problems.",
        count,
    )
    advice = _("See the list below for how to fix them.")
    return HealthCheck(what=what, now=now % {"count": count}, advice=advice)


def check_circuits() -> HealthCheck:
    what, page = _("Circuit breakers"), reverse("admin:agents_circuits")
    if names := [state.key for state in CIRCUITS.state() if state.state != "closed"]:
        now = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        advice = _("Calls are paused for a while, then retried automatically.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    return HealthCheck(what=what, now=_("All healthy."), page=page)


def check_retention() -> HealthCheck:
    """Check the daily deletion of expired data."""
    what, row = _("Retention"), Upkeep.objects.filter(name="prune").first()
    if row is None or row.at is None:
        return HealthCheck(what=what, now=_("Cleanup hasn't run yet."))
    counts = {name: row.report.get(name, 0) for name in ("sessions", "runs", "entries")}
    deleted = _("%(sessions)d chats, %(runs)d runs and %(entries)d audit log entries") % counts
    age = timezone.now() - row.at
    now = _("Deleted %(time)s ago: %(what)s.") % {"time": format_duration(age), "what": deleted}
    late = _("Cleanup should run once a day. Check the server log for the error.")
    return HealthCheck(what=what, now=now, advice=late if age > MAX_UPKEEP_AGE else "")


def check_mcp_servers(processes: Processes = ()) -> HealthCheck:
    what, page = _("MCP servers"), reverse("admin:agents_mcpserver_changelist")
    servers = McpServer.objects.filter(enabled=True)
    failed = servers.filter(state=McpServer.State.FAILED)
    if names := list(failed.values_list("name", flat=True)):
        now = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        advice = _("Test their connections.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    now = _("All healthy.") if servers.exists() else _("None configured.")
    running = Counter[str]()
    for process in processes:
        running.update(process.mcp_instances)
    if running:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(running.items()))
        instances = _("Running instances: %(counts)s.") % {"counts": counts}
        now = f"{now} {instances}"
    return HealthCheck(what=what, now=now, page=page)


def check_databases() -> HealthCheck:
    what, page = _("Databases"), reverse("admin:agents_databaseconnection_changelist")
    rows = DatabaseConnection.objects.filter(enabled=True)
    failed = rows.filter(state=DatabaseConnection.State.FAILED)
    if names := list(failed.values_list("name", flat=True)):
        now = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        return HealthCheck(what=what, now=now, advice=_("Test their connections."), page=page)
    now = _("All healthy.") if rows.exists() else _("None configured.")
    return HealthCheck(what=what, now=now, page=page)


def check_media() -> HealthCheck:
    """Say what can be done with sound, images and video; nothing of it is required."""
    environment, missing = settings.ENVIRONMENT, _("not configured")
    local = "faster-whisper" if environment.whisper_model else missing
    found = {
        _("Transcription"): environment.transcription_model or local,
        _("Voice"): environment.speech_model or _("the browser's"),
        _("Image generation"): environment.image_model or missing,
        _("Image description"): environment.vision_model or missing,
        _("Video"): "ffmpeg" if ffmpeg.executable() else _("ffmpeg isn't installed"),
    }
    now = " · ".join(f"{what}: {which}" for what, which in found.items())
    return HealthCheck(what=_("Sound, images and video"), now=now)


def check_sandbox() -> HealthCheck:
    """Check the sandbox that keeps MCP programs from the secret key and the database."""
    what, level = _("MCP sandbox"), sandbox_status.general_level()
    has_programs = McpServer.objects.filter(enabled=True, transport="stdio").exists()
    advice = sandbox_status.advice() if level == "none" and has_programs else ""
    now = f"{sandbox_status.describe_level(level)} {sandbox_status.describe_limits()}"
    return HealthCheck(what=what, now=now, advice=advice)


def format_duration(time: timedelta) -> str:
    if time < timedelta(minutes=1):
        return _("%(seconds)d s") % {"seconds": time.total_seconds()}
    now = timezone.now()
    return timesince(now - time, now, depth=1)


def format_number(value: float) -> str:
    return number_format(value, 2 if value < 1 else 1)


def _trace_list_url(status: str) -> str:
    return f"{reverse('trace:list')}?status={status}"
