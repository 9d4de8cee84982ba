"""Stop reaches the model and the tool, and nothing follows it."""

import asyncio
import threading
import time
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async

from agents import runs
from agents.catalog.language_models import model_clients
from agents.catalog.tools import tool_factory
from agents.engine.loop.tool_calls.function_tool import FunctionTool
from agents.engine.testing import Says, ScriptedModel, delta
from agents.engine.tool import ToolResult
from agents.models import Run
from agents.runs import event_store, executor, leases, pubsub, service
from chat import messages
from chat.errors import MessageRejected
from chat.messages import queue
from chat.models import ChatSession, Message
from tests.conftest import as_async_user, frames_until, run_question, tab, until, verify_run

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


class Talkative:
    """A model that sends a few tokens, then nothing for a long time."""

    async def stream(self, **request):
        yield delta(content="So far, ")
        yield delta(content="so good.")
        await asyncio.sleep(60)


class Slow:
    name, description, timeout = "calculator", "Takes its time.", 30

    def __init__(self):
        self.has_begun = asyncio.Event()

    async def execute(self, input):
        self.has_begun.set()
        await asyncio.sleep(60)


class Stubborn(Slow):
    """A tool that ignores cancellation."""

    let_go = None

    async def execute(self, input):
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        return ToolResult("too late")


def think_with(monkeypatch, model):
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)


def act_with(monkeypatch, tool):
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    think_with(monkeypatch, ScriptedModel(Says.call("calculator"), Says(answer="Never said.")))


async def launch_run(query="Go"):
    run = await sync_to_async(runs.prepare)(query=query, topic="chat.1")
    runs.launch(run)
    return run


async def test_stop_cancels_the_models_stream(monkeypatch):
    think_with(monkeypatch, Talkative())
    run = await launch_run()
    await until(run, "delta")

    await runs.stop(run)

    run = await verify_run(run)
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")
    assert run.answer == "So far, so good."
    assert [step.status async for step in run.steps.all()] == ["cancelled"]


@pytest.mark.parametrize(
    ("effect", "fate"),
    [("read", "cancelled"), ("idempotent", "unknown"), ("at_most_once", "unknown")],
)
async def test_stop_cancels_a_tool_and_reports_the_outcome(monkeypatch, effect, fate):
    tool = Slow()
    tool.effect = effect
    act_with(monkeypatch, tool)
    run = await launch_run()
    await tool.has_begun.wait()

    await runs.stop(run)

    run = await verify_run(run)
    assert run.status == "stopped"
    assert [step.status async for step in run.steps.all()] == ["done", fate]


async def test_a_call_that_finishes_during_a_stop_shows_its_result(monkeypatch):
    begun = threading.Event()

    def send(input: str = "") -> str:
        begun.set()
        time.sleep(0.2)
        return "Sent."

    act_with(monkeypatch, FunctionTool(send, name="calculator"))
    run = await launch_run()
    await asyncio.to_thread(begun.wait, 10)

    await runs.stop(run)

    run = await verify_run(run)
    step = [step async for step in run.steps.all()][-1]
    assert (run.status, step.status, step.observation) == ("stopped", "done", "Sent.")
    assert [note["kind"] for note in step.notes] == ["finished_anyway"]
    assert "Sent." in str(await sync_to_async(event_store.transcript)(run))


async def test_a_thread_that_ignores_a_stop_has_an_unknown_outcome(monkeypatch):
    begun, end = threading.Event(), threading.Event()

    def send(input: str = "") -> None:
        begun.set()
        end.wait(10)

    act_with(monkeypatch, FunctionTool(send, name="calculator"))
    run = await launch_run()
    await asyncio.to_thread(begun.wait, 10)

    await runs.stop(run)
    end.set()

    run = await verify_run(run)
    assert [step.status async for step in run.steps.all()] == ["done", "unknown"]


