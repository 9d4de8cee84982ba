"""What the editor's page displays besides the fields: tools, models, versions, guardrails."""

from itertools import zip_longest
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from agents.models import Agent, AgentVersion, GuardrailPattern

from .. import budgets
from ..agent_versions import VersionEntry
from . import model_options, schema_editor, tool_groups
from .drafts import EditedAgent
from .layout import TABS, tab_of

MAX_VERSIONS = 50


def context(edited: EditedAgent, form: Any, request: HttpRequest) -> dict[str, Any]:
    agent = edited.agent
    wrong = {tab_of(name) for name in form.errors} if form.is_bound else set()
    return {
        "edited": edited,
        "form": form,
        "tabs": TABS,
        "wrong_tabs": wrong,
        "groups": tool_groups.build(form, agent, request),
        "models": model_options.list_options(),
        "schema_examples": schema_editor.EXAMPLES,
        "versions": _versions(agent),
        "guardrails": _guardrails(agent),
        "icon": edited.values.get("icon", [""])[0] if edited.values.get("icon") else "",
        "backtest_url": _backtest_url(agent),
        **budgets.applying_to(request, agent=agent),
    }


def _versions(agent: Agent | None) -> list[VersionEntry]:
    if agent is None:
        return []
    rows = list(
        AgentVersion.objects.filter(agent=agent).select_related("author")[: MAX_VERSIONS + 1]
    )
    return [VersionEntry(*pair) for pair in zip_longest(rows, rows[1:])][:MAX_VERSIONS]


def _guardrails(agent: Agent | None) -> list[GuardrailPattern]:
    """Return those that apply; a new agent has those for all agents."""
    return list(GuardrailPattern.objects.for_agent(agent.pk if agent else 0))


def _backtest_url(agent: Agent | None) -> str:
    """Return the page that compares the draft with past runs, if there is one."""
    try:
        return reverse("admin:agents_agent_backtest", args=[agent.pk]) if agent else ""
    except NoReverseMatch:
        return ""
