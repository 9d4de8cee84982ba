"""Agent descriptions as plain values, with names instead of ids."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext as _

from agents.models import Agent, AgentTool, ToolRegistration
from agents.models.agent_tools import links_of, replace_tools

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
        for pair in through.objects.filter(**{f"{own_name}__in": pks}).select_related(
            other_name
        ):
            related[getattr(pair, f"{own_name}_id")][field.name].append(
                getattr(pair, other_name)
            )
    return {row.pk: build_spec(row, links[row.pk], related[row.pk]) for row in rows}


def prefetch_names() -> list[str]:
    """Return the relations to prefetch, so that many agents are described by few queries."""
    relations = [field.name for field in own_fields() if field.is_relation]
    return ["links__tool", *relations, *related_names()]


def build_spec(
    agent: Agent, links: Iterable[AgentTool], related: Mapping[str, Iterable[Any]]
) -> AgentSpec:
    """Describe an unsaved agent with its tools and relations."""
    names = {
        name: sorted(row.name for row in related.get(name, ())) for name in related_names()
    }
    tools = {link.tool.name: _link_settings(link) for link in links}
    return {
        **{field.name: _field_value(agent, field) for field in own_fields()},
        "tools": dict(sorted(tools.items())),
        **names,
    }


def resolve(spec: AgentSpec, base: Agent | None = None) -> ResolvedSpec:
    """Return the described agent; unspecified fields come from `base`."""
    missing: list[str] = []
    agent = copy(base) if base is not None else Agent()
    for field in own_fields():
        if field.name in spec:
            _set_field(agent, field, spec[field.name], missing)
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
    if troubles := _name_conflict(current, values):
        del values["name"]
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


def _link_settings(link: AgentTool) -> dict[str, Any]:
    return {name: value for name, value in link.settings.items() if value not in ("", None)}


def _field_value(agent: Agent, field: models.Field) -> Any:
    if not field.is_relation:
        return field.value_from_object(agent)
    row = getattr(agent, field.name)
    return row and row.name


def _set_field(agent: Agent, field: models.Field, value: Any, missing: list[str]) -> None:
    if field.is_relation and value is not None:
        value = next(iter(_find_by_name(_related_rows(field), [value], missing)), None)
    setattr(agent, field.name, value)


def _related_rows(field: Any) -> models.QuerySet[Any]:
    related: Any = field.related_model
    return related._default_manager.complex_filter(field.get_limit_choices_to())


def _find_by_name(
    rows: models.QuerySet[Any], names: Collection[str], missing: list[str]
) -> list[Any]:
    found = list(rows.filter(name__in=names).order_by("name"))
    missing_names = sorted(set(names) - {row.name for row in found})
    missing += [_missing_message(rows.model._meta.verbose_name, name) for name in missing_names]
    return found


def _missing_message(kind: Any, name: str) -> str:
    values = {"kind": kind, "name": name}
    return _("The %(kind)s %(name)s no longer exists, so it wasn't included.") % values


def _name_conflict(agent: Agent, values: AgentSpec) -> list[str]:
    name = values.get("name", agent.name)
    if not Agent.objects.filter(name=name).exclude(pk=agent.pk).exists():
        return []
    return [
        _("Another agent is now named %(name)s, so this one keeps the name %(now)s.")
        % {"name": name, "now": agent.name}
    ]
