from datetime import timedelta
from types import SimpleNamespace

import pytest

from agents.catalog.agent_factory import result_caches
from agents.engine.call_context import CallContext, use_context
from agents.engine.loop.tool_calls.cached_calls import ResultCache
from agents.engine.loop.tool_calls.tool_fallback import FallbackResult
from agents.engine.tool import ToolResult
from agents.metering.caches import groups, hits
from agents.models import ToolRegistration


@pytest.fixture(autouse=True)
def _known_at_once(monkeypatch):
    """Other processes needn't hear of a new group before something is saved."""
    monkeypatch.setattr(groups, "KNOWN_AFTER", timedelta(0))
    monkeypatch.setattr(hits, "_pending", hits._Pending())


@pytest.fixture
def http_tool(db):
    return ToolRegistration.objects.create(
        name="weather",
        source="http",
        endpoint="https://example.com/weather/{city}",
        method="GET",
        result_cache="person",
    )


def store_for(user_id, row, tool=None):
    run = SimpleNamespace(user_id=user_id, pk=None)
    return result_caches._store(run, row, groups.group_name(row), tool)


async def use(store, result, chat="chat.1", **arguments):
    """Call a tool through its cache; return the outcome."""
    context = CallContext()
    context.user_id, context.chat_id = str(store.user_id or ""), chat

    async def call(tool, input):
        value = result() if callable(result) else result
        kept = value if isinstance(value, ToolResult) else ToolResult(value)
        return FallbackResult(result=kept)

    with use_context(context):
        tool = SimpleNamespace(name="weather")
        return await ResultCache({"weather": store}).tool_call(tool, arguments, call)
