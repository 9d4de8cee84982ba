"""The cards with a short list: waiting approvals, guardrail hits, unhealthy parts, changes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.access import audit
from agents.access.audit import messages as audit_messages
from agents.models import (
    Approval,
    AuditEntry,
    GuardrailHit,
    GuardrailPattern,
    McpServer,
    ServerProcess,
)
from agents.models.runs.runs import RunQuerySet

from ..system import health_checks
from ..system.health_checks import HealthCheck

MAX_LINES = 3
MAX_WAITING = 1_000
MAX_CHANGES = 5
CHANGE_ACTIONS = (
    audit.ADDED,
    audit.CHANGED,
    audit.DELETED,
    audit.RESTORED,
    audit.DELETED_FOR_GOOD,
    audit.CONFIG_IMPORTED,
    audit.WORKFLOW_SAVED,
    audit.RIGHTS_CHANGED,
    audit.PERSON_ADDED,
    audit.PERSON_DELETED,
)
Action = GuardrailPattern.Action
TONES: dict[str, str] = {
    Action.BLOCK: "red",
    Action.MASK: "amber",
    Action.WARN: "blue",
    Action.ALLOW: "green",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingApprovals:
    """Decisions that runs wait for, oldest first."""

    count: int
    lines: list[Approval]

    @property
    def oldest(self) -> datetime | None:
        return self.lines[0].asked_at if self.lines else None


def waiting_approvals(runs: RunQuerySet) -> WaitingApprovals:
    waiting = Approval.objects.waiting().filter(run__in=runs.live()).order_by("asked_at")
    columns = ("run", "tool", "agent_name", "asked_at", "why")
    approvals = list(waiting.only(*columns)[:MAX_WAITING])
    return WaitingApprovals(count=len(approvals), lines=approvals[:MAX_LINES])


@dataclass(frozen=True, slots=True, kw_only=True)
class HitLine:
    name: str
    url: str
    count: int
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailHits:
    count: int
    blocked: int
    masked: int
    lines: list[HitLine]

    @property
    def most(self) -> int:
        return max((line.count for line in self.lines), default=0)


def guardrail_hits(runs: RunQuerySet, since: datetime) -> GuardrailHits:
    """Count the hits of the period's runs by pattern; observed ones changed nothing."""
    # Hits have no index by time, but run ids are chronological.
    first = runs.filter(started_at__gte=since).order_by("started_at").values("pk")[:1]
    is_listed = Exists(runs.filter(pk=OuterRef("run")))  # looked up, not scanned
    hits = GuardrailHit.objects.filter(is_listed, run__gte=first, is_observed=False)
    rows = hits.values("pattern", "pattern__name", "action").annotate(number=Count("pk"))
    actions = Counter[str]()
    patterns = Counter[int]()
    names = {}
    tones: dict[int, str] = {}
    for row in rows.order_by():
        actions[row["action"]] += row["number"]
        patterns[row["pattern"]] += row["number"]
        names[row["pattern"]] = row["pattern__name"] or _("deleted pattern")
        if tones.get(row["pattern"]) != "red":
            tones[row["pattern"]] = TONES.get(row["action"], "amber")
    hits_url = reverse("admin:agents_guardrail_hits")
    lines = [
        HitLine(name=names[pk], url=f"{hits_url}?pattern={pk}", count=count, tone=tones[pk])
        for pk, count in patterns.most_common(MAX_LINES)
    ]
    return GuardrailHits(
        count=actions.total(),
        blocked=actions[Action.BLOCK],
        masked=actions[Action.MASK],
        lines=lines,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The parts that matter every day; the health page has all of them."""

    checks: list[HealthCheck]

    @property
    def unhealthy(self) -> int:
        return sum(not check.is_good for check in self.checks)


def load_health(servers: Sequence[McpServer]) -> Health:
    """Check the parts; `servers` were read already."""
    processes = list(ServerProcess.objects.with_silence())
    failing = [server.name for server in servers if server.state == McpServer.State.FAILED]
    checks = [
        health_checks.check_models(),
        health_checks.check_connections(
            _("MCP servers"),
            reverse("admin:agents_mcpserver_changelist"),
            failing,
            are_configured=bool(servers),
        ),
        health_checks.check_circuits(),
        health_checks.check_processes(processes),
        *health_checks.check_queue(processes),
        health_checks.check_event_writer(processes),
        health_checks.check_event_loops(processes),
        health_checks.check_disk(),
        health_checks.check_data_folder(),
    ]
    return Health(checks=sorted(checks, key=lambda check: check.is_good))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentChange:
    sentence: str
    at: datetime
    url: str


def recent_changes() -> list[RecentChange]:
    entries = list(
        AuditEntry.objects.filter(action__in=CHANGE_ACTIONS)
        .select_related("person")
        .order_by("-number")[:MAX_CHANGES]
    )
    people = audit_messages.person_names(entries) if entries else {}
    return [
        RecentChange(
            sentence=audit_messages.sentence(entry, people),
            at=entry.at,
            url=reverse("admin:agents_auditentry_change", args=[entry.pk]),
        )
        for entry in entries
    ]
