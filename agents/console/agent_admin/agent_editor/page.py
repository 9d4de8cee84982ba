"""What the editor's page displays besides the fields: tools, models, versions, guardrails."""

from contextlib import suppress
from itertools import zip_longest
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from agents.catalog.agent_icons import automatic_icon
from agents.console.metering import budgets
from agents.models import AgentVersion, GuardrailPattern

from ..agent_versions import VersionEntry
from . import model_options, schema_editor, tool_groups
from .drafts import EditedAgent
from .layout import TABS, tab_of

MAX_VERSIONS = 50


def context(edited: EditedAgent, form: Any, request: HttpRequest) -> dict[str, Any]:
    agent = edited.agent
    wrong = {tab_of(name) for name in form.errors} if form.is_bound else set()
    versions: list[AgentVersion] = []
    backtest_url = ""
    icon = (edited.values.get("icon") or [""])[0]
    if agent is not None:
        if not icon:
            tools = list(agent.tools.values_list("name", flat=True))
            icon = automatic_icon(agent, tools, has_handoffs=agent.handoffs.exists())
        rows = AgentVersion.objects.filter(agent=agent).select_related("author")
        versions = list(rows[: MAX_VERSIONS + 1])
        # The page that compares the draft with past runs may not be installed.
        with suppress(NoReverseMatch):
            backtest_url = reverse("admin:agents_agent_backtest", args=[agent.pk])
    entries = [VersionEntry(*pair) for pair in zip_longest(versions, versions[1:])]
    return {
        "edited": edited,
        "form": form,
        "tabs": TABS,
        "wrong_tabs": wrong,
        "groups": tool_groups.build(form, agent, request),
        "models": model_options.list_options(),
        "schema_examples": schema_editor.EXAMPLES,
        "versions": entries[:MAX_VERSIONS],
        # A new agent has those for all agents.
        "guardrails": list(GuardrailPattern.objects.for_agent(agent.pk if agent else 0)),
        "icon": icon,
        "backtest_url": backtest_url,
        **budgets.applying_to(request, agent=agent),
    }
