"""Every run ends with a message and a complete record, whatever the model or a tool does."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError

from agents import runs
from agents.engine.errors import ModelError
from agents.engine.planner.stream_batches import Deadlines
from agents.engine.state import repair_history
from agents.engine.testing import Call, Says, delta, finish
from agents.engine.tool import ToolResult, timeout_message
from agents.models import Agent, Run
from agents.runs import executor
from agents.runs.event_store import transcript
from agents.web.presentation.formats.status_text import ending_sentence
from tests.conftest import run_question, until, verify_run
from tests.runs.conftest import launch
from tests.sampling import one_in

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


DEEP = '{"a": ' * 500 + "1" + "}" * 500


class Raw:
    """A model that sends these chunks; an exception is raised, None is silence."""

    def __init__(self, *chunks):
        self.chunks = chunks

    async def stream(self, **request):
        for chunk in self.chunks:
            if chunk is None:
                await asyncio.sleep(60)
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


class Fake:
    """A replacement for the calculator, with its own timeout."""

    name, description = "calculator", "Does as it is told."
    timeout = property(lambda self: 0.05, lambda self, value: None)

    def __init__(self, act):
        self.act = act

    async def execute(self, input):
        return await self.act()


async def raises():
    raise RuntimeError("the disk is on fire")


async def hangs():
    await asyncio.sleep(60)


async def floods():
    return ToolResult("x" * 3_000_000)


async def returns_nothing():
    return ToolResult("")


async def returns_halves():
    return ToolResult("half \ud83d of a smile, and \0 nothing")


async def returns_nonsense():
    return 5


ODD = {
    "cut": [delta(content="It is "), ConnectionResetError("cut")],
    "refused": [ModelError("The provider refused.")],
    "empty": [finish("stop")],
    "nothing at all": [],
    "not a chunk": [{"choices": "what?"}],
    "a list": [[1, 2]],
    "null fields": [{"choices": [{"delta": None, "finish_reason": None}]}],
    "half a call": [
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "calculator"}}]),
        finish("length"),
    ],
}


@pytest.mark.parametrize("chunks", one_in(4, ODD.values()), ids=ODD)
async def test_a_failing_model_fails_the_run_with_a_message(chunks, scripted):
    scripted(model=Raw(*chunks))

    run = await verify_run(await run_question("What is it?"))

    assert run.status == "failed"
    assert run.detail
    assert run.advice
    assert ending_sentence(run)


async def test_text_streamed_before_a_failure_is_kept(scripted):
    scripted(model=Raw(delta(content="It is "), None, ConnectionResetError("cut")))
    run = await launch("What is it?")
    await until(run, "delta")

    await runs.stop(run)

    assert (await verify_run(run)).answer == "It is "


async def test_a_model_that_stalls_times_out(scripted, monkeypatch):
    quick = Deadlines(first=0.1, between=0.1, whole=1)
    monkeypatch.setattr(
        "agents.catalog.language_models.planner_factory._deadlines", lambda setup: quick
    )
    scripted(model=Raw(delta(content="It is "), None))

    run = await verify_run(await run_question("What is it?"))

    assert run.status == "failed"
    assert "sent nothing for 0.1 s" in run.detail


@pytest.mark.parametrize(
    ("act", "reason", "observation"),
    one_in(
        4,
        [
            (raises, "tool_failure_degraded", "the disk is on fire"),
            (hangs, "tool_failure_degraded", timeout_message("", 0.05)),
            (floods, "completed", "more characters cut"),
            (returns_nonsense, "tool_failure_degraded", "instead of a ToolResult"),
            (returns_nothing, "completed", ""),
            (returns_halves, "completed", "of a smile"),
        ],
    ),
)
async def test_a_tool_that_fails_does_not_fail_the_run(
    act, reason, observation, scripted, use_tool
):
    use_tool(Fake(act))
    model = scripted(Says.call("calculator"), Says(answer="Without it, then."))

    run = await verify_run(await run_question("What is it?"))

    assert (run.status, run.stopped_reason) == ("completed", reason)
    assert observation in (await run.steps.aget(kind="tool")).observation
    assert run.answer == "Without it, then."
    model.assert_used_up()


async def test_an_empty_tool_result_is_not_marked_as_interrupted(scripted, use_tool):
    use_tool(Fake(returns_nothing))
    scripted(Says.call("calculator"), Says(answer="Nothing there."))

    run = await run_question("What is it?")

    told = await sync_to_async(transcript)(run)
    assert [m["content"] for m in told if m["role"] == "tool"] == [""]


@pytest.mark.parametrize(
    "arguments",
    one_in(
        4, ['{"a": NaN}', '{"a": 1e999}', DEEP, "{", "null", "5", '"text"', '{"a": "\\ud800"}']
    ),
)
async def test_unparsable_arguments_do_not_end_the_run(arguments, scripted):
    call = Says("Hm.", (Call("calculator", arguments),))
    scripted(call, Says(answer="I did not get it to work."))

    run = await verify_run(await run_question("What is it?"))

    assert run.status == "completed"
    assert run.answer == "I did not get it to work."


@pytest.mark.parametrize("name", ["nothing", "", "x" * 300, "<b>", "\ud800"])
async def test_a_call_of_an_unknown_tool_does_not_end_the_run(name, scripted):
    scripted(Says("Hm.", (Call(name, {}),)), Says(answer="Without it, then."))

    run = await verify_run(await run_question("What is it?"))

    assert run.answer == "Without it, then."


async def test_an_answer_with_a_lone_surrogate_is_saved(scripted):
    scripted(model=Raw(delta(content="Smile \ud83d"), delta(content=" more"), finish("stop")))

    run = await verify_run(await run_question("Smile!"))

    assert run.status == "completed"
    assert run.answer.startswith("Smile ")


async def test_the_next_question_after_a_failure_is_answered(scripted):
    scripted(Says.call("calculator", input="6 * 7"), ModelError("The provider refused."))
    failed = await run_question("What is it?")
    model = scripted(Says(answer="Now I can."))

    history = await sync_to_async(transcript)(failed)
    run = await verify_run(await run_question("And now?", history=history))

    sent = model.requests[0]["messages"][1:]
    assert run.answer == "Now I can."
    assert repair_history(sent) == sent
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "assistant", "user"]


async def test_an_agent_disabled_after_the_question_fails_with_a_message():
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1")
    await Agent.objects.aupdate(enabled=False)
    run = await Run.objects.aget()
    runs.launch(run)
    await runs.wait(run)

    assert (await verify_run(run)).detail == "The agent of this run was disabled."


async def test_a_second_run_of_a_topic_is_queued():
    prepare = sync_to_async(runs.prepare)
    await prepare(query="6 * 7", topic="chat.1")

    with pytest.raises(runs.RunInProgress):
        await prepare(query="6 * 7", topic="chat.1")
    await prepare(query="6 * 7", topic="chat.2")


async def test_a_database_error_is_not_treated_as_a_live_run():
    with pytest.raises(IntegrityError):
        await sync_to_async(runs.prepare)(query=None, topic="chat.1")


async def test_waiting_for_a_run_returns_when_it_is_over(monkeypatch, caplog):
    async def fail(run):
        raise ZeroDivisionError

    told = []

    async def note(run):
        told.append(run and run.pk)

    monkeypatch.setattr(executor, "followers", [])
    for follower in (fail, note):
        runs.on_finished(follower)
    run = await run_question("6 * 7")
    await runs.stop(run)
    await runs.shut_down()

    assert told == [run.pk, run.pk]
    assert "Can't notify a follower of a run." in caplog.text
