"""An agent's tools: built-in, from this installation's code, by HTTP, or of MCP servers."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet

from agents.db.configuration_rows import configuration_query
from agents.db.installation import configured
from agents.db.installation.default_models import OFF
from agents.engine.loop import AskPersonTool, FunctionTool, effect
from agents.engine.tool import Effect, Tool, ToolRegistry
from agents.knowledge import page_reader
from agents.knowledge.media import image_models, services
from agents.memory import RememberTool
from agents.models import ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.tools.a2a import RemoteAgentTool
from agents.tools.calculator import CalculatorTool
from agents.tools.database.tool import DatabaseTool
from agents.tools.http import HttpTool
from agents.tools.images import DescribeImageTool, GenerateImageTool
from agents.tools.python import RunPythonTool
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool
from agents.tools.web import ReadPageTool, SearchService, ServiceName, WebSearchTool

from .. import mcp_servers
from ..attachments import code_files
from ..language_models import reranking
from . import databases
from .search_library import ScopedLibrary

BUILT_IN_TOOLS: dict[str, Callable[[], Tool]] = {
    AskPersonTool.name: AskPersonTool,
    "calculator": CalculatorTool,
    DescribeImageTool.name: lambda: DescribeImageTool(image_models.describe),
    GenerateImageTool.name: lambda: GenerateImageTool(image_models.generate),
    "database": lambda: DatabaseTool(
        f"sqlite:///{settings.SAMPLE_DATABASE}",
        max_rows=configured.DATABASE_ROWS.value,
        timeout=configured.DATABASE_SECONDS.value,
    ),
    ReadDocumentTool.name: lambda: ReadDocumentTool(ScopedLibrary()),
    ReadPageTool.name: lambda: ReadPageTool(page_reader.read),
    RememberTool.name: RememberTool,
    RunPythonTool.name: lambda: RunPythonTool(code_files.check_image),
    SearchTool.name: lambda: SearchTool(ScopedLibrary()),
    WebSearchTool.name: WebSearchTool,
}
GRACE_SECONDS = 2


async def build_registry(
    rows: Sequence[ToolRegistration],
    local_tools: Iterable[Tool],
    added_tools: Iterable[Tool] = (),
    *,
    asks_before_writing: bool = False,
) -> ToolRegistry:
    """Return a registry of these rows' tools, including those of MCP servers."""
    remote = [row for row in rows if row.source == ToolRegistration.Source.MCP]
    tools: list[Any] = [*local_tools, *await mcp_servers.load_tools(remote)]
    rows_by_name = {row.name: row for row in rows}
    for tool in tools:
        row = rows_by_name.get(tool.name)
        tool.fallback_tool = row.fallback.name if row and row.fallback else None
        tool.max_retries = getattr(row, "retries", None)  # of the agent, see configured_tool
        if row and tool.max_retries is None:
            tool.max_retries = row.max_retries
        if asks_before_writing:
            needs_approval = getattr(tool, "needs_approval", False)
            tool.needs_approval = needs_approval or effect(tool) != "read"
    # Handoffs take precedence over tools.
    replacements = {tool.name: tool for tool in added_tools}
    unreplaced = [tool for tool in tools if tool.name not in replacements]
    withheld = mcp_servers.withheld_reasons(remote)
    return ToolRegistry([*unreplaced, *replacements.values()], withheld)


def build_tools(rows: Iterable[ToolRegistration]) -> list[Tool]:
    """Build the tools that need no server; unusable ones are omitted."""
    tools: list[Tool] = []
    for row in rows:
        tool = None if row.source == ToolRegistration.Source.MCP else _create_tool(row)
        if tool is None:
            continue
        if row.description and row.source != ToolRegistration.Source.DATABASE:
            tool.description = row.description
        if row.effect:
            tool.effect = row.effect
        if row.approval != ToolRegistration.ApprovalMode.TOOL:
            tool.needs_approval = row.approval == ToolRegistration.ApprovalMode.ALWAYS
        tools.append(tool)
    return tools


def usable_names() -> list[str]:
    """Return the built-in tools for sample agents: those of images only with a model for it.

    An administrator decides which agents run code.
    """
    names = [name for name in BUILT_IN_TOOLS if name != RunPythonTool.name]
    if not services.is_configured("image"):
        names.remove(GenerateImageTool.name)
    if not services.is_configured("vision"):
        names.remove(DescribeImageTool.name)
    return names


def installed_names() -> list[str]:
    """Return the tools that come with this installation."""
    return sorted([*BUILT_IN_TOOLS, *code_tools()])


