"""A stopped plan is continued."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ObjectDoesNotExist

from agents import runs
from agents.access import recently_deleted
from agents.catalog.tools import tool_factory
from agents.engine.tool import ToolResult
from agents.models import HiddenTopic, Run
from agents.web.workflows import versions
from chat import messages
from chat.messages import message_actions
from chat.sessions import deletion
from tests.conftest import TIMEOUT_SECONDS, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

FLOW = """\
name: Two steps
steps:
  - {name: first, tool: calculator, arguments: {expression: first}}
  - {name: second, tool: calculator, arguments: {expression: second}, depends_on: [first]}
"""


class Held:
    """A calculator that is slow at its second step, the first time."""

    name, description, effect = "calculator", "Counts.", "read"
    parameters = {"type": "object", "properties": {"expression": {"type": "string"}}}
    asked: list[str] = []
    is_held = asyncio.Event()

    async def execute(self, input):
        wanted = input["expression"]
        self.asked.append(wanted)
        if self.asked.count(wanted) == 1 and wanted == "second":
            self.is_held.set()
            await asyncio.sleep(60)
        return ToolResult(f"{wanted} is done")


@pytest.fixture
def calculator(monkeypatch):
    Held.asked, Held.is_held = [], asyncio.Event()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", Held)
    return Held


async def submit_message(session, user, text, number):
    return await messages.submit(session, user, text, f"client-{number}")


async def stop_a_run(person):
    await sync_to_async(versions.save)(FLOW, person)
    message = await submit_message(None, person, "/workflow Two steps", 1)
    await asyncio.wait_for(Held.is_held.wait(), TIMEOUT_SECONDS)
    await runs.stop(message.run)
    return message, await verify_run(message.run)


async def test_continue_resumes_a_stopped_workflow_at_the_first_unfinished_step(
    calculator, person
):
    message, run = await stop_a_run(person)
    assert run.can_continue

    again = await submit_message(message.session, person, "Continue where you left off.", 2)
    await runs.wait(again.run)
    rest = await verify_run(again.run)

    assert rest.status == Run.Status.COMPLETED, rest.detail
    assert rest.answer == "second is done"
    assert rest.origin_id == run.pk
    assert Held.asked == ["first", "second", "second"]
    seqs = [seq async for seq in rest.events.order_by("seq").values_list("seq", flat=True)]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_continue_after_another_message_is_an_ordinary_question(calculator, person):
    message, _run = await stop_a_run(person)
    await runs.wait((await submit_message(message.session, person, "6 * 7", 2)).run)

    asked = await submit_message(message.session, person, "Continue where you left off.", 3)

    assert asked.run.origin_id is None
    await runs.wait(asked.run)


async def test_a_continuation_outlasts_its_deleted_origin(calculator, person):
    """The chat stays visible, and the continuation isn't erased with the message."""
    message, _run = await stop_a_run(person)
    again = await submit_message(message.session, person, "Continue where you left off.", 2)
    await runs.wait(again.run)

    await message_actions.delete(message.session, person, message.pk, below=False)

    hidden = {topic async for topic in HiddenTopic.objects.values_list("topic", flat=True)}
    assert message.session.topic not in hidden
    place = (await Run.objects.aget(pk=message.run.pk)).topic
    assert hidden == {place}
    await Run.objects.filter(topic=place).adelete()
    assert await Run.objects.filter(pk=again.run.pk).aexists()


async def test_a_deleted_continuation_stays_hidden_when_its_chat_is_restored(
    calculator, person
):
    message, _run = await stop_a_run(person)
    again = await submit_message(message.session, person, "Continue where you left off.", 2)
    await runs.wait(again.run)
    await message_actions.delete(message.session, person, again.pk, below=False)
    place = (await Run.objects.aget(pk=again.run.pk)).topic

    await deletion.delete(message.session)
    restore = sync_to_async(recently_deleted.restore)
    await restore(person, f"chat:{message.session.pk}")

    with pytest.raises(ObjectDoesNotExist):
        await restore(person, place.replace(".", ":"))
    assert await HiddenTopic.objects.filter(topic=place).aexists()
