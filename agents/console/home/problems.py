"""Recent problems: what went wrong, in words, with the one link that helps."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access.masking import mask_text
from agents.catalog.agent_factory import CIRCUITS
from agents.db.sentences import translate
from agents.engine.loop import StopReason
from agents.engine.text import shorten
from agents.metering.figures.selection import Selection, Viewer, runs_url, term
from agents.metering.figures.windows import Window
from agents.models import Document, McpServer, Run
from agents.models.runs.runs import RunQuerySet

MAX_PROBLEMS = 6
MAX_RUNS = 300
MAX_DOCUMENTS = 3
MAX_CHARS = 160
Status = Run.Status
LIMITS = (
    StopReason.BUDGET,
    StopReason.MAX_STEPS,
    StopReason.TOOL_LIMIT,
    StopReason.DUPLICATE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    title: str
    sentence: str
    at: datetime | None
    icon: str
    tone: str
    action: str
    url: str


GroupLoader = Callable[[User, datetime], list[Problem] | None]
_load_groups: GroupLoader | None = None


def use_groups(load: GroupLoader) -> None:
    """Display grouped problems of runs, for users who can see them, instead of runs."""
    global _load_groups
    _load_groups = load


def recent_problems(
    user: User, runs: RunQuerySet | None, servers: Sequence[McpServer], window: Window
) -> list[Problem]:
    """Return the latest problems that this user can do something about."""
    recent: list[Problem] = []
    if user.has_perm("agents.view_mcpserver"):
        recent += _server_problems(servers)
    if user.has_perm("agents.change_agent"):
        recent += _circuit_problems()
    if runs is not None:
        groups = _load_groups(user, window.start) if _load_groups else None
        if groups is not None:
            recent += groups
            # Running out of budget isn't a problem of an agent.
            runs = runs.filter(stopped_reason=StopReason.BUDGET)
        recent += _run_problems(user, runs, window)
    if user.has_perm("agents.view_document"):
        recent += _document_problems(window)
    current_time = timezone.now()
    recent.sort(key=lambda problem: problem.at or current_time, reverse=True)
    return recent[:MAX_PROBLEMS]


def _server_problems(servers: Sequence[McpServer]) -> Iterator[Problem]:
    for server in servers:
        if server.state == McpServer.State.FAILED:
            yield Problem(
                title=_("MCP server %(name)s is failing") % {"name": server.name},
                sentence=shorten(translate(server.last_error), MAX_CHARS),
                at=server.state_since,
                icon="failed",
                tone="red",
                action=_("Test connection"),
                url=reverse("admin:agents_mcpserver_change", args=[server.pk]),
            )


def _circuit_problems() -> Iterator[Problem]:
    for state in CIRCUITS.state():
        if state.state != "closed":
            yield Problem(
                title=_("Calls to %(name)s are paused")
                % {"name": state.label.partition(":")[2]},
                sentence=shorten(mask_text(translate(state.error)), MAX_CHARS),
                at=state.since,
                icon="failed",
                tone="red",
                action=_("View circuit breaker"),
                url=reverse("admin:agents_circuits"),
            )


def _run_problems(user: User, runs: RunQuerySet, window: Window) -> Iterator[Problem]:
    """Yield runs that failed, were blocked or hit a limit: those of a kind together."""
    columns = ("pk", "agent", "agent_name", "status", "stopped_reason", "detail", "ended_at")
    failed_runs = runs.filter(
        status__in=[Status.FAILED, Status.BLOCKED, Status.STOPPED],
        ended_at__gte=window.start,
    )
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in (
        failed_runs.exclude(stopped_reason=StopReason.CANCELLED)
        .order_by("-ended_at")
        .only(*columns)[:MAX_RUNS]
    ):
        key = (
            run.agent_name,
            run.stopped_reason,
            run.detail if run.status == Status.FAILED else "",
        )
        groups.setdefault(key, []).append(run)
    for group in islice(groups.values(), MAX_PROBLEMS):
        run = group[0]
        count = len(group)
        params = {"agent": run.agent_name, "count": count}
        selection = Selection(agent=run.agent_name)
        url = runs_url(Viewer(user), window, selection, term("status", run.status))
        action = ngettext("View run", "View %(count)d runs", count) % params
        if count == 1:
            url = reverse("trace:run", args=[run.pk])
        icon = "failed" if run.status == Status.FAILED else "blocked"
        if run.stopped_reason in LIMITS:
            icon = "cost" if run.stopped_reason == StopReason.BUDGET else "timer"
            if run.agent_id and user.has_perm("agents.change_agent"):
                action = _("Edit limits")
                url = reverse("admin:agents_agent_change", args=[run.agent_id])
        yield Problem(
            title=_run_title(run, count) % params,
            sentence=shorten(mask_text(translate(run.detail)), MAX_CHARS),
            at=run.ended_at,
            icon=icon,
            tone="red" if run.status == Status.FAILED else "amber",
            action=action,
            url=url,
        )


def _run_title(run: Run, count: int) -> str:
    if run.status == Status.FAILED:
        return ngettext(
            "A run of %(agent)s failed", "%(count)d runs of %(agent)s failed", count
        )
    if run.status == Status.BLOCKED:
        return ngettext(
            "A guardrail blocked a run of %(agent)s",
            "Guardrails blocked %(count)d runs of %(agent)s",
            count,
        )
    if run.stopped_reason == StopReason.BUDGET:
        return ngettext(
            "%(agent)s reached its cost or token limit",
            "%(agent)s reached its cost or token limit %(count)d times",
            count,
        )
    return ngettext(
        "%(agent)s reached a limit", "%(agent)s reached a limit %(count)d times", count
    )


def _document_problems(window: Window) -> Iterator[Problem]:
    failed = Document.objects.filter(
        status=Document.Status.FAILED,
        collection__owner=None,
        collection__topic="",
        collection__deleted_at=None,
        added_at__gte=window.start,
    )
    for document in failed.order_by("-added_at")[:MAX_DOCUMENTS]:
        yield Problem(
            title=_("%(name)s couldn't be indexed") % {"name": document.title},
            sentence=shorten(translate(document.problem), MAX_CHARS),
            at=document.added_at,
            icon="document",
            tone="amber",
            action=_("View document"),
            url=reverse("library:document", args=[document.pk]),
        )
