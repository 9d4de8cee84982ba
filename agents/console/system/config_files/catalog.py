"""Models, servers, tools and agents in configuration files."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.catalog import agent_spec, agent_versions, mcp_servers
from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.tools import tool_factory
from agents.db.fast_writes import concrete_field
from agents.models import (
    Agent,
    AgentTool,
    AgentVersion,
    DatabaseConnection,
    LanguageModel,
    McpServer,
    ModelConnection,
    Schedule,
    ToolRegistration,
)
from agents.models.catalog.agent_tools import TOOL_SETTINGS
from agents.tools.mcp.definition import ToolDefinition, tool_name

from .columns import (
    ConfigColumn,
    editable_columns,
    normalize_newlines,
    not_found_message,
    unknown_key_message,
)
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser, user_or_none
from .schedules import KEY, OF_AGENTS, described_rows

Source = ToolRegistration.Source

IMPORT_NOTE = gettext_lazy("Imported from a file.")


class ConnectionKind(ResourceKind):
    """Connections to providers; a new key has to be entered in the console."""

    def columns(self, values: ResourceValues) -> list[ConfigColumn]:
        return editable_columns(self.model, without=(self.named, "listing"))

    def after_save(self, row: Any) -> None:
        for label in row.models.values_list("label", flat=True):
            transaction.on_commit(partial(CIRCUITS.close, f"model:{label}"))


class ModelKind(ResourceKind):
    named = "label"

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().select_related("connection")

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(self.model, self.named).clean(name, None)
        if not values.get("connection"):
            raise ValidationError(_("A model needs a connection."))
        connection = ModelConnection.objects.filter(name=values["connection"]).first()
        if connection is None:
            kind = ModelConnection._meta.verbose_name
            raise ValidationError(not_found_message(kind, values["connection"]))
        return LanguageModel.objects.create(label=name, connection=connection)

    def after_save(self, row: Any) -> None:
        transaction.on_commit(partial(CIRCUITS.close, f"model:{row.label}"))


class ServerKind(ResourceKind):
    """MCP servers; local programs can only be changed by those who may start one."""

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        return _permission_issues(row, user) or super().keep(row, values, user)

    def disable(self, row: Any, user: ConfigUser) -> list[ValidationIssue]:
        return _permission_issues(row, user) or super().disable(row, user)

    def after_save(self, row: Any) -> None:
        transaction.on_commit(partial(mcp_servers.disconnect, row.name))


def _permission_issues(row: Any, user: ConfigUser) -> list[ValidationIssue]:
    is_program = row.transport == McpServer.Transport.STDIO
    if not is_program or user.has_perm(mcp_servers.STDIO_PERMISSION):
        return []
    message = _(
        "You don't have permission to set up servers that run programs on this machine."
    )
    return [ValidationIssue(("transport",), message)]


class DatabaseKind(ResourceKind):
    """Databases; each has a tool, which is made with it."""

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().filter(is_sample=False)

    def after_save(self, row: Any) -> None:
        transaction.on_commit(partial(CIRCUITS.close, f"tool:{row.tool_name}"))


class ToolKind(ResourceKind):
    """Tools; their fields depend on the source."""

    only_first = ("source", "server", "connection")

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().select_related("server", "fallback", "connection")

    def complete(self, row: Any, values: ResourceValues) -> ResourceValues:
        return {"source": row.source, **values} if row else values

    def columns(self, values: ResourceValues) -> list[ConfigColumn]:
        without = EXCLUDED_COLUMNS[_source(values)]
        return editable_columns(self.model, self.only_first, (self.named, *without))

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        yield from super().mismatches(values)
        if values.get("source", Source.HTTP) not in Source.values:
            yield ValidationIssue(("source",), _("Must be own, http, mcp or database."))
        is_of_server = _source(values) == Source.MCP and "definition" in values
        if is_of_server and not _is_definition(values["definition"]):
            yield ValidationIssue(("definition",), _("This isn't a valid MCP tool definition."))

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(self.model, self.named).clean(name, None)
        source = _source(values)
        if source == Source.OWN and name not in tool_factory.installed_names():
            raise ValidationError(_("There's no built-in tool with this name."))
        if source == Source.DATABASE:
            # It exists since its database does.
            connection = DatabaseConnection.objects.filter(
                name=values.get("connection") or ""
            ).first()
            if connection is None:
                kind = DatabaseConnection._meta.verbose_name
                raise ValidationError(not_found_message(kind, str(values.get("connection"))))
            if connection.tool_name != name:
                raise ValidationError(
                    _("The tool name doesn't match its database. Use query_name.")
                )
            tool, _is_new = connection.tools.get_or_create(
                name=name, defaults={"source": Source.DATABASE}
            )
            return tool
        fields: ResourceValues = {}
        if source == Source.MCP:
            server = McpServer.objects.filter(name=values.get("server") or "").first()
            if server is None:
                kind = McpServer._meta.verbose_name
                raise ValidationError(not_found_message(kind, str(values.get("server"))))
            if "definition" not in values:
                raise ValidationError(_("A tool from an MCP server needs a definition."))
            definition = ToolDefinition(**values["definition"])
            if tool_name(server.name, definition.name) != name:
                raise ValidationError(
                    _(
                        "The tool name doesn't match its server and definition. "
                        "Use server__tool."
                    )
                )
            fields = {"server": server, "definition": definition.as_dict()}
        return ToolRegistration.objects.create(name=name, source=source, **fields)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        fixed = {
            "source": row.source,
            "server": row.server and row.server.name,
            "connection": row.connection and row.connection.name,
        }
        for name, value in fixed.items():
            if values.get(name, value) != value:
                return [ValidationIssue((name,), _("A tool's source can't be changed."))]
        if wrong := super().keep(row, values, user):
            return wrong
        definition = values.get("definition", row.definition)
        if row.source == Source.MCP and definition != row.definition:
            # It may be the pending one.
            row.pending = None if row.pending == definition else row.pending
            row.definition = ToolDefinition(**definition).as_dict()
            row.save(update_fields=["definition", "pending"])
        return []

    def form(self, row: Any, values: ResourceValues, user: ConfigUser, **options: Any) -> Any:
        form = super().form(row, values, user, **options)
        if row.source == Source.MCP:
            del form.fields["definition"]  # defined by its server, in another form
        return form

    def after_save(self, row: Any) -> None:
        transaction.on_commit(partial(CIRCUITS.close, f"tool:{row.name}"))


EXCLUDED_COLUMNS = {
    Source.OWN: ["server", "connection", "definition", "endpoint", "method", "headers"],
    Source.MCP: ["connection", "endpoint", "method", "headers"],
    Source.HTTP: ["server", "connection"],
    Source.DATABASE: [
        "server",
        "definition",
        "endpoint",
        "method",
        "headers",
        "description",
        "timeout",
    ],
}


# Settings of an agent that its form compares with each other, and those whose validity depends
# on other rows.
COMPARED_SETTINGS = {"tools", "handoffs", "mode", "merge", "output_schema"}
OUTWARD_FIELDS = {"model", "fallback_models"}


class AgentKind(ResourceKind):
    """Agents with their tools (`agents.catalog.agent_spec`) and schedules.

    Each change creates a version, which has no schedules.
    """

    parts = (AgentVersion, Schedule)

    def columns(self, values: ResourceValues) -> list[ConfigColumn]:
        return editable_columns(self.model, without=(self.named, "tools"))

    def describe(self, row: Any) -> ResourceValues:
        schedules = {KEY: OF_AGENTS.describe(row.schedules.all())}
        return self._without_name(agent_spec.describe(row)) | schedules

    def describe_all(self, rows: dict[str, Any]) -> dict[str, ResourceValues]:
        specs = agent_spec.describe_all(rows.values())
        schedules: dict[int | None, list[Schedule]] = defaultdict(list)
        for schedule in described_rows().filter(agent__in=specs):
            schedules[schedule.agent_id].append(schedule)
        return {
            name: self._without_name(specs[row.pk])
            | {KEY: OF_AGENTS.describe(schedules[row.pk])}
            for name, row in rows.items()
        }

    def _without_name(self, values: ResourceValues) -> ResourceValues:
        return {
            name: normalize_newlines(value)
            for name, value in values.items()
            if name != self.named
        }

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return [*super().allowed_keys(values), "tools", KEY]

    def complete(self, row: Any, values: ResourceValues) -> ResourceValues:
        """Accept a bare name for a tool without settings."""
        values = OF_AGENTS.complete(values)
        if not isinstance(tools := values.get("tools"), dict):
            return values
        return {**values, "tools": {name: settings or {} for name, settings in tools.items()}}

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        yield from super().mismatches(values)
        yield from OF_AGENTS.mismatches(values)
        tools = values.get("tools", {})
        if not isinstance(tools, dict):
            yield ValidationIssue(("tools",), _("Must map tool names to their settings."))
            return
        for name, settings in tools.items():
            if not isinstance(settings, dict):
                message = _("Must be a mapping of settings, or empty.")
                yield ValidationIssue(("tools", name), message)
                continue
            for key, value in settings.items():
                if key not in TOOL_SETTINGS:
                    yield ValidationIssue(("tools", name, key), unknown_key_message(key))
                elif why := ConfigColumn(field=AgentTool._meta.get_field(key)).mismatch(value):
                    yield ValidationIssue(("tools", name, key), why)

    def missing_references(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        yield from super().missing_references(values)
        yield from OF_AGENTS.missing_references(values)
        tools = values.get("tools", {})
        pks = _tool_pks(tools)
        kind = ToolRegistration._meta.verbose_name
        for name in tools:
            if name not in pks:
                yield ValidationIssue(("tools", name), not_found_message(kind, name))

    def data(self, row: Any, values: ResourceValues) -> ResourceValues:
        pks = _tool_pks(values["tools"])
        data = super().data(row, values)
        for name, settings in values["tools"].items():
            inputs = {"is_given": "on", **settings}
            data |= {f"tool-{pks[name]}-{key}": value for key, value in inputs.items()}
        return data

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        tools = current.get("tools")
        if values.get("tools", tools) != tools or OF_AGENTS.differ(current, values):
            return True
        return super().differs(current, values)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        return super().keep(row, values, user) or OF_AGENTS.keep(row, values, user)

    def prepare(self, row: Any, values: ResourceValues) -> None:
        """Unset the default before another agent becomes it."""
        if row.is_default and values.get("is_default") is False:
            row.is_default = False
            row.save(update_fields=["is_default"])

    def bare(self, name: str, values: ResourceValues) -> Any:
        concrete_field(self.model, self.named).clean(name, None)
        return Agent(name=name)

    def insert(self, rows: Iterable[Any]) -> None:
        Agent.objects.bulk_create(row for row in rows if row.pk is None)

    def checked_fields(self, values: ResourceValues) -> Collection[str]:
        """Return those in the file, with those that `AgentForm` compares them with."""
        are_compared = not COMPARED_SETTINGS.isdisjoint(values)
        return {*values, *OUTWARD_FIELDS, *(COMPARED_SETTINGS if are_compared else ())}

    def prefetch(self, rows: list[Any]) -> None:
        schedules = models.Prefetch("schedules", described_rows())
        models.prefetch_related_objects(
            rows, *agent_spec.prefetch_names(), "asked_by", schedules
        )

    def save_first_versions(self, rows: list[Any]) -> None:
        agent_versions.save_all([row for row in rows if not row.version], None)

    def save_versions(self, rows: list[Any], user: ConfigUser) -> None:
        agent_versions.save_all(rows, user_or_none(user), str(IMPORT_NOTE))


def _tool_pks(names: Collection[str]) -> dict[str, int]:
    if not names:
        return {}
    rows = ToolRegistration.objects.filter(name__in=names)
    return dict(rows.values_list("name", "pk"))


def _source(values: ResourceValues) -> Source:
    source = values.get("source")
    return Source(source) if source in Source.values else Source.HTTP


def _is_definition(value: Any) -> bool:
    types = {"name": str, "description": str, "parameters": dict, "annotations": dict}
    if not isinstance(value, dict) or "name" not in value or value.keys() - types.keys():
        return False
    return all(isinstance(item, types[name]) for name, item in value.items())
