"""Files that come with the question: their text before it, their images with it."""

import pytest

from agents.engine.attachments import MemoryAttachmentStore
from agents.engine.events import EventType
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel
from tests.engine.loop.test_approval import collect_events
from tests.engine.test_attachments import MARK, PICTURE, URL, drawing, images, runtime

QUERY = "What is it?"


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


async def with_files(store):
    state = AgentState()
    state.question = {
        "material": f"<file>It's Paris. {MARK}</file>",
        "attachments": [await store.save(PICTURE)],
    }
    return state


async def ask(dialect, *script, **options):
    model, store = ScriptedModel(*script, dialect=dialect), MemoryAttachmentStore()
    agent = runtime(dialect, drawing(text="More."), model=model, store=store, **options)
    events = await collect_events(agent.stream(QUERY, await with_files(store)))
    return events, model.requests


async def test_the_question_has_its_files_before_it(dialect):
    _, requests = await ask(dialect, Says(answer="Paris."))
    question = requests[0]["messages"][-1]

    assert question["role"] == "user"
    assert question["content"][0]["text"] == f"<file>It's Paris. {MARK}</file>\n\n{QUERY}"
    assert images(requests[0]["messages"]) == [URL]


async def test_they_stay_with_the_question_after_a_tool_call(dialect):
    _, requests = await ask(dialect, Says.call("draw", text="a chart"), Says(answer="Paris."))
    messages = requests[-1]["messages"]

    assert images(messages) == [URL, URL]  # the user's, and the tool's
    assert "It's Paris." in str([m for m in messages if m["role"] == "user"][0])


async def test_a_model_that_cannot_see_is_told_so_once(dialect):
    events, requests = await ask(dialect, Says(answer="Paris."), senses=())

    assert "this model can't see images" in str(requests[0]["messages"][-1])
    status = [event.data for event in events if event.type is EventType.STATUS]
    assert [(data["kind"], data["count"]) for data in status] == [("unsent_attachments", 1)]


async def test_the_run_records_the_text_that_the_model_got(dialect):
    events, _ = await ask(dialect, Says(answer="Paris."))
    started = next(event for event in events if event.type is EventType.STEP_STARTED)

    assert "It's Paris." in str(started.data["request"]["messages"])
    assert "base64" not in str(started.data)


async def test_an_interrupted_run_still_has_them(dialect):
    model, store = (
        ScriptedModel(Says(answer="Paris."), dialect=dialect),
        MemoryAttachmentStore(),
    )
    agent = runtime(dialect, drawing(), model=model, store=store)
    events = await collect_events(agent.stream(QUERY, await with_files(store)))
    model.script = [Says(answer="Paris.")]

    await collect_events(agent.resume(events[:1], await with_files(store)))

    assert "It's Paris." in str(model.requests[-1]["messages"])
