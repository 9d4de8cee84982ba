"""Whatever a model adapter raises, the run reports it and ends."""

import asyncio
import gc

import pytest

from agents.engine import (
    AgentRuntime,
    Orchestrator,
    OutputSchema,
    Panel,
    ReActPlanner,
)
from agents.engine.errors import AdapterFailed, AgentConnectionError, ModelTimeout
from agents.engine.events import EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.planner import stream_batches
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel, delta
from agents.llm.discovery.model_probe import probe
from tests.engine.conftest import make_runtime

SECRET = "sk-very-secret-0123456789"
FORM = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


class Odd(Exception):
    """An unexpected error that can't be converted to text."""

    def __str__(self):
        raise RuntimeError("not even this can be said")


RAISED = [
    ValueError(SECRET),
    KeyError("choices"),
    AssertionError(),
    RuntimeError("cannot schedule new futures"),
    RecursionError(),
    MemoryError(),
    NotImplementedError(),
    StopIteration(),
    StopAsyncIteration(),
    ExceptionGroup("two", [ValueError("a"), OSError("b")]),
    Odd(),
    asyncio.CancelledError(),
    SystemExit(1),
    GeneratorExit(),
]


class Adapter:
    """A model that may send something, then raises."""

    def __init__(self, error, *words):
        self.error, self.words = error, words

    async def stream(self, **request):
        for word in self.words:
            yield delta(content=word)
        raise self.error


class Sudden(Adapter):
    """A model that raises before it returns a stream."""

    def stream(self, **request):
        raise self.error


class Awaited(Adapter):
    """A model whose `stream` is a coroutine instead of a generator."""

    async def stream(self, **request):
        return [delta(content="x")]


class Iterated(Adapter):
    """A model with its own iterator, so that exceptions aren't wrapped by a generator."""

    def stream(self, **request):
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise self.error


def runtime(llm, kind=AgentRuntime, tools=(), fallbacks=(), **options):
    planners = [ReActPlanner(each, "adapted") for each in (llm, *fallbacks)]
    return make_runtime(planners, tools, kind=kind, **options)


async def run_to_end(agent, query="?"):
    return [event async for event in agent.stream(query)]


def ending(events):
    """Check that the run ended with an error, and return its last event's data."""
    errors = [event for event in events if event.type is EventType.ERROR]
    assert errors
    assert events[-1].type is EventType.RUN_FINISHED
    assert events[-1].data["stopped_reason"] == "error"
    assert SECRET not in str([event.data for event in events])
    return events[-1].data


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", [Adapter, Iterated])
async def test_any_exception_of_the_adapter_ends_the_run_with_an_error(kind, error):
    if kind is Iterated and isinstance(error, StopAsyncIteration):
        pytest.skip("That is how a stream ends.")
    end = ending(await run_to_end(runtime(kind(error))))

    assert "The model adapter failed (" in end["detail"]
    assert "server log" in end["advice"]


@pytest.mark.parametrize("error", [ValueError(SECRET), KeyError("x")])
async def test_an_exception_before_streaming_ends_the_run_with_an_error(error):
    ending(await run_to_end(runtime(Sudden(error))))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_a_result_that_is_not_a_stream_ends_the_run_with_an_error():
    ending(await run_to_end(runtime(Awaited(None))))
    gc.collect()


@pytest.mark.parametrize("chunk", [None, 5, "text", b"x", [], object(), {"choices": 7}])
async def test_an_invalid_chunk_does_not_crash_the_run(chunk):
    class Garbled:
        async def stream(self, **request):
            yield delta(content="One ")
            yield chunk
            yield delta(content="two")

    events = await run_to_end(runtime(Garbled()))
    assert events[-1].type is EventType.RUN_FINISHED


async def test_text_streamed_before_a_failure_is_kept_as_the_answer():
    end = ending(await run_to_end(runtime(Adapter(ValueError(), "Half an "))))

    assert end["answer"] == "Half an "


