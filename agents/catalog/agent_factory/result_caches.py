"""The caches of an agent's tools and models, as far as rows allow them for this run."""

from typing import cast

from agents.db import database
from agents.engine.loop import Capability, FunctionTool, ReplyCache, ResultCache, effect
from agents.engine.result_cache import ResultStore
from agents.engine.tool import ToolRegistry
from agents.metering.caches import (
    GROUPS,
    ReplyStore,
    ToolResultStore,
    group_name,
    tool_version,
)
from agents.models import Agent, HiddenTopic, McpServer, Run, ToolRegistration
from agents.tools.mcp.process.isolation import Isolation
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool
from agents.tools.web import ReadPageTool, WebSearchTool

from .config import AgentConfig
from .personal_data import personal_data_policy

# Their passages are numbered for each run, and what they can read is decided in the search.
NEVER_CACHED = (SearchTool, ReadDocumentTool, WebSearchTool, ReadPageTool)


async def result_cache(run: Run, config: AgentConfig, tools: ToolRegistry) -> list[Capability]:
    """Return the cache of the tools' results: read-only tools find and save, others evict."""
    rows = {row.name: row for row in config.tool_rows}
    groups = GROUPS.get()
    cached = [row for row in rows.values() if row.result_cache]
    if not cached and not groups:
        return []
    may_cache = bool(cached) and await database.run(_may_cache, run)
    stores: dict[str, ResultStore] = {}
    for name in tools.list_tools():
        row = rows.get(name)
        tool = tools.get(name)
        if row is None or isinstance(tool, NEVER_CACHED):
            continue
        group = group_name(row)
        if effect(tool) != "read":
            if row.result_cache or group in groups:
                stores[name] = ToolResultStore(is_read=False, tool=row.pk, group=group)
        elif row.result_cache and may_cache and (store := _store(run, row, group, tool)):
            stores[name] = store
    return [ResultCache(stores)] if stores else []


def _store(run: Run, row: ToolRegistration, group: str, tool: object) -> ToolResultStore | None:
    version = tool_version(row)
    if not version:
        return None
    # Where each user signs in, nobody sees what another one's account returned.
    is_personal = row.server is not None and row.server.sign_in == McpServer.SignIn.USER
    account = None
    if row.server is not None and row.server.sign_in:
        account = (row.server.pk, run.user_id if is_personal else None)
    isolation = "person" if is_personal else row.server.isolation if row.server else "shared"
    return ToolResultStore(
        is_read=True,
        tool=row.pk,
        group=group,
        version=version,
        isolation=cast(Isolation, isolation),
        is_public=row.result_cache == ToolRegistration.ResultCache.PUBLIC and not is_personal,
        lifetime=row.result_cache_seconds,
        user_id=run.user_id,
        run_id=run.pk,
        is_code=isinstance(tool, FunctionTool),
        account=account,
    )


def _may_cache(run: Run) -> bool:
    """Whether results of this run can be saved for others, and saved ones used in it.

    Not if the agent saves no personal data, in a temporary or deleted chat, and where a run is
    repeated to compare it.
    """
    if run.is_rerun or run.is_experiment_run or run.is_draft_run:
        return False
    if personal_data_policy(run) == Agent.PersonalData.UNKEPT:
        return False
    return not HiddenTopic.objects.filter(topic=run.topic).exists()


async def reply_cache(run: Run, config: AgentConfig) -> list[Capability]:
    """Return the cache of replies, if the agent allows it and nothing is repeated."""
    agent = config.agent
    if not agent.reply_cache or not await database.run(_may_reuse_replies, run):
        return []
    store = ReplyStore(
        agent=agent.pk,
        version=f"{agent.version}/{run.version}",
        is_public=agent.reply_cache == ToolRegistration.ResultCache.PUBLIC,
        lifetime=agent.reply_cache_seconds,
        user_id=run.user_id,
        run_id=run.pk,
    )
    return [ReplyCache(store)]


def _may_reuse_replies(run: Run) -> bool:
    """Whether saved replies can be used: not if the same question was asked here before.

    A person who regenerates an answer or asks again wants a new one.
    """
    if not _may_cache(run):
        return False
    same_runs = Run.objects.filter(user=run.user_id, topic=run.topic, query=run.query)
    return not same_runs.exclude(pk=run.pk).exists()
