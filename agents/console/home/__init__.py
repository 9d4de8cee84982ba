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
    visible_runs = runs if user.has_perm(REVIEW_PERMISSION) else None
    context: dict[str, Any] = {
        "period": period,
        "periods": figures.PERIODS.values(),
        "setup": setup.build_checklist(user),
        "problems": problems.recent_problems(user, visible_runs, servers, period),
    }
    if visible_runs is not None:
        context |= _run_context(visible_runs, period)
    if user.has_perm(health.PERMISSION):
        context["health"] = cards.load_health(servers)
    if user.has_perm(AUDIT_PERMISSION):
        context["changes"] = cards.recent_changes()
    return context | {"is_bare": _is_bare(context)}


def _run_context(runs: RunQuerySet, period: figures.Period) -> dict[str, Any]:
    now = timezone.now()
    run_figures = figures.load_figures(runs, period, now)
    agent_costs = [
        {
            "cost": agent_cost,
            "url": links.runs_url(period, links.term("agent", agent_cost.name)),
        }
        for agent_cost in run_figures.agents
    ]
    return {
        "figures": run_figures,
        "metrics": metrics.build_metrics(run_figures, period),
        "axis": metrics.axis(period, now),
        "approvals": cards.waiting_approvals(runs),
        "approvals_url": f"{reverse('trace:list')}?q=status:waiting",
        "hits": cards.guardrail_hits(runs, period.start(now)),
        "spent": agent_costs,
        "most_spent": max((agent_cost.cost for agent_cost in run_figures.agents), default=0.0),
        "spent_url": links.runs_url(period, sort="-cost"),
        "failed_url": links.runs_url(period, "status:failed"),
    }


def _is_bare(context: dict[str, Any]) -> bool:
    """Whether there is nothing on the page that this user can see."""
    return not (context.keys() & {"figures", "health", "changes"} or context["setup"])