async def test_a_process_that_ignores_a_stop_has_an_unknown_outcome(monkeypatch):
    monkeypatch.setattr(service, "STOP_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(leases, "stop_requests", lambda runs: (set(), set()))
    act_with(monkeypatch, Slow())
    run = await launch_run()
    await until(run, "tool_call")
    task = executor.current().tasks.pop(run.pk)
    del executor.current().runs[run.pk]

    await runs.stop(run)

    assert [step.status async for step in run.steps.all()] == ["done", "unknown"]
    task.cancel()
    await asyncio.wait([task])


async def test_a_stop_from_another_process_reaches_the_run(monkeypatch):
    tool = Slow()
    tool.effect = "read"
    act_with(monkeypatch, tool)
    run = await launch_run()
    await until(run, "tool_call")
    task = executor.current().tasks[run.pk]

    await sync_to_async(leases.request_stop)(run)
    await asyncio.wait([task], timeout=5)

    run = await verify_run(run)
    assert run.status == "stopped"
    assert [step.status async for step in run.steps.all()] == ["done", "cancelled"]


async def test_a_tool_that_ignores_cancellation_is_abandoned(monkeypatch):
    monkeypatch.setattr(executor, "STOP_TIMEOUT_SECONDS", 0.1)
    tool = Stubborn()
    tool.let_go = asyncio.Event()
    act_with(monkeypatch, tool)
    run = await launch_run()
    await until(run, "tool_call")

    await runs.stop(run)
    before = await run.events.acount()
    tool.let_go.set()
    await runs.wait(run)

    run = await verify_run(run)
    assert run.status == "stopped"
    assert await run.events.acount() == before


async def test_a_run_stopped_before_its_first_step_ends_too():
    run = await launch_run()

    await runs.stop(run)

    assert (await verify_run(run)).status == "stopped"


async def test_stopping_a_run_without_a_task_ends_it():
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1")

    await runs.stop(run)

    assert (await verify_run(run)).status == "stopped"


async def test_two_concurrent_stops_count_once(monkeypatch):
    think_with(monkeypatch, Talkative())
    run = await launch_run()
    await until(run, "delta")

    await asyncio.gather(runs.stop(run), runs.stop(run), runs.stop(run))

    assert (await verify_run(run)).status == "stopped"


async def test_stopping_a_finished_run_changes_nothing():
    run = await run_question("6 * 7")

    await runs.stop(run)

    assert (await verify_run(run)).status == "completed"


async def test_stop_and_finish_at_once_give_one_end():
    endings = set()
    for at in range(0, 50, 2):
        run = await launch_run("6 * 7")
        for _ in range(at):
            await asyncio.sleep(0.0007)
        await runs.stop(run)
        endings.add((await verify_run(run)).status)

    assert endings <= {"stopped", "completed"}
    assert "stopped" in endings


async def test_a_run_interrupted_by_a_shutdown_leaves_the_call_uncertain(monkeypatch):
    act_with(monkeypatch, Slow())
    run = await launch_run()
    await until(run, "tool_call")

    await runs.shut_down(hand_over=False)

    run = await verify_run(run)
    assert (run.status, run.stopped_reason) == ("interrupted", "interrupted")
    assert [step.status async for step in run.steps.all()] == ["done", "unknown"]


async def test_a_stopping_process_leaves_its_runs_to_the_next(monkeypatch):
    monkeypatch.setattr(executor, "STOP_TIMEOUT_SECONDS", 0.1)
    tool = Stubborn()
    tool.let_go = asyncio.Event()
    act_with(monkeypatch, tool)
    deaf = await launch_run()
    await until(deaf, "tool_call")
    fresh = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.2")
    runs.launch(fresh)
    await runs.shut_down()
    monkeypatch.undo()

    taken = await runs.recover_abandoned()
    tool.let_go.set()

    assert taken == 2
    for run in (deaf, fresh):
        await runs.wait(run)
        assert (await verify_run(run)).status == "completed"


async def test_the_next_question_after_a_stop_is_answered(chat, monkeypatch):
    think_with(monkeypatch, Talkative())
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "Talk", "client_id": "a"})
        await frames_until(page, "So far, so good.")
        run = await Run.objects.aget()
        await page.send_json_to({"type": "stop", "run": str(run.pk)})
        stopped = await frames_until(page, 'class="run" data-status="stopped"')
        think_with(monkeypatch, model := ScriptedModel(Says(answer="Here I am.")))
        await page.send_json_to({"type": "message", "text": "Still there?", "client_id": "b"})
        await frames_until(page, 'class="run" data-status="completed"')

    assert 'class="outcome" data-status="stopped"' in stopped[-1]
    said = [(m["role"], m["content"]) for m in model.requests[0]["messages"][1:]]
    assert said == [
        ("user", "Talk"),
        ("assistant", "So far, so good."),
        ("user", "Still there?"),
    ]


async def test_stop_works_without_a_socket(chat, monkeypatch):
    think_with(monkeypatch, Talkative())
    client = await as_async_user(chat.user)
    await client.post(f"/chat/{chat.pk}/messages/", {"text": "Talk"})
    run = await Run.objects.aget()
    await until(run, "delta")

    answer = await client.post(f"/chat/{chat.pk}/stop/")

    assert answer.status_code == 302
    assert (await verify_run(run)).status == "stopped"


async def test_deleting_a_chat_during_an_answer_leaves_nothing(chat, monkeypatch, caplog):
    think_with(monkeypatch, Talkative())
    client = await as_async_user(chat.user)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "Talk", "client_id": "a"})
        await frames_until(page, "So far")
        await client.post(f"/chat/{chat.pk}/delete/")
        while (output := await page.receive_output(10))["type"] != "websocket.close":
            pass

    assert output["code"] == 4403
    assert [run.status async for run in Run.objects.all()] == ["stopped"]
    assert not await ChatSession.objects.present().aexists()
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_page_keeps_working_when_its_run_is_deleted(chat, caplog):
    run = await Run.objects.acreate(topic=chat.topic, query="6 * 7", status="completed")
    await Message.objects.acreate(session=chat, author=chat.user, run=run, client_id="a")
    end = {"seq": 99, "type": "run_finished", "data": {}}
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, f"run-{run.pk}")
        await Run.objects.all().adelete()
        await pubsub.publish(chat.topic, "run.events", run=run.pk, events=[end])
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "b"})
        await frames_until(page, 'class="run" data-status="completed"')

    assert not [record for record in caplog.records if record.exc_info]


async def test_a_run_deleted_while_live_ends_quietly(monkeypatch, caplog):
    think_with(monkeypatch, Talkative())
    run = await launch_run()
    await until(run, "delta")
    await Run.objects.all().adelete()

    await runs.stop(run)

    assert not await Run.objects.aexists()
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_chat_has_one_live_run_despite_concurrent_messages(chat):
    def say(at):
        try:
            return messages.save(chat, chat.user, "6 * 7", f"id-{at}")
        except MessageRejected:
            return None

    speak = database_sync_to_async(say, thread_sensitive=False)
    said = await asyncio.gather(*(speak(at) for at in range(20)))

    kept = [message.is_queued for message in said if message]
    assert (kept.count(False), kept.count(True)) == (1, queue.MAX_QUEUED)
    assert await Run.objects.acount() == 1


async def test_a_message_sent_twice_at_once_is_saved_once(chat):
    begin = partial(database_sync_to_async(messages.save, thread_sensitive=False), None)
    twice = await asyncio.gather(*(begin(chat.user, "6 * 7", "same") for _ in range(8)))

    assert len({message.pk for message in twice}) == 1
    assert await Run.objects.acount() == 1
    assert await ChatSession.objects.acount() == 2
