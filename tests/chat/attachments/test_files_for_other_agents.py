"""Agents reached by handoff or @agent see the files of the chat, within the same rights."""

import pytest
from asgiref.sync import sync_to_async

from agents.engine.testing import Says
from agents.models import Agent, GuardrailPattern, Memory, ToolRegistration
from chat import messages
from tests.chat.attachments.test_attached_files import answered, request_text, uploaded

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
TABLE = b"city,sales\nUji,12\nKobe,30\n"


@pytest.fixture
def reader(agent):
    other = Agent.objects.create(name="Reader", model="demo", description="Reads.")
    agent.handoffs.add(other)
    return other


async def test_a_handoff_sees_the_files_of_the_chat(scripted, person, chat, reader):
    file = await sync_to_async(uploaded)(person)
    table = await sync_to_async(uploaded)(person, "sales.csv", TABLE)
    sql = 'SELECT sum("sales") FROM "sales"'
    model = scripted(
        Says.call("ask_Reader", task="Which word is it?"),
        Says.call("query_files", sql=sql),
        Says(answer="Heron, 42."),
        Says(answer="Heron, 42."),
    )
    message = await messages.submit(chat, person, "Which?", "a", files=[file, table])

    run = await answered(message)

    assert "The code word is heron." in request_text(model, 1)
    step = await run.steps.aget(action="query_files")
    assert (step.status, "42" in step.observation) == ("done", True)
    assert step.is_untrusted


async def test_a_mentioned_agent_sees_the_files_of_the_chat(scripted, person, chat, reader):
    file = await sync_to_async(uploaded)(person)
    model = scripted(Says(answer="Heron."), Says(answer="Heron."))
    await answered(await messages.submit(chat, person, "Which?", "a", files=[file]))

    run = await answered(await messages.submit(chat, person, "@Reader and you?", "b"))

    assert run.agent_name == "Reader"
    assert "The code word is heron." in request_text(model)


async def test_a_guardrail_blocks_a_file_and_names_it(scripted, person, chat, agent):
    file = await sync_to_async(uploaded)(person)
    await GuardrailPattern.objects.acreate(name="bird", pattern="heron", action="block")
    model = scripted(Says(answer="Hello."))

    run = await answered(await messages.submit(chat, person, "Which?", "a", files=[file]))
    later = await answered(await messages.submit(chat, person, "Hello", "b"))

    assert run.detail == "The file “notes.txt” was blocked: This text isn't allowed here."
    assert later.answer == "Hello."
    assert "heron" not in request_text(model)


async def test_a_run_with_a_file_only_suggests_memories(scripted, person, chat, agent):
    row, _ = await ToolRegistration.objects.aget_or_create(name="remember")
    await agent.tools.aadd(row)
    file = await sync_to_async(uploaded)(person)
    scripted(Says.call("remember", text="I live in Uji"), Says(answer="Noted."))

    await answered(await messages.submit(chat, person, "I live in Uji", "a", files=[file]))

    assert (await Memory.objects.aget()).status == "proposed"
