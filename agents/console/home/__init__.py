"""The console's home: a checklist for a new installation, then figures with links."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from agents.access.requests import signed_in_user
from agents.models import McpServer, Run
from agents.models.runs import RunQuerySet

from .. import health
from . import cards, figures, links, metrics, problems, setup

REVIEW_PERMISSION = "agents.review_runs"
AUDIT_PERMISSION = "agents.view_auditentry"

__all__ = ["home_context"]


def home_context(request: HttpRequest) -> dict[str, Any]:
    """Return what this user's home displays: only what they could open themselves."""
    user = signed_in_user(request)
    period = figures.PERIODS.get(request.GET.get("period", ""), None)
    period = period or figures.PERIODS[figures.DEFAULT_PERIOD]
    sees_servers = user.has_perm("agents.view_mcpserver") or user.has_perm(health.PERMISSION)
    servers = list(McpServer.objects.filter(enabled=True)) if sees_servers else []
    runs = Run.objects.for_user(user).listed().executed().without_experiments()
    listed = runs if user.has_perm(REVIEW_PERMISSION) else None
    context: dict[str, Any] = {
        "period": period,
        "periods": figures.PERIODS.values(),
        "setup": setup.build_checklist(user),
        "problems": problems.recent_problems(user, listed, servers, period),
    }
    if listed is not None:
        context |= _run_context(listed, period)
    if user.has_perm(health.PERMISSION):
        context["health"] = cards.load_health(servers)
    if user.has_perm(AUDIT_PERMISSION):
        context["changes"] = cards.recent_changes()
    return context | {"is_bare": _is_bare(context)}


def _run_context(listed: RunQuerySet, period: figures.Period) -> dict[str, Any]:
    now = timezone.now()
    found = figures.load_figures(listed, period, now)
    spent = [
        {"cost": one, "url": links.runs_url(period, links.term("agent", one.name))}
        for one in found.agents
    ]
    return {
        "figures": found,
        "metrics": metrics.build_metrics(found, period),
        "axis": metrics.axis(period, now),
        "approvals": cards.waiting_approvals(listed),
        "approvals_url": f"{reverse('trace:list')}?q=status:waiting",
        "hits": cards.guardrail_hits(listed, period.start(now)),
        "spent": spent,
        "most_spent": max((one.cost for one in found.agents), default=0.0),
        "spent_url": links.runs_url(period, sort="-cost"),
        "failed_url": links.runs_url(period, "status:failed"),
    }


def _is_bare(context: dict[str, Any]) -> bool:
    """Whether there is nothing on the page that this user can see."""
    return not (context.keys() & {"figures", "health", "changes"} or context["setup"])
