"""A run belongs to one process at a time, and outlives each of them."""

import asyncio
import socket
import subprocess
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now
from django.utils import timezone

from agents import runs
from agents.catalog import agent_factory
from agents.db import jobs
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.termination import StopReason
from agents.engine.testing import Says
from agents.engine.tool import ToolResult
from agents.models import AgentStep, Approval, JobCrash, Run
from agents.runs import approvals, event_store, event_writer, executor, isolation, leases
from agents.runs.event_writer import EventWriter, RunIsOver
from tests.conftest import TIMEOUT_SECONDS, run_question, until, verify_run
from tests.runs.conftest import decide, launch

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

HERE = socket.gethostname()
CALL = Says.call("calculator", input="6 * 7")
ANSWER = Says(answer="It is 42.")


class Held:
    """A tool that waits until released, and counts its calls."""

    name, description, timeout = "calculator", "Holds.", 30

    def __init__(self, effect="read"):
        self.effect = effect
        self.calls = 0
        self.begun, self.let_go = asyncio.Event(), asyncio.Event()

    async def execute(self, input):
        self.calls += 1
        self.begun.set()
        await self.let_go.wait()
        return ToolResult("42")


def dead() -> int:
    """Return the id of a dead process."""
    with subprocess.Popen(["sleep", "0"]) as gone:
        gone.wait()
    return gone.pid


def create_running_run(topic, **fields):
    fields = {"owner": leases.owner(), "heartbeat_at": timezone.now()} | fields
    return Run.objects.create(topic=topic, query="6 * 7", agent_name="helper", **fields)


def test_only_abandoned_runs_are_found():
    gone = dead()
    late = timezone.now() - timedelta(seconds=leases.LEASE_SECONDS + 1)
    left = [
        create_running_run("a", owner=f"{gone}.abcd@{leases.HOST}"),
        create_running_run("b", heartbeat_at=None),
        create_running_run("c", owner="1.ab@elsewhere", heartbeat_at=late),
        create_running_run("d", owner=leases.owner().replace(leases.PROCESS_TOKEN, "before")),
    ]
    create_running_run("e")
    create_running_run("i", owner=f"{gone}.abcd@{HERE}/another-container")
    create_running_run("f", owner="1.ab@elsewhere")
    create_running_run("g", status="waiting", heartbeat_at=None)
    create_running_run("h", status="completed", heartbeat_at=None)

    assert {run.pk for run in leases.find_abandoned()} == {run.pk for run in left}


def test_only_one_process_can_acquire_a_run():
    run = create_running_run("a", heartbeat_at=None)
    same = Run.objects.get(pk=run.pk)

    first, second = leases.acquire(run), leases.acquire(same)

    assert (first.epoch, first.takeovers, first.owner) == (1, 1, leases.owner())
    assert second is None


async def test_a_former_owner_cannot_write():
    run = await sync_to_async(create_running_run)("a")
    journal, stamp = EventWriter(), EventFactory("helper")
    await journal.add(run, stamp(EventType.RUN_STARTED, query="6 * 7"))
    await sync_to_async(leases.release)(run)
    await sync_to_async(leases.acquire)(await Run.objects.aget(pk=run.pk))

    with pytest.raises(RunIsOver):
        await journal.add(run, stamp(EventType.STATUS, kind="retry", step=1))

    await journal.stop()
    assert await run.events.acount() == 1


async def test_the_heartbeat_is_renewed_during_a_run(monkeypatch, use_tool):
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.02)
    tool = use_tool(Held())
    run = await launch()
    await until(run, "tool_call")
    first = (await Run.objects.aget(pk=run.pk)).heartbeat_at

    async with asyncio.timeout(10):
        while (await Run.objects.aget(pk=run.pk)).heartbeat_at == first:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    tool.let_go.set()
    await runs.wait(run)
    assert (await verify_run(run)).status == "completed"


