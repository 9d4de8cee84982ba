"""Attachments of a run: saved in the database, sent to the model and deleted with the run."""

import json

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.catalog.attachments import attachment_store
from agents.catalog.attachments.attachment_store import RunAttachmentStore
from agents.catalog.language_models import model_setups, planner_factory
from agents.catalog.tools import tool_factory
from agents.engine import ToolResult, attachments
from agents.engine.attachments import AttachmentRefused
from agents.engine.testing import Says
from agents.engine.tool import Attachment
from agents.models import Agent, AgentStep, Run, RunAttachment
from agents.runs import event_store
from agents.runs.observability.spans import SpanBuilder
from agents.runs.observability.trace_span import TraceIdentity
from tests.conftest import run_question, verify_run
from tests.engine.conftest import Echo
from tests.engine.test_attachments import images
from tests.language_models import unsaved_model
from tests.pictures import png

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

PICTURE = Attachment(data=png(), mime_type="image/png", name="ann@example.com.png")
CALL = Says.call("calculator", text="draw")
ANSWER = Says(answer="It goes up.")


@pytest.fixture
def drawing(monkeypatch):
    """Let the agent's calculator return an image."""

    async def draw(input):
        return ToolResult("Here it is.", attachments=(PICTURE,))

    def build(rows):
        return [Echo("calculator", draw)]

    monkeypatch.setattr(tool_factory, "build_tools", build)


def content_of(row):
    with row.open() as content:
        return content.read()


@pytest.fixture
def seeing(monkeypatch):
    """Let every model see images."""
    monkeypatch.setattr(planner_factory.model_info, "sees_images", lambda name: True)


@pytest.mark.both_databases
async def test_an_image_is_saved_with_the_run_and_sent_to_the_model(
    drawing, seeing, scripted, person
):
    model = scripted(CALL, ANSWER)

    run = await verify_run(await run_question("Draw", user=person))

    saved, step = await run.attachments.aget(), await run.steps.aget(kind="tool")
    assert (await sync_to_async(content_of)(saved), saved.size, saved.mime_type) == (
        png(),
        len(png()),
        "image/png",
    )
    assert [ref["digest"] for ref in step.attachments] == [saved.digest]
    assert len(images(model.requests[-1]["messages"])) == 1


async def test_the_next_question_does_not_send_it_again(drawing, seeing, scripted, person):
    scripted(CALL, ANSWER)
    run = await run_question("Draw", user=person)

    history = await sync_to_async(event_store.transcript)(run)

    [result] = [message for message in history if message["role"] == "tool"]
    assert "attachments" not in result
    assert "from an earlier question, not sent again]" in result["content"]


async def test_a_rerun_has_its_own_copy(drawing, seeing, scripted, person):
    scripted(CALL, ANSWER)
    origin = await run_question("Draw", user=person)
    model = scripted(ANSWER)
    last = await origin.steps.order_by("number").alast()

    about = {"topic": "again", "step": last.number, "overrides": {}, "user": person}
    helper = await Agent.objects.aget()
    again = await sync_to_async(runs.prepare_rerun)(origin, agent=helper, **about)
    runs.launch(again)
    await runs.wait(again)

    await verify_run(again)
    assert len(images(model.requests[-1]["messages"])) == 1
    assert await RunAttachment.objects.filter(run=again).acount() == 1


async def test_an_agent_that_stores_no_personal_data_stores_no_files(
    drawing, seeing, scripted, person
):
    await Agent.objects.aupdate(personal_data=Agent.PersonalData.UNKEPT)
    model = scripted(CALL, ANSWER)

    run = await verify_run(await run_question("Draw", user=person))

    step = await run.steps.aget(kind="tool")
    assert not await RunAttachment.objects.aexists()
    assert step.attachments[0]["problem"] == attachment_store.UNKEPT
    assert "ann@example.com" not in str(step.attachments)
    assert len(images(model.requests[-1]["messages"])) == 1


async def test_an_agent_that_masks_personal_data_sends_no_image(
    drawing, seeing, scripted, person
):
    await Agent.objects.aupdate(personal_data=Agent.PersonalData.HIDDEN)
    model = scripted(CALL, ANSWER)

    run = await verify_run(await run_question("Draw", user=person))

    assert images(model.requests[-1]["messages"]) == []
    assert await run.attachments.aexists()
    thought = await run.steps.filter(kind__in=["thought", "answer"]).alast()
    assert thought.notes[0]["kind"] == "unsent_attachments"


async def test_the_size_of_a_runs_attachments_is_limited(person, monkeypatch):
    monkeypatch.setattr(attachments, "MAX_RUN_BYTES", len(png()) + 1)
    run = await Run.objects.acreate(query="?", topic="chat.9", user=person, agent_name="a")
    store = RunAttachmentStore(run.pk)

    await store.save(PICTURE)
    again = await store.save(PICTURE)
    with pytest.raises(AttachmentRefused, match="the limit per run is"):
        await store.save(Attachment(data=png(shade=1), mime_type="image/png"))

    assert await store.load(again["digest"]) == png()
    assert await RunAttachment.objects.acount() == 1


async def test_it_is_deleted_with_its_run(drawing, scripted, person):
    scripted(CALL, ANSWER)
    run = await run_question("Draw", user=person)

    await Run.objects.filter(pk=run.pk).adelete()

    assert not await RunAttachment.objects.aexists()
    assert not await AgentStep.objects.aexists()


@pytest.mark.parametrize(
    ("model", "choice", "sees"),
    [
        ("openai/gpt-4.1", "auto", True),
        ("openai/gpt-4.1", "no", False),
        ("openai/my-own-model", "auto", False),
        ("openai/my-own-model", "yes", True),
        ("openai/gpt-3.5-turbo", "auto", False),
    ],
)
def test_vision_support_comes_from_the_setting_or_the_model_info(model, choice, sees):
    row = unsaved_model("mine", model, image_input=choice)

    senses = planner_factory._senses(model_setups.ModelSetup(name="mine", row=row))

    assert ("image" in senses) is sees


@pytest.mark.parametrize("with_content", [True, False])
async def test_telemetry_names_attachments_without_sending_them(
    drawing, scripted, person, with_content
):
    scripted(CALL, ANSWER)
    run = await run_question("Draw", user=person)
    identity = TraceIdentity(number=run.pk, topic=run.topic, began=run.started_at)
    builder = SpanBuilder(identity, with_content=with_content)

    events = [row.value async for row in run.events.order_by("seq")]
    spans = [span for event in events for span in builder.take(event)]

    [tool] = [span for span in spans if span.name.startswith("execute_tool")]
    listed = json.loads(tool.attributes.get("ashiato.attachment.references", "[]"))
    assert tool.attributes["ashiato.attachments"] == 1
    assert [ref["size"] for ref in listed] == [len(png())] * with_content
