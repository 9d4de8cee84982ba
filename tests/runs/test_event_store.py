"""Events become rows, and rows become the next model's history."""

import pytest
from asgiref.sync import sync_to_async

from agents.engine.errors import ModelError
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.termination import StopReason
from agents.engine.state import INTERRUPTED, repair_history
from agents.engine.testing import Call, Says
from agents.models import Agent, GuardrailPattern, Run
from agents.runs import event_store, projection
from tests.conftest import run_question, verify_run
from tests.sampling import one_in

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

NOW = "2040-01-01T00:00:00+00:00"
CALL = Says.call("calculator", input="6 * 7")
ENDINGS = {
    "completed": ([CALL, Says(answer="42")], "completed"),
    "two calls": ([Says("", (*CALL.calls, Call("nothing"))), Says(answer="42")], "completed"),
    "failed": ([CALL, ModelError("The provider refused.")], "failed"),
    "failed at once": ([ModelError("The provider refused.")], "failed"),
    "duplicates": ([CALL, CALL, CALL], "stopped"),
    "limit": ([Says.call("calculator", input=f"{at} + 1") for at in range(6)], "stopped"),
    "blocked": ([CALL, Says(answer="the secret word")], "blocked"),
    "no arguments": (
        [Says("", (Call("calculator", "not json"),)), Says(answer="x")],
        "completed",
    ),
}


@pytest.mark.parametrize("dialect", one_in(2, ["native", "react"]))
@pytest.mark.parametrize(("script", "status"), ENDINGS.values(), ids=ENDINGS)
async def test_every_ending_leaves_a_valid_history(script, status, dialect, scripted):
    await GuardrailPattern.objects.acreate(name="Secret", pattern="secret word", stage="output")
    await Agent.objects.aupdate(dialect=dialect)
    scripted(*script).dialect = dialect

    run = await verify_run(await run_question("What is it?"))
    history = await sync_to_async(event_store.transcript)(run)

    assert run.status == status
    if status == "blocked":
        assert history == []
    else:
        assert history[0] == {"role": "user", "content": "What is it?"}
        assert history[-1]["role"] == "assistant"
        assert history[-1]["content"]


async def test_a_completed_run_is_in_the_history_completely(scripted):
    scripted(CALL, Says(answer="It is **42**."))

    history = await sync_to_async(event_store.transcript)(await run_question("What is it?"))

    assert [m["role"] for m in history] == ["user", "assistant", "tool", "assistant"]
    assert history[1]["tool_calls"][0]["function"]["name"] == "calculator"
    assert history[2]["content"] == "42"
    assert history[3]["content"] == "It is **42**."


async def test_the_totals_of_a_run_are_the_sums_of_its_steps(scripted):
    scripted(CALL, Says(answer="42"))

    run = await run_question("What is it?")
    steps = [step async for step in run.steps.all()]

    assert [(s.number, s.kind, s.status) for s in steps] == [
        (1, "thought", "done"),
        (2, "tool", "done"),
        (3, "answer", "done"),
    ]
    assert run.total_tokens == sum(step.total_tokens for step in steps) > 0
    assert (run.turns, run.tool_calls) == (2, 1)
    assert run.ended_at >= steps[-1].ended_at


@pytest.fixture
def run():
    return Run.objects.create(topic="chat.1", query="What is it?", agent_name="helper")


def start_second_step(run):
    """A run in the middle of its second step."""
    emit = EventFactory("helper")
    call = {"name": "calculator", "arguments": '{"input": "6 * 7"}'}
    events = [
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        emit(EventType.DELTA, content="Let me see", step=1),
        emit(EventType.THOUGHT, step=1, content="Let me see"),
        emit(EventType.STEP, step=1, kind="thought", status="done", thought="Let me see"),
        emit(EventType.TOOL_CALL, step=2, turn=1, id="c1", function=call, started=NOW),
    ]
    event_store.save([(run.pk, event) for event in events])


@pytest.mark.parametrize(
    ("reason", "status", "step"),
    [
        (StopReason.CANCELLED, "stopped", "cancelled"),
        (StopReason.INTERRUPTED, "interrupted", "unknown"),
        (StopReason.ERROR, "failed", "failed"),
    ],
)
def test_closing_a_run_closes_its_open_steps(run, reason, status, step):
    start_second_step(run)

    events = event_store.close(run.pk, event_store.Ending(reason, "Because."))
    run.refresh_from_db()

    assert [event.seq for event in events] == [6, 7]
    assert (run.status, run.detail, run.answer, run.tool_calls) == (status, "Because.", "", 1)
    assert [s.status for s in run.steps.all()] == ["done", step]
    history = event_store.transcript(run)
    assert repair_history(history) == history
    assert [m["content"] for m in history if m["role"] == "tool"] == [INTERRUPTED]


def test_closing_a_run_twice_changes_nothing(run):
    start_second_step(run)

    assert event_store.close(run.pk, event_store.Ending(StopReason.CANCELLED))
    assert event_store.close(run.pk, event_store.Ending(StopReason.ERROR)) == []
    run.refresh_from_db()
    assert run.status == "stopped"


def test_the_answer_is_the_text_after_the_last_thought(run):
    start_second_step(run)
    emit = EventFactory("helper", after=5)
    words = [emit(EventType.DELTA, content=word, step=3) for word in ("It ", "is ", "42.")]
    event_store.save([(run.pk, event) for event in words])

    assert event_store.streamed_answer(run) == "It is 42."
    assert event_store.streamed_answer(run, until=7) == "It is "
    assert event_store.streamed_answer(run, until=2) == "Let me see"


@pytest.mark.parametrize("text", ["{", "NaN", '{"a": -Infinity}', "[1e999]", "[" * 9_999, ""])
def test_values_that_are_not_valid_json_are_saved_as_text(text):
    assert projection.decode_json(text) == text
