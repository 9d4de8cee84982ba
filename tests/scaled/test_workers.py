"""With workers, a web process only enqueues runs."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from procrastinate.contrib.django.models import ProcrastinateJob

from agents import runs
from agents.catalog.tools import tool_factory
from agents.engine.testing import Says
from agents.engine.tool import ToolResult
from agents.models import Approval, Run
from agents.review.replays import reruns
from agents.runs import approvals, executor, job_queue, leases
from agents.runs.approvals import Decision
from tests.conftest import until, verify_run

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


class Held:
    """A tool that waits until released."""

    name, description, effect = "calculator", "Waits.", "read"

    def __init__(self):
        self.let_go = asyncio.Event()

    async def execute(self, input):
        await self.let_go.wait()
        return ToolResult("42")


def prepare_run(topic="chat.1", **more):
    return runs.prepare(query="What is 6 * 7?", topic=topic, **more)


def queued_runs():
    waiting = ProcrastinateJob.objects.filter(status="todo").order_by("id")
    return [job.args["run"] for job in waiting]


async def drive_run(monkeypatch):
    """A run that a worker of this process drives, during a tool call."""
    tool = Held()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    run = await sync_to_async(prepare_run)()
    driving = asyncio.create_task(runs.drive(run.pk))
    await until(run, "tool_call")
    return run, tool, driving


def test_a_queued_run_has_no_owner():
    run = prepare_run()

    assert queued_runs() == [run.pk]
    assert (run.owner, run.heartbeat_at) == ("", None)


def test_a_rolled_back_message_enqueues_nothing():
    with transaction.atomic():
        prepare_run()
        transaction.set_rollback(True)

    assert queued_runs() == []


def test_a_run_is_enqueued_once():
    run = prepare_run()

    with transaction.atomic():
        job_queue.enqueue(run.pk)
        other = prepare_run(topic="chat.2")  # what follows in the transaction is saved

    assert queued_runs() == [run.pk, other.pk]


async def test_launching_is_left_to_a_worker():
    run = await sync_to_async(prepare_run)()

    runs.launch(run)

    assert executor.current().tasks == {}


async def test_a_worker_completes_a_run():
    run = await sync_to_async(prepare_run)()

    await runs.drive(run.pk)

    run = await verify_run(run)
    assert (run.status, run.takeovers) == ("completed", 0)
    assert run.answer


async def test_a_run_of_another_worker_is_skipped():
    run = await sync_to_async(prepare_run)()
    await sync_to_async(leases.acquire)(run)

    await runs.drive(run.pk)

    assert not await run.events.aexists()


async def test_a_run_of_a_dead_worker_is_enqueued_again():
    run = await sync_to_async(prepare_run)()
    await Run.objects.filter(pk=run.pk).aupdate(owner="1.gone@elsewhere", heartbeat_at=None)

    await runs.recover_abandoned()

    assert await sync_to_async(queued_runs)() == [run.pk]
    assert executor.current().tasks == {}


async def test_a_run_longer_than_the_grace_period_is_enqueued_for_another_worker(monkeypatch):
    run, _, driving = await drive_run(monkeypatch)
    job = await ProcrastinateJob.objects.aget()
    assert job.args == {"run": run.pk}

    await runs.shut_down(grace=0.1)
    await driving

    run = await Run.objects.aget(pk=run.pk)
    assert (run.status, run.heartbeat_at) == ("running", None)
    assert await sync_to_async(queued_runs)() == [run.pk]


async def test_stopping_a_queued_run_ends_it():
    run = await sync_to_async(prepare_run)()

    await runs.stop(run)
    await runs.drive(run.pk)

    run = await verify_run(run)
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")


async def test_a_worker_ends_a_run_stopped_by_a_web_process(monkeypatch):
    run, _, driving = await drive_run(monkeypatch)
    shop = executor.current()
    task = shop.tasks[run.pk]

    await sync_to_async(leases.request_stop)(run)
    await asyncio.wait([task], timeout=5)
    await driving

    run = await verify_run(run)
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")


async def test_a_decision_enqueues_the_run_again(monkeypatch, scripted, person):
    tool = Held()
    tool.needs_approval = True
    tool.let_go.set()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    scripted(Says.call("calculator"), Says(answer="Done."))
    run = await sync_to_async(prepare_run)(user=person)
    await runs.drive(run.pk)
    approval = await Approval.objects.aget(run=run)

    await approvals.decide(
        person, approval.pk, Decision(digest=approval.digest, is_approved=True)
    )

    run = await Run.objects.aget(pk=run.pk)
    assert (run.status, run.owner) == ("running", "")
    assert run.pk in await sync_to_async(queued_runs)()
    await runs.drive(run.pk)
    assert (await verify_run(run)).answer == "Done."


async def test_a_rerun_is_enqueued_and_replayed_by_a_worker(scripted, person):
    origin = await sync_to_async(prepare_run)(user=person)
    await runs.drive(origin.pk)

    def again():
        run = Run.objects.select_related("agent").get(pk=origin.pk)
        return reruns.prepare(run, 3, reruns.RerunSetup(run).before, person)

    run = await sync_to_async(again)()
    assert await sync_to_async(queued_runs)() == [origin.pk, run.pk]
    assert run.owner == ""
    await runs.drive(run.pk)

    run = await verify_run(run)
    assert run.answer == (await Run.objects.aget(pk=origin.pk)).answer
    assert await run.events.filter(data__replayed=True).acount() > 5