async def test_the_run_result_reports_the_error():
    result = await runtime(Adapter(ValueError(SECRET))).run("?")

    assert result.stopped_reason == "error"
    assert SECRET not in str(result)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), ModelTimeout),
        (ConnectionResetError(), AgentConnectionError),
        (OSError(), AdapterFailed),
        (ValueError(), AdapterFailed),
    ],
)
async def test_adapter_exceptions_become_engine_errors(error, kind):
    planner = ReActPlanner(Adapter(error), "adapted")
    with pytest.raises(kind) as caught:
        await planner.plan("?", AgentState(), [])
    assert caught.value.__cause__ is error


async def test_a_fallback_model_answers_after_an_adapter_failure():
    good = ScriptedModel(Says(answer="Here."))
    events = await run_to_end(runtime(Adapter(ValueError()), fallbacks=[good]))

    assert events[-1].data["answer"] == "Here."


async def test_a_failed_sub_agent_reports_the_reason_to_its_caller():
    helper = runtime(Adapter(ValueError(SECRET)), name="helper")
    lead = ScriptedModel(Says.call("ask_helper", task="Find it."), Says(answer="It failed."))
    events = await run_to_end(runtime(lead, tools=[Handoff("helper", lambda: helper)]))

    assert "helper couldn't finish" in str(lead.requests[1]["messages"][-1]["content"])
    assert events[-1].data["answer"] == "It failed."
    assert SECRET not in str([event.data for event in events])


async def test_an_orchestrator_whose_planner_fails_ends_with_an_error():
    ending(await run_to_end(runtime(Adapter(ValueError(SECRET)), Orchestrator, name="boss")))


async def test_a_panel_whose_members_all_fail_finishes():
    heads = {name: runtime(Adapter(ValueError(SECRET)), name=name) for name in ("a", "b")}
    asks = [Handoff(name, lambda name=name: heads[name]) for name in heads]
    events = await run_to_end(runtime(Adapter(ValueError()), Panel, tools=asks, name="panel"))

    assert events[-1].type is EventType.RUN_FINISHED
    assert SECRET not in str([event.data for event in events])


async def test_a_failing_structured_answer_ends_the_run_with_an_error():
    ending(await run_to_end(runtime(Adapter(ValueError(SECRET)), output=OutputSchema(FORM))))


async def test_a_model_probe_reports_an_adapter_failure():
    for kind in (Adapter, Sudden, Iterated):
        results = [piece async for piece in probe(kind(ValueError(SECRET)), "adapted")]
        assert isinstance(results[-1].error, AdapterFailed)


async def test_an_error_on_closing_the_stream_does_not_lose_the_answer():
    class Unclosed:
        def __init__(self):
            self.chunks = iter([delta(content="Here."), delta()])

        def stream(self, **request):
            return self

        def __aiter__(self):
            return self

        async def __anext__(self):
            try:
                return next(self.chunks)
            except StopIteration:
                raise StopAsyncIteration from None

        async def aclose(self):
            raise ValueError(SECRET)

    events = await run_to_end(runtime(Unclosed()))
    assert events[-1].data["answer"] == "Here."


async def test_a_stream_that_ignores_cancellation_does_not_block_the_run(monkeypatch):
    monkeypatch.setattr(stream_batches, "CLOSE_TIMEOUT_SECONDS", 0.1)
    is_over = asyncio.Event()

    class Stubborn:
        async def stream(self, **request):
            yield delta(content="One ")
            while not is_over.is_set():
                try:
                    await is_over.wait()
                except asyncio.CancelledError:
                    continue

    async def listen():
        async for _ in runtime(Stubborn()).stream("?"):
            pass

    run = asyncio.create_task(listen())
    await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 5)
    is_over.set()
    await asyncio.sleep(0)


async def test_cancelling_the_run_is_not_reported_as_an_adapter_failure():
    class Endless:
        async def stream(self, **request):
            yield delta(content="One ")
            await asyncio.sleep(3600)

    events = []

    async def listen():
        async for event in runtime(Endless()).stream("?"):
            events.append(event)

    run = asyncio.create_task(listen())
    await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert EventType.ERROR not in {event.type for event in events}