async def restart_during(tool):
    """End this process's runs during the call of a tool, as a restart does."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await tool.begun.wait()
    await runs.shut_down()
    tool.let_go.set()


async def test_a_run_resumes_in_the_next_process(use_tool, scripted):
    tool = use_tool(Held())
    scripted(CALL, ANSWER)
    run = await launch()
    await restart_during(tool)

    assert await runs.recover_abandoned() == 1

    await runs.wait(run)
    run = await verify_run(run)
    assert (run.status, run.answer, run.takeovers) == ("completed", "It is 42.", 1)
    assert tool.calls == 2
    assert [step.status async for step in run.steps.all()] == ["done", "done", "done"]


@pytest.mark.parametrize(("again", "calls"), [(True, 2), (False, 1)])
async def test_an_at_most_once_call_waits_for_a_user_after_a_crash(
    use_tool, scripted, person, again, calls
):
    tool = use_tool(Held("at_most_once"))
    scripted(CALL, ANSWER)
    run = await launch(user=person)
    await restart_during(tool)
    await runs.recover_abandoned()
    await runs.wait(run)
    await run.arefresh_from_db()
    approval = await Approval.objects.aget(run=run)
    assert (run.status, approval.why, tool.calls) == ("waiting", "unknown", 1)

    await decide(person, approval, is_approved=again, reason="I saw it.")
    await runs.wait(run)

    step = await AgentStep.objects.aget(run=run, kind="tool")
    assert (await verify_run(run)).status == "completed"
    assert (tool.calls, step.status) == (calls, "done")
    assert ("I saw it." in step.observation) is not again


async def test_a_decision_before_a_restart_does_not_answer_a_later_request(
    use_tool, scripted, person
):
    tool = use_tool(Held("at_most_once"))
    tool.needs_approval = True
    scripted(CALL, ANSWER)
    run = await run_question("6 * 7", user=person)
    approval = await Approval.objects.aget(run=run)
    first = approvals.Decision(digest=approval.digest, is_approved=True)
    await approvals.decide(person, approval.pk, first)
    await restart_during(tool)
    await runs.recover_abandoned()
    await runs.wait(run)

    with pytest.raises(approvals.DecisionRejected, match="This request has changed"):
        await approvals.decide(person, approval.pk, first)
    await approval.arefresh_from_db()
    assert (approval.why, approval.decided_by_id, tool.calls) == ("unknown", None, 1)
    await decide(person, approval, is_approved=False, reason="Seen.")
    await runs.wait(run)

    assert (await verify_run(run)).status == "completed"
    assert tool.calls == 1


async def test_a_run_that_ends_its_own_process_twice_is_failed_with_the_reason(monkeypatch):
    monkeypatch.setattr(jobs, "isolate", lambda *claim: "SIGSEGV")
    run = await sync_to_async(create_running_run)("a")
    await sync_to_async(crash)(run)

    for _ in range(jobs.MAX_CRASHES):
        await sync_to_async(kill_owner)(run)
        assert await runs.recover_abandoned() == 1
        await asyncio.wait(isolation.tasks.values())

    run = await verify_run(run)
    assert (run.status, run.stopped_reason) == ("failed", "error")
    assert run.detail == isolation.ENDED_PROCESS.fill(signal="SIGSEGV")


async def test_event_readers_are_notified_of_a_run_that_is_given_up(monkeypatch):
    monkeypatch.setattr(jobs, "isolate", lambda *claim: "SIGKILL")
    monkeypatch.setattr(jobs, "MAX_CRASHES", 1)
    run = await sync_to_async(create_running_run)("a")
    await sync_to_async(crash)(run)
    await sync_to_async(kill_owner)(run)
    heard = []
    monkeypatch.setattr(
        event_writer, "readers", [lambda run, events: heard.append((run, events))]
    )

    await runs.recover_abandoned()
    await asyncio.wait(isolation.tasks.values())

    [(told, events)] = heard
    assert (told.pk, told.topic) == (run.pk, "a")
    assert events[-1].type == "run_finished"
    assert events[-1].data["stopped_reason"] == "error"


def kill_owner(run):
    Run.objects.filter(pk=run.pk).update(owner=f"{dead()}.abcd@{leases.HOST}")


def crash(run):
    """Simulate a crash of the run's owner, and a takeover."""
    kill_owner(run)
    return leases.acquire(Run.objects.get(pk=run.pk))


def record(run, number, status="done"):
    now = timezone.now()
    AgentStep.objects.create(
        run=run, number=number, kind="thought", status=status, started_at=now, ended_at=now
    )


def test_progress_between_crashes_resets_the_crash_count():
    run = create_running_run("a")

    for number in range(1, 15):
        record(run, number)
        assert not crash(run).needs_isolation

    assert Run.objects.get(pk=run.pk).takeovers == 14


