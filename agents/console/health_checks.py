"""How each part is at this moment, in words, and what to do where it is not good."""

from collections import Counter
from collections.abc import Iterator, Sequence
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

from agents.catalog import planner_factory
from agents.catalog.agent_factory import CIRCUITS
from agents.db import data_folder
from agents.models import Agent, Approval, McpServer, Run, ServerProcess, Upkeep
from agents.runs.engine_messages import told
from agents.web import health

from . import deployment_checks, sandbox_status

LATELY = timedelta(hours=1)
UPKEEP_WITHIN = timedelta(days=2)
SILENT = timedelta(seconds=20)
LONG_IN_LINE = timedelta(seconds=30)
MOST_LAG = 2.0
MOST_LATENESS = 0.25
LONG_STALL, MANY_STALLS = 1.0, 10
ONE_IN = 10
MOST_NAMES = 6
KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}

Processes = Sequence[ServerProcess]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: what, how it is, and what to do where it is not good."""

    what: str
    now: str
    advice: str = ""
    page: str = ""

    @property
    def is_good(self) -> bool:
        return not self.advice


def everything(processes: Processes) -> Iterator[Finding]:
    yield about_processes(processes)
    yield about_runs()
    yield from about_the_line(processes)
    yield about_people()
    yield about_failures()
    yield about_takeovers()
    yield about_the_journal(processes)
    yield about_event_loops(processes)
    yield about_sockets(processes)
    yield about_the_database()
    yield about_the_layer()
    yield about_the_disk()
    yield about_the_data_folder()
    yield about_models()
    yield about_circuits()
    yield about_servers()
    yield about_isolation()
    yield about_old_rows()
    yield about_settings()


def queue_depth() -> int | None:
    """How many runs stand in line for a worker; None where web processes drive them."""
    return Run.objects.in_line().count() if settings.WORKERS else None


def about_processes(processes: Processes) -> Finding:
    what = _("Processes")
    if not processes:
        advice = _("Start one with “manage.py serve”.")
        return Finding(what=what, now=_("None has been heard of."), advice=advice)
    kinds = Counter(process.get_kind_display() for process in processes)
    now = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return Finding(what=what, now=now, advice=_trouble_of_processes(processes))


def _trouble_of_processes(processes: Processes) -> str:
    if silent := [process.short_name for process in processes if process.silence > SILENT]:
        sentence = _("Not heard of any more: %(names)s. Ended without a word, or hanging?")
        return sentence % {"names": ", ".join(silent)}
    if len({process.version for process in processes}) > 1:
        return _("They run different versions. Restart the older ones.")
    return ""


def about_runs() -> Finding:
    count = Run.objects.running().count()
    now = ngettext("%(count)d is running.", "%(count)d are running.", count)
    return Finding(what=_("Runs"), now=now % {"count": count}, page=_traces("running"))


def about_the_line(processes: Processes) -> Iterator[Finding]:
    if (depth := queue_depth()) is None:
        return
    first = Run.objects.in_line().order_by("started_at").first()
    waited = timezone.now() - first.started_at if first else timedelta()
    now = ngettext(
        "%(count)d run stands in line, for %(time)s.",
        "%(count)d runs stand in line, the first for %(time)s.",
        depth,
    )
    now = now % {"count": depth, "time": length(waited)} if first else _("Nothing waits.")
    yield Finding(what=_("Queue"), now=now, advice=_trouble_in_line(processes, waited))


def _trouble_in_line(processes: Processes, waited: timedelta) -> str:
    if not any(process.kind == ServerProcess.Kind.WORKER for process in processes):
        return _("No worker is there to drive runs. Start one with “manage.py worker”.")
    is_long = waited > LONG_IN_LINE
    return _("The workers cannot keep up. Start another one.") if is_long else ""


def about_people() -> Finding:
    """That somebody takes their time over a decision is no fault."""
    what, waiting = _("Waiting for people"), Approval.objects.waiting().order_by("asked_at")
    count, first = waiting.count(), waiting.first()
    if first is None:
        return Finding(what=what, now=_("No call waits for a decision."))
    now = ngettext(
        "%(count)d call waits for a decision, for %(time)s.",
        "%(count)d calls wait for a decision, the first for %(time)s.",
        count,
    )
    now %= {"count": count, "time": length(timezone.now() - first.asked_at)}
    return Finding(what=what, now=now, page=_traces("waiting"))


def about_failures() -> Finding:
    ended = Run.objects.filter(ended_at__gt=timezone.now() - LATELY)
    failed, count = ended.filter(status=Run.Status.FAILED).count(), ended.count()
    now = _("%(failed)d of %(count)d in the last hour.") % {"failed": failed, "count": count}
    is_much = failed * ONE_IN > count
    advice = _("Read what they say, and try their models and tools.") if is_much else ""
    return Finding(what=_("Failed runs"), now=now, advice=advice, page=_traces("failed"))


def about_takeovers() -> Finding:
    lately = Q(ended_at__gt=timezone.now() - LATELY) | Q(status=Run.Status.RUNNING)
    count = Run.objects.filter(lately, takeovers__gt=0).count()
    now = _("%(count)d in the last hour.") % {"count": count}
    advice = _("A process ended in the middle of its work. Its log says why.") if count else ""
    return Finding(what=_("Runs taken over"), now=now, advice=advice)


def about_the_journal(processes: Processes) -> Finding:
    lag = max((process.journal_lag for process in processes), default=0.0)
    now = _("What happens is kept within %(seconds)s s.") % {"seconds": number(lag)}
    now = now if lag else _("Nothing happened just now.")
    advice = _("The database is slow, or busy with something else.") if lag > MOST_LAG else ""
    return Finding(what=_("Journal"), now=now, advice=advice)


def about_event_loops(processes: Processes) -> Finding:
    what, count = _("Event loops"), sum(process.stalls for process in processes)
    if not count:
        return Finding(what=what, now=_("Never held up."))
    worst = max(processes, key=lambda process: process.longest_stall)
    now = ngettext(
        "Held up %(count)d time, for %(seconds)s s.",
        "Held up %(count)d times, for %(seconds)s s at most.",
        count,
    )
    now %= {"count": count, "seconds": number(worst.longest_stall)}
    return Finding(what=what, now=now, advice=_trouble_of_loops(processes, worst))


def _trouble_of_loops(processes: Processes, worst: ServerProcess) -> str:
    if late := [each.short_name for each in processes if each.lateness > MOST_LATENESS]:
        return _("Held up right now: %(names)s.") % {"names": ", ".join(late)}
    is_lately = any(p.stalled_at and p.now - p.stalled_at < LATELY for p in processes)
    is_much = worst.longest_stall > LONG_STALL or worst.stalls > MANY_STALLS
    if not is_lately or not is_much:
        return ""
    if not worst.stalled_in:
        return _("In the last hour too. The machine has more to do than it can.")
    where = worst.stalled_in.partition(" ")[0]
    return _("In the last hour too. The longest was in %(where)s.") % {"where": where}


def about_sockets(processes: Processes) -> Finding:
    count = sum(process.sockets for process in processes)
    now = ngettext("%(count)d page is connected.", "%(count)d pages are connected.", count)
    return Finding(what=_("Sockets"), now=now % {"count": count})


def about_the_database() -> Finding:
    kind = KINDS.get(connection.vendor, connection.vendor)
    version = ".".join(map(str, connection.get_database_version()))
    now = f"{kind} {version}, {filesizeformat(_database_size())}"
    return Finding(what=_("Database"), now=now)


def _database_size() -> int:
    size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    if connection.vendor == "postgresql":
        size = "SELECT pg_database_size(current_database())"
    with connection.cursor() as cursor:
        cursor.execute(size)
        return cursor.fetchone()[0]


def about_the_layer() -> Finding:
    what, kind = _("Channel layer"), type(get_channel_layer()).__name__
    if (delay := async_to_sync(health.layer_delay)()) is None:
        now = _("%(kind)s does not answer.") % {"kind": kind}
        advice = _("Pages follow only every few seconds. Is Redis there?")
        return Finding(what=what, now=now, advice=advice)
    now = _("%(kind)s answers within %(time)s ms.")
    return Finding(what=what, now=now % {"kind": kind, "time": number(delay * 1000)})


def about_the_disk() -> Finding:
    left = health.space_left()
    advice = _("Make room, or nothing new can be kept.") if left < health.LEAST_SPACE else ""
    now = _("%(size)s are left.") % {"size": filesizeformat(left)}
    return Finding(what=_("Disk"), now=now, advice=advice)


def about_the_data_folder() -> Finding:
    what, folder = _("Data folder"), {"folder": settings.DATA_DIR}
    if not data_folder.is_open(settings.DATA_DIR):
        return Finding(what=what, now=_("Only this server's user can read it."))
    now = _("Other users on this machine can read %(folder)s.") % folder
    advice = (
        _("It contains the secret key and the database. Run: chmod 700 %(folder)s") % folder
    )
    return Finding(what=what, now=now, advice=advice)


def about_models() -> Finding:
    """Those that agents think with: how they are set up, and whether they were left alone."""
    what, page = _("Models"), reverse("admin:agents_languagemodel_changelist")
    agents = Agent.objects.filter(enabled=True)
    names = sorted({name for agent in agents for name in planner_factory.models_of(agent)})
    if not names:
        return Finding(what=what, now=_("No agent is switched on."))
    if wrong := [str(error) for error in map(planner_factory.trouble, names) if error]:
        now = " ".join(map(told, wrong))
        advice = _("Set them up, or choose others for their agents.")
        return Finding(what=what, now=now, advice=advice, page=page)
    few = ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
    out = {state.key for state in CIRCUITS.state() if state.state != "closed"}
    if broken := [name for name in names if f"model:{name}" in out]:
        advice = _("Out of order: %(names)s. Look whether their provider is, and try again.")
        advice %= {"names": ", ".join(broken)}
        return Finding(what=what, now=few, advice=advice, page=page)
    return Finding(what=what, now=few, page=page)


def about_settings() -> Finding:
    what, count = (
        _("Settings"),
        sum(bool(remark.advice) for remark in deployment_checks.remarks()),
    )
    if not count:
        return Finding(what=what, now=_("Nothing speaks against letting others in."))
    now = ngettext(
        "%(count)d check of “check --deploy” needs a look.",
        "%(count)d checks of “check --deploy” need a look.",
        count,
    )
    advice = _("They are listed below, with what can be done.")
    return Finding(what=what, now=now % {"count": count}, advice=advice)


def about_circuits() -> Finding:
    what, page = _("Circuits"), reverse("admin:agents_circuits")
    if names := [state.key for state in CIRCUITS.state() if state.state != "closed"]:
        now = _("Out of order: %(names)s.") % {"names": ", ".join(names)}
        advice = _("They are left alone for a while and then tried again.")
        return Finding(what=what, now=now, advice=advice, page=page)
    return Finding(what=what, now=_("All are in order."), page=page)


def about_old_rows() -> Finding:
    """What is deleted once a day because it was kept long enough."""
    what, row = _("Retention"), Upkeep.objects.filter(name="prune").first()
    if row is None or row.at is None:
        return Finding(what=what, now=_("Nothing was looked for yet."))
    counts = {name: row.report.get(name, 0) for name in ("sessions", "runs", "entries")}
    deleted = _("%(sessions)d sessions, %(runs)d runs and %(entries)d audit entries") % counts
    age = timezone.now() - row.at
    now = _("Deleted %(time)s ago: %(what)s.") % {"time": length(age), "what": deleted}
    late = _("It should be done once a day. The log of the server says why it is not.")
    return Finding(what=what, now=now, advice=late if age > UPKEEP_WITHIN else "")


def about_servers() -> Finding:
    what, page = _("MCP servers"), reverse("admin:agents_mcpserver_changelist")
    servers = McpServer.objects.filter(enabled=True)
    failed = servers.filter(state=McpServer.State.FAILED)
    if names := list(failed.values_list("name", flat=True)):
        now = _("Out of order: %(names)s.") % {"names": ", ".join(names)}
        advice = _("Test their connections.")
        return Finding(what=what, now=now, advice=advice, page=page)
    now = _("All are in order.") if servers.exists() else _("None is set up.")
    return Finding(what=what, now=now, page=page)


def about_isolation() -> Finding:
    """What keeps servers that are programs from reading the secret key and the database."""
    what, level = _("MCP sandbox"), sandbox_status.general_level()
    has_programs = McpServer.objects.filter(enabled=True, transport="stdio").exists()
    advice = sandbox_status.advice() if level == "none" and has_programs else ""
    return Finding(what=what, now=sandbox_status.about(level), advice=advice)


def length(time: timedelta) -> str:
    if time < timedelta(minutes=1):
        return _("%(seconds)d s") % {"seconds": time.total_seconds()}
    now = timezone.now()
    return timesince(now - time, now, depth=1)


def number(value: float) -> str:
    return number_format(value, 2 if value < 1 else 1)


def _traces(status: str) -> str:
    return f"{reverse('trace:list')}?status={status}"
