"""The console's home: a checklist for a new installation, then figures with links."""

from heapq import nlargest
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access.requests import signed_in_user
from agents.metering.figures import catch_up
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer, runs_url
from agents.metering.figures.windows import Window
from agents.models import McpServer, Run
from agents.models.runs.runs import RunQuerySet
from agents.web.figures import metrics
from agents.web.figures.cards import load_overview

from ..system import health
from . import cards, problems, setup
from .periods import DEFAULT_PERIOD, PERIODS

REVIEW_PERMISSION = "agents.review_runs"
AUDIT_PERMISSION = "agents.view_auditentry"
CARDS = metrics.pick("runs", "cost", "errors", "active_p95")
MAX_AGENTS = 5

__all__ = ["home_context"]


def home_context(request: HttpRequest) -> dict[str, Any]:
    """Return what this user's home displays: only what they could open themselves."""
    user = signed_in_user(request)
    period = PERIODS.get(request.GET.get("period", ""), DEFAULT_PERIOD)
    current_time = timezone.now()
    window = period.window(current_time)
    sees_servers = user.has_perm("agents.view_mcpserver") or user.has_perm(health.PERMISSION)
    servers = list(McpServer.objects.filter(enabled=True)) if sees_servers else []
    runs = Run.objects.for_user(user).listed().executed().without_experiments()
    visible_runs = runs if user.has_perm(REVIEW_PERMISSION) else None
    context: dict[str, Any] = {
        "period": period,
        "periods": PERIODS.values(),
        "setup": setup.build_checklist(user),
        "problems": problems.recent_problems(user, visible_runs, servers, window),
    }
    if visible_runs is not None:
        context |= _run_context(user, visible_runs, window, window.before(current_time))
    if user.has_perm(health.PERMISSION):
        context["health"] = cards.load_health(servers)
    if user.has_perm(AUDIT_PERMISSION):
        context["changes"] = cards.recent_changes()
    # Whether there is nothing on the page that this user can see.
    is_bare = not (context.keys() & {"cards", "health", "changes"} or context["setup"])
    return context | {"is_bare": is_bare}


def _run_context(
    user: User, runs: RunQuerySet, window: Window, previous_window: Window
) -> dict[str, Any]:
    catch_up.catch_up_for_page()
    viewer = Viewer(user)
    query = FiguresQuery(viewer, window, Selection())
    previous_query = FiguresQuery(viewer, previous_window, Selection())
    overview = load_overview(query, previous_query, CARDS)
    live_count = runs.live().filter(started_at__gte=window.start).count()
    costs = [(totals.cost, str(name)) for (name,), totals in query.split(By.AGENT).items()]
    agent_costs = [
        {
            "name": name,
            "cost": cost,
            "url": runs_url(viewer, window, Selection(agent=name), sort="-cost"),
        }
        for cost, name in nlargest(MAX_AGENTS, costs)
        if cost
    ]
    return {
        "cards": overview.cards,
        "axis": overview.axis,
        "live_note": _("%(count)d running now") % {"count": live_count} if live_count else "",
        "is_empty": overview.is_empty and not live_count,
        "approvals": cards.waiting_approvals(runs),
        "approvals_url": f"{reverse('trace:list')}?q=status:waiting",
        "hits": cards.guardrail_hits(runs, window.start),
        "spent": agent_costs,
        "most_spent": max((cost for cost, _name in costs), default=0.0),
        "spent_url": runs_url(viewer, window, Selection(), sort="-cost"),
        "failed_url": runs_url(viewer, window, Selection(), "status:failed"),
    }