@cache
def code_tools() -> dict[str, FunctionTool]:
    """Return the tools of this installation's own modules, by name."""
    tools: list[FunctionTool] = []
    for name in settings.TOOL_MODULES:
        try:
            module = import_module(name)
        except ImportError as error:
            sentence = f"ASHIATO_TOOLS: can't import the module {name!r}: {error}."
            raise ImproperlyConfigured(sentence) from error
        tools += [value for value in vars(module).values() if isinstance(value, FunctionTool)]
    names = Counter([*BUILT_IN_TOOLS, *(tool.name for tool in tools)])
    for name in [name for name, times in names.items() if times > 1]:
        raise ImproperlyConfigured(f"ASHIATO_TOOLS: two tools are named {name!r}.")
    return {tool.name: tool for tool in tools}


def code_tool(row: ToolRegistration) -> FunctionTool | None:
    """Build one of this installation's own tools; it needs approval unless it only reads."""
    if row.name not in code_tools():
        return None
    tool = copy(code_tools()[row.name])
    tool.effect = cast(Effect, row.effect) if row.effect else tool.effect
    if tool.needs_approval is None:
        tool.needs_approval = tool.effect != "read"
    return tool


def http_tool(row: ToolRegistration) -> HttpTool | RemoteAgentTool:
    """Build an HTTP tool or an agent elsewhere; raise ValueError if the row is invalid."""
    definition = row.definition if isinstance(row.definition, dict) else {}
    function = {**definition.get("function", definition), "name": row.name}
    if "a2a" in function:
        return RemoteAgentTool(
            function,
            row.endpoint,
            headers=row.headers.reveal(),
            egress=mcp_servers.egress(),
            effect=cast(Effect | None, row.effect or None),
            timeout=row.timeout,
        )
    return HttpTool(
        function,
        row.endpoint,
        method=row.method,
        headers=row.headers.reveal(),
        egress=mcp_servers.egress(),
        effect=cast(Effect | None, row.effect or None),
        timeout=row.timeout,
    )


def database_tool(row: ToolRegistration) -> Tool | None:
    """Build the tool of a database; None if it is off or its row can't be used."""
    if row.connection is None or not row.connection.enabled:
        return None
    try:
        tool = databases.build_tool(row.connection)
    except (ValueError, UnreadableSecret):
        return None
    tool.name = row.name
    return cast(Tool, tool)


def search_service(row: ToolRegistration) -> SearchService | None:
    """Return the configured service of a web search; None if there is none or no readable key.

    Raises UnreadableSecret if its key can't be read.
    """
    if not row.search_service:
        return None
    name = ToolRegistration.SearchService(row.search_service)
    if name == ToolRegistration.SearchService.SEARXNG and not row.endpoint:
        return None
    return SearchService(
        name=cast(ServiceName, name.value),
        address=row.endpoint,
        key=str(row.headers.reveal().get("key", "")),
        policy=replace(mcp_servers.egress(), timeout=float(row.timeout)),
    )


def _create_tool(row: ToolRegistration) -> Any:
    if row.source == ToolRegistration.Source.HTTP:
        try:
            return http_tool(row)
        except (ValueError, UnreadableSecret):
            return None
    if row.connection is not None:
        return database_tool(row)
    if row.name in BUILT_IN_TOOLS:
        tool: Any = BUILT_IN_TOOLS[row.name]()
    elif (tool := code_tool(row)) is None:
        return None
    tool.timeout = row.timeout
    if isinstance(tool, ReadPageTool):
        tool.any_page = row.any_page
    if isinstance(tool, WebSearchTool):
        tool.top_k = row.top_k
        tool.timeout += GRACE_SECONDS  # after our own limit, which has a clearer message
        try:
            tool.service = search_service(row)
        except UnreadableSecret:
            return None
        return tool if tool.service else None
    if isinstance(tool, SearchTool):
        tool.top_k = row.top_k
        tool.min_score = row.min_score
        tool.min_certainty = row.min_certainty
        tool.collections = frozenset(_chosen_collections(row.pk)) if row.pk else frozenset()
        tool.reranker = reranking.from_row(row)
        tool.is_reranked = row.rerank_model.strip() != OFF
    return tool


@configuration_query
def _chosen_collections(tool: int) -> QuerySet[Any, int]:
    """Return what a search tool is limited to; nothing means no limit."""
    chosen = ToolRegistration.collections.through._default_manager.filter(toolregistration=tool)
    return chosen.order_by().values_list("collection_id", flat=True)
