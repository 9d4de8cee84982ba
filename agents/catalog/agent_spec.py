"""Agent descriptions as plain values, with names instead of ids."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext as _

from agents.models import Agent, AgentTool, ToolRegistration
from agents.models.catalog.agent_tools import links_of, replace_tools

AgentSpec = dict[str, Any]

EXCLUDED_FIELDS = {"id", "version"}
# An old version doesn't decide whether the agent is used now.
PRESERVED_FIELDS = ("enabled", "is_default")
# Including relations, which can't be loaded later.
TOOL_ROWS = ToolRegistration.objects.select_related("server", "fallback", "connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpec:
    """A description resolved against current rows; `missing` lists what doesn't exist."""

    agent: Agent  # unsaved
    links: list[AgentTool]
    many: dict[str, list[Any]]
    missing: list[str]


def describe(agent: Agent) -> AgentSpec:
    related = {name: getattr(agent, name).all() for name in related_names()}
    return build_spec(agent, links_of(agent), related)


def describe_all(agents: Iterable[Agent]) -> dict[int, AgentSpec]:
    """Describe many agents by one query per relation; prefetching them takes much longer."""
    rows = list(agents)
    pks = [agent.pk for agent in rows]
    links: dict[int, list[AgentTool]] = defaultdict(list)
    for link in AgentTool.objects.filter(agent__in=pks).select_related("tool"):
        links[link.agent_id].append(link)
    related: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for field in _related_fields():
        own_name = field.m2m_field_name()
        other_name = field.m2m_reverse_field_name()
        through: Any = field.remote_field.through
        pairs = through.objects.filter(**{f"{own_name}__in": pks})
        for pair in pairs.select_related(other_name):
            agent_id = getattr(pair, f"{own_name}_id")
            related[agent_id][field.name].append(getattr(pair, other_name))
    return {row.pk: build_spec(row, links[row.pk], related[row.pk]) for row in rows}


def prefetch_names() -> list[str]:
    """Return the relations to prefetch, so that many agents are described by few queries."""
    relations = [field.name for field in own_fields() if field.is_relation]
    return ["links__tool", *relations, *related_names()]


def build_spec(
    agent: Agent, links: Iterable[AgentTool], related: Mapping[str, Iterable[Any]]
) -> AgentSpec:
    """Describe an unsaved agent with its tools and relations."""
    spec: AgentSpec = {}
    for field in own_fields():
        if field.is_relation:
            row = getattr(agent, field.name)
            spec[field.name] = row and row.name
        else:
            spec[field.name] = field.value_from_object(agent)
    tools = {}
    for link in links:
        settings = link.settings.items()
        tools[link.tool.name] = {
            name: value for name, value in settings if value not in ("", None)
        }
    spec["tools"] = dict(sorted(tools.items()))
    for name in related_names():
        spec[name] = sorted(row.name for row in related.get(name, ()))
    return spec


def resolve(spec: AgentSpec, base: Agent | None = None) -> ResolvedSpec:
    """Return the described agent; unspecified fields come from `base`."""
    missing: list[str] = []
    agent = copy(base) if base is not None else Agent()
    for field in own_fields():
        if field.name in spec:
            value = spec[field.name]
            if field.is_relation and value is not None:
                value = next(iter(_find_by_name(_related_rows(field), [value], missing)), None)
            setattr(agent, field.name, value)
    tools = spec.get("tools", {})
    rows = _find_by_name(TOOL_ROWS.all(), tools, missing)
    links = [AgentTool(tool=row, **tools[row.name]) for row in rows]
    related = {
        field.name: _find_by_name(_related_rows(field), spec[field.name], missing)
        for field in _related_fields()
        if field.name in spec
    }
    return ResolvedSpec(agent=agent, links=links, many=related, missing=missing)


@transaction.atomic
def restore(
    agent: Agent, spec: AgentSpec, keeps: Collection[str] = PRESERVED_FIELDS
) -> list[str]:
    """Restore the row from a description, except `keeps`; return what isn't available."""
    values = {name: value for name, value in spec.items() if name not in keeps}
    current = Agent.objects.select_for_update().get(pk=agent.pk)
    troubles: list[str] = []
    if Agent.objects.filter(name=values.get("name")).exclude(pk=agent.pk).exists():
        sentence = _("Another agent is now named %(name)s, so this one keeps the name %(now)s.")
        troubles.append(sentence % {"name": values.pop("name"), "now": current.name})
    resolved = resolve(values, current)
    resolved.agent.save()
    if "tools" in values:
        replace_tools(resolved.agent, resolved.links)
    for name, rows in resolved.many.items():
        # Without any it would be for everyone, or search everything, so the current ones stay.
        if rows or not values[name] or name not in {"groups", "collections"}:
            getattr(resolved.agent, name).set(rows)
    agent.refresh_from_db()
    return troubles + resolved.missing


def own_fields() -> list[models.Field]:
    """Return an agent's own fields, in the model's order."""
    return [field for field in Agent._meta.concrete_fields if field.name not in EXCLUDED_FIELDS]


def related_names() -> list[str]:
    """Return its many-to-many fields except tools; their rows have names."""
    return [field.name for field in _related_fields()]


def _related_fields() -> list[models.ManyToManyField]:
    return [field for field in Agent._meta.many_to_many if field.name != "tools"]


def _related_rows(field: Any) -> models.QuerySet[Any]:
    related: Any = field.related_model
    return related._default_manager.complex_filter(field.get_limit_choices_to())


def _find_by_name(
    rows: models.QuerySet[Any], names: Collection[str], missing: list[str]
) -> list[Any]:
    existing = list(rows.filter(name__in=names).order_by("name"))
    for name in sorted(set(names) - {row.name for row in existing}):
        sentence = _("The %(kind)s %(name)s no longer exists, so it wasn't included.")
        missing.append(sentence % {"kind": rows.model._meta.verbose_name, "name": name})
    return existing
