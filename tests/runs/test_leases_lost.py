"""A run that another process took over, or that waits, can't be ended by its former owner."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db.models import F

from agents.engine.testing import Says
from agents.engine.tool import ToolResult
from agents.models import Run
from agents.runs import executor, leases, pubsub
from tests.conftest import run_question, until, verify_run
from tests.runs.conftest import launch

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


class Held:
    """A tool that waits until released, then has an effect."""

    name, description, effect = "calculator", "Waits.", "at_most_once"

    def __init__(self):
        self.let_go = asyncio.Event()

    async def execute(self, input):
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.7)  # too late to stop it
        return ToolResult("Sent.")


@pytest.fixture
def tool(use_tool):
    return use_tool(Held())


async def in_the_tool():
    run = await launch()
    await until(run, "tool_call")
    return run, executor.current().tasks[run.pk]


@pytest.mark.usefixtures("tool")
async def test_a_run_acquired_by_another_process_is_cancelled_here():
    run, task = await in_the_tool()
    taken = {"epoch": F("epoch") + 1, "owner": "9.other@elsewhere"}
    await Run.objects.filter(pk=run.pk).aupdate(**taken)

    await asyncio.wait([task], timeout=5)

    assert task.done()
    run = await Run.objects.aget(pk=run.pk)
    assert (run.status, run.owner) == ("running", "9.other@elsewhere")


async def test_a_call_that_ends_during_a_remote_stop_is_recorded(tool):
    run, task = await in_the_tool()

    await sync_to_async(leases.request_stop)(run)
    await asyncio.wait([task], timeout=5)

    run = await verify_run(run)
    step = [step async for step in run.steps.all()][-1]
    assert (run.status, step.status, step.observation) == ("stopped", "done", "Sent.")


async def test_a_paused_run_is_not_treated_as_lost(tool, scripted, monkeypatch):
    tool.needs_approval = True
    scripted(Says.call("calculator"), Says(answer="Done."))
    publish = pubsub.publish

    async def slowly(*about, **facts):
        await asyncio.sleep(3 * executor.POLL_SECONDS)
        await publish(*about, **facts)

    monkeypatch.setattr(pubsub, "publish", slowly)

    run = await run_question("6 * 7")

    assert run.status == "waiting"
    assert await run.approvals.waiting().acount() == 1
