"""The page of a model and its row in the list: figures, agents, limits and other purposes."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from agents.access import audit
from agents.catalog import agent_versions
from agents.catalog.language_models import model_setups
from agents.metering.model_limits import QueueLength, queue_lengths
from agents.models import Agent, LanguageModel
from agents.models.types import AnyUser, LazyText
from agents.web.presentation.formats import formatting

from . import model_facts, model_providers, model_state, model_usage
from .model_usage import ModelTotals


def attach_figures(user: AnyUser, rows: Sequence[LanguageModel]) -> None:
    """Attach to each model what its row in the list displays, in few queries."""
    runs = model_usage.visible_runs(user)
    totals = {} if runs is None else model_usage.load_totals(user, rows)
    agents = list(Agent.objects.filter(enabled=True))
    among = model_setups.model_rows()
    queues = _load_queues(rows)
    for row in rows:
        used = totals.get(row.pk, ModelTotals())
        vars(row)["shown"] = {
            "card": model_providers.card_of(row.connection),
            "provider": row.connection.name,
            "name": model_providers.short_name(row),
            "state": model_state.state_of(row, used, among),
            "abilities": _able(row),
            "totals": None if runs is None else used,
            "uses": list(model_state.uses_of(row, agents)),
            "queue": queues.get(row.label),
        }


def page_context(user: AnyUser, row: LanguageModel) -> dict[str, Any]:
    """Return what the page of a saved model displays besides its form."""
    runs = model_usage.visible_runs(user)
    totals = model_usage.load_totals(user, [row])[row.pk] if runs is not None else None
    agents = list(Agent.objects.filter(enabled=True).order_by("name"))
    uses = list(model_state.uses_of(row, agents))
    agent_ids = {use.agent.pk for use in uses if use.role != "fallback"}
    calls = model_usage.load_calls(row, runs) if runs is not None else None
    rate = calls.error_rate if calls else None
    return {
        "state": model_state.state_of(row, totals),
        "circuit": model_state.circuit_of(row),
        "totals": totals,
        "calls": calls,
        "cached_share": formatting.percent(calls.cached_share)
        if calls and calls.cached_share
        else "",
        "error_rate": "—" if rate is None else formatting.percent(rate),
        "p50": calls.p50 if calls else None,
        "p95": calls.p95 if calls else None,
        "uses": uses,
        "other_agents": [agent for agent in agents if agent.pk not in agent_ids],
        "abilities": _able(row),
        "price": model_facts.price_text(row),
        "window": model_facts.window_of(row),
        "limits": _limits(row),
        "queue": _load_queues([row]).get(row.label),
        "runs_filter": f"called:{row.label} after:-7d",
        "can_change_agents": user.has_perm("agents.change_agent"),
    }


def _able(row: LanguageModel) -> list[LazyText]:
    abilities = model_facts.abilities_of(row)
    return [label for name, label in model_facts.ABILITIES.items() if abilities[name]]


def _limits(row: LanguageModel) -> list[str]:
    """Return the configured rate limits as text."""
    limits = {
        _("%(count)s at once"): row.concurrency,
        _("%(count)s requests per minute"): row.requests_per_minute,
        _("%(count)s tokens per minute"): row.tokens_per_minute,
    }
    return [
        text % {"count": number_format(count, force_grouping=True)}
        for text, count in limits.items()
        if count
    ]


def _load_queues(rows: Sequence[LanguageModel]) -> dict[str, QueueLength]:
    """Return how many calls run and wait now, for models with limits."""
    labels = [row.label for row in rows if _limits(row)]
    queues = queue_lengths() if labels else {}
    return {label: queues.get(label, QueueLength()) for label in labels}


@transaction.atomic
def use_in_agent(user: AnyUser, model: str, agent: Agent) -> None:
    """Switch an agent to a model, or with none to the default.

    That is a new version of the agent, and an entry of the audit log.
    """
    if not agent.version:
        agent_versions.save(agent, None)
    former_model = agent.model
    agent.model = model
    agent.save(update_fields=["model"])
    author = user if isinstance(user, User) else None
    note = _("Switched to %(model)s.") % {"model": model or _("the default model")}
    agent_versions.save(agent, author, note)
    changes = {"model": [former_model, model]}
    audit.record(user, audit.CHANGED, agent, name=agent.name, changes=changes)


@transaction.atomic
def make_default(user: AnyUser, row: LanguageModel) -> None:
    """Have agents without a model of their own use this one."""
    row.is_default = row.enabled = True
    row.save(update_fields=["is_default", "enabled"])
    changes = {"is_default": [False, True]}
    audit.record(user, audit.CHANGED, row, name=row.label, changes=changes)


@transaction.atomic
def clear_default(user: AnyUser) -> None:
    """Have agents without a model of their own use the installation's default."""
    for row in LanguageModel.objects.filter(is_default=True):
        row.is_default = False
        row.save(update_fields=["is_default"])
        changes = {"is_default": [True, False]}
        audit.record(user, audit.CHANGED, row, name=row.label, changes=changes)
