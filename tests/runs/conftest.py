"""What tests of runs share: tools of their own, runs under way, decisions and clients."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.catalog.tools import tool_factory
from agents.models import Run
from agents.runs import approvals
from tests.conftest import verify_run


@pytest.fixture
def use_tool(monkeypatch):
    """Let agents call a tool of the test instead of the calculator."""

    def use(tool):
        monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
        return tool

    return use


async def launch(query="6 * 7", user=None):
    """Start a run without waiting for it."""
    run = await sync_to_async(runs.prepare)(query=query, topic="chat.1", user=user)
    runs.launch(run)
    return run


async def decide(user, approval, *, is_approved=True, **fields):
    decision = approvals.Decision(digest=approval.digest, is_approved=is_approved, **fields)
    return await approvals.decide(user, approval.pk, decision)


async def finish_run(approval):
    """Wait for the run of a decided request, and return it."""
    run = await Run.objects.aget(pk=approval.run_id)
    await runs.wait(run)
    return await verify_run(run)