def test_a_run_without_progress_gets_a_process_of_its_own_and_is_never_failed_by_deaths():
    run = create_running_run("a")
    record(run, 1)
    assert not crash(run).needs_isolation

    for number in range(5):
        record(run, number + 2, "cut")
        assert crash(run).needs_isolation


def test_a_process_for_one_run_takes_it_over_from_its_parent_only():
    run = create_running_run("a")

    assert leases.adopt(run.pk, "another process") is None
    assert leases.adopt(run.pk, run.owner).epoch == run.epoch + 1


def test_clean_restarts_do_not_count_as_crashes():
    run = create_running_run("a")

    for _ in range(15):
        leases.release(Run.objects.get(pk=run.pk))
        assert not leases.acquire(Run.objects.get(pk=run.pk)).needs_isolation

    assert not JobCrash.objects.exists()


async def test_a_former_owner_cannot_end_a_run():
    run = await sync_to_async(create_running_run)("a")
    await sync_to_async(leases.release)(run)
    await sync_to_async(leases.acquire)(await Run.objects.aget(pk=run.pk))
    journal = EventWriter()

    await journal.close(run, event_store.Ending(StopReason.ERROR, "Mine."), run.epoch)

    await journal.stop()
    assert (await Run.objects.aget(pk=run.pk)).status == "running"


def test_a_run_with_a_renewed_lease_is_not_acquired():
    late = timezone.now() - timedelta(seconds=leases.LEASE_SECONDS + 1)
    run = create_running_run("a", heartbeat_at=late)
    [seen] = leases.find_abandoned()
    leases.renew([run])

    assert leases.acquire(seen) is None


async def test_the_heartbeat_continues_after_a_failure(monkeypatch):
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.01)
    beats = []

    def renew(runs):
        beats.append(runs)
        raise InterfaceError("connection already closed")

    monkeypatch.setattr(leases, "renew", renew)
    executor.current()
    async with asyncio.timeout(10):
        while len(beats) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    assert not executor.current().heartbeat.done()


async def test_a_run_can_finish_within_the_shutdown_grace_period(use_tool):
    tool = use_tool(Held())
    run = await launch()
    await until(run, "tool_call")
    asyncio.get_running_loop().call_later(0.05, tool.let_go.set)

    await runs.shut_down(grace=10)

    assert (await verify_run(run)).status == "completed"


async def test_a_run_stopped_from_another_process_is_stopped(use_tool):
    tool = use_tool(Held())
    run = await launch()
    await until(run, "tool_call")
    task = executor.current().tasks[run.pk]
    elsewhere = EventWriter()

    await elsewhere.close(run, event_store.Ending(StopReason.CANCELLED))
    tool.let_go.set()
    await asyncio.wait([task])
    await elsewhere.stop()

    run = await verify_run(run)
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")


EXPIRED = Now() - timedelta(seconds=leases.LEASE_SECONDS + 1)


@pytest.mark.parametrize(
    "lease",
    [
        lambda: {"owner": f"{dead()}.abcd@{leases.HOST}"},
        lambda: {"owner": "1.ab@elsewhere", "heartbeat_at": EXPIRED},
        lambda: {"heartbeat_at": None},
    ],
    ids=["of a dead local process", "expired on another host", "never launched"],
)
async def test_an_abandoned_run_is_acquired_and_completes(lease):
    run = await sync_to_async(runs.prepare)(query="What is 6 * 7?", topic="chat.1")
    await Run.objects.aupdate(**lease())

    assert await runs.recover_abandoned() == 1
    await runs.wait(run)
    assert (await verify_run(run)).status == "completed"


async def test_a_finished_run_is_not_acquired():
    run = await run_question("6 * 7")
    await Run.objects.aupdate(heartbeat_at=None)

    assert await runs.recover_abandoned() == 0
    assert (await verify_run(run)).status == "completed"


async def test_a_run_started_during_a_database_outage_resumes_later(monkeypatch):
    async def database_down(run):
        raise OperationalError("the server closed the connection unexpectedly")

    monkeypatch.setattr(agent_factory, "start", database_down)
    run = await run_question("What is 6 * 7?")
    assert run.status == "running"

    await Run.objects.aupdate(heartbeat_at=EXPIRED)
    assert await runs.recover_abandoned() == 1
    await runs.wait(run)
    assert (await verify_run(run)).status == "completed"
