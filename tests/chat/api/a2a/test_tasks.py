"""A2A: runs as tasks, with the SDK's own client over HTTP."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.helpers import proto_helpers
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils import errors
from a2a.utils.constants import TransportProtocol
from google.protobuf.json_format import MessageToDict

from agents import runs
from agents.db import database
from agents.engine.testing import Says
from agents.models import Agent, Run, ToolRegistration
from tests.chat.api.a2a.conftest import BINDINGS, last_status, message, send, task_of
from tests.chat.api.approved_tool import ASK, THANKS, WRITE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

COMPLETED = TaskState.TASK_STATE_COMPLETED
WAITS = TaskState.TASK_STATE_INPUT_REQUIRED


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_message_is_answered(connect, scripted, binding, version, streaming):
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="It is 42."))

    async with connect(binding=binding, version=version, streaming=streaming) as client:
        updates = await send(client, "What is 6 * 7?")

    task, state, text = task_of(updates)
    run = await Run.objects.aget()
    assert (task.id, state, text) == (str(run.pk), COMPLETED, "It is 42.")
    assert run.api_key_id
    assert (len(updates) > 2) == streaming


async def test_an_agent_is_asked_by_its_own_card(connect, scripted, agent):
    await database.run(_copy, agent, "writer")
    scripted(Says(answer="Written."))

    async with connect(agent="writer") as client:
        await send(client, "Hello")

    assert (await Run.objects.aget()).agent_name == "writer"


@pytest.mark.parametrize("binding", BINDINGS)
async def test_an_agent_is_asked_as_a_tenant(connect, scripted, agent, binding):
    await database.run(_copy, agent, "writer")
    scripted(Says(answer="Written."))
    request = message("Hello")
    request.tenant = "writer"

    async with connect(binding=binding) as client:
        assert [update async for update in client.send_message(request)]

    assert (await Run.objects.aget()).agent_name == "writer"


def _copy(agent, name):
    columns = {"instructions": agent.instructions, "enabled": True, "is_default": False}
    return Agent.objects.create(name=name, description="Writes.", **columns)


async def test_the_extended_card_lists_the_agents_of_the_user(connect, agent):
    await database.run(_copy, agent, "writer")
    async with connect() as client:
        card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())

    assert {skill.id for skill in card.skills} == {"helper", "writer"}


async def test_a_context_is_a_conversation(connect, scripted):
    model = scripted(Says(answer="Hello Ada."), Says(answer="You are Ada."))

    async with connect() as client:
        first, _state, _text = task_of(await send(client, "I am Ada.", context="trip-1"))
        second, _state, text = task_of(await send(client, "Who am I?", context="trip-1"))

    assert first.context_id == second.context_id == "trip-1"
    assert text == "You are Ada."
    contents = [entry["content"] for entry in model.requests[1]["messages"]]
    assert "I am Ada." in contents
    assert "Hello Ada." in contents


async def test_others_with_the_same_context_share_nothing(connect, scripted, stranger):
    scripted(Says(answer="Hello Ada."), Says(answer="Who are you?"))

    async with connect() as mine, connect(user=stranger) as theirs:
        await send(mine, "I am Ada.", context="trip-1")
        await send(theirs, "Who am I?", context="trip-1")

    latest = await Run.objects.order_by("-pk").afirst()
    assert latest.history == []


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_approval_is_input_that_the_task_requires(
    connect, scripted, letter, streaming
):
    scripted(WRITE, THANKS)

    async with connect(streaming=streaming) as client:
        updates = await send(client, "Write to her.")
        task, state, _text = task_of(updates)
        status = last_status(updates)
        asked = MessageToDict(status.message.parts[1].data)
        done = await send(client, "approve", task=task.id)

    assert state == WAITS
    assert asked["arguments"] == {"to": "a@example.org"}
    assert task_of(done)[1:] == (COMPLETED, "It is written.")
    assert task_of(done)[0].id == task.id
    assert letter.sent == [{"to": "a@example.org"}]


async def test_arguments_can_be_edited_as_data(connect, scripted, letter):
    scripted(WRITE, THANKS)

    async with connect() as client:
        updates = await send(client, "Write to her.")
        asked = MessageToDict(last_status(updates).message.parts[1].data)
        answer = {"id": asked["id"], "approved": True, "arguments": {"to": "b@example.org"}}
        await send(client, task=task_of(updates)[0].id, data=answer)

    assert letter.sent == [{"to": "b@example.org"}]


async def test_a_rejected_call_is_not_made(connect, scripted, letter):
    scripted(WRITE, Says(answer="Not written."))

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))
        done = await send(client, "No.", task=task.id)

    assert task_of(done)[1:] == (COMPLETED, "Not written.")
    assert letter.sent == []


async def test_a_question_is_answered_by_the_next_message(connect, scripted, agent):
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="ask_person"))
    scripted(ASK, Says(answer="Kyoto it is."))

    async with connect() as client:
        updates = await send(client, "Where to?")
        done = await send(client, "Kyoto", task=task_of(updates)[0].id)

    assert last_status(updates).message.parts[0].text == "Which city?"
    assert task_of(done)[2] == "Kyoto it is."


async def test_an_unclear_answer_changes_nothing(connect, scripted, letter):
    scripted(WRITE)

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))
        with pytest.raises(errors.InvalidParamsError, match="approve"):
            await send(client, "Perhaps", task=task.id)
        with pytest.raises(errors.InvalidParamsError):
            await send(client, "approve", task=task.id, context="other")

    assert letter.sent == []
    assert (await Run.objects.aget()).status == "waiting"


async def test_a_task_survives_a_restart(connect, scripted, letter):
    scripted(WRITE, THANKS)

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))
        await runs.shut_down()
        read = await client.get_task(GetTaskRequest(id=task.id))
        done = await send(client, "approve", task=task.id)

    assert read.status.state == WAITS
    assert task_of(done)[2] == "It is written."
    assert len(letter.sent) == 1


async def test_a_subscriber_gets_what_it_missed_and_the_rest(connect, scripted, letter):
    scripted(WRITE, THANKS)

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))

        async def subscribe():
            request = SubscribeToTaskRequest(id=task.id)
            return [update async for update in client.subscribe(request)]

        following = asyncio.create_task(subscribe())
        await asyncio.sleep(0.5)
        await send(client, "approve", task=task.id)
        updates = await following
        with pytest.raises(errors.UnsupportedOperationError):
            await subscribe()

    assert updates[0].task.status.state == WAITS
    assert task_of(updates)[1:] == (COMPLETED, "It is written.")


async def test_a_task_is_canceled_once(connect, scripted, letter):
    scripted(WRITE)

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))
        canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
        with pytest.raises(errors.TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task.id))

    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    assert (await Run.objects.aget()).stopped_reason == "cancelled"


@pytest.mark.parametrize("binding", BINDINGS)
async def test_tasks_are_listed_in_pages(connect, scripted, binding):
    scripted(*[Says(answer=f"Answer {number}") for number in range(3)])

    async with connect(binding=binding, streaming=False) as client:
        ids = [task_of(await send(client, str(number)))[0].id for number in range(3)]
        first = await client.list_tasks(ListTasksRequest(page_size=2, include_artifacts=True))
        rest = await client.list_tasks(
            ListTasksRequest(page_size=2, page_token=first.next_page_token)
        )
        done = await client.list_tasks(ListTasksRequest(status="TASK_STATE_COMPLETED"))
        failed = await client.list_tasks(ListTasksRequest(status="TASK_STATE_FAILED"))
        later = ListTasksRequest()
        later.status_timestamp_after.FromDatetime(datetime.now(UTC) + timedelta(hours=1))
        future = await client.list_tasks(later)

    assert [task.id for task in first.tasks] == ids[:0:-1]
    assert first.tasks[0].artifacts[0].parts[0].text == "Answer 2"
    assert [task.id for task in rest.tasks] == ids[:1]
    assert not rest.tasks[0].artifacts
    assert (first.total_size, rest.next_page_token) == (3, "")
    assert (done.total_size, failed.total_size, future.total_size) == (3, 0, 0)


async def test_tasks_of_others_do_not_exist(connect, scripted, letter, stranger):
    scripted(WRITE)

    async with connect() as mine, connect(user=stranger) as theirs:
        task, _state, _text = task_of(await send(mine, "Write to her."))
        for call in (
            theirs.get_task(GetTaskRequest(id=task.id)),
            theirs.cancel_task(CancelTaskRequest(id=task.id)),
            send(theirs, "approve", task=task.id),
        ):
            with pytest.raises(errors.TaskNotFoundError):
                await call
        listed = await theirs.list_tasks(ListTasksRequest())

    assert listed.total_size == 0
    assert letter.sent == []


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_key_needs_the_scopes(connect, scripted, letter, binding):
    scripted(WRITE)

    async with (
        connect("ask", "read", binding=binding) as asking,
        connect("read", binding=binding) as reading,
    ):
        task, _state, _text = task_of(await send(asking, "Write to her."))
        for call in (send(reading, "Hello"), send(asking, "approve", task=task.id)):
            with pytest.raises(A2AClientError, match="403"):
                await call

    assert letter.sent == []


async def test_ids_of_anything_else_are_no_tasks(connect, scripted):
    scripted(Says(answer="Hello."))

    async with connect() as client:
        await send(client, "Hello")
        await Run.objects.aupdate(topic="chat.1")
        run = await Run.objects.aget()
        for id in (str(run.pk), "0", "x", "9" * 30, "１２"):
            with pytest.raises(errors.TaskNotFoundError):
                await client.get_task(GetTaskRequest(id=id))


async def test_a_text_file_becomes_part_of_the_question(connect, scripted):
    scripted(Says(answer="It is a poem."))
    request = message("What is it?")
    request.message.parts.append(
        proto_helpers.new_raw_part(b"Roses are red.", "text/plain", "poem.txt")
    )

    async with connect() as client:
        task, state, _text = task_of([update async for update in client.send_message(request)])

    assert state == COMPLETED
    assert (await Run.objects.aget(pk=int(task.id))).files[0]["name"] == "poem.txt"


async def test_an_answer_has_no_files(connect, scripted, letter):
    scripted(WRITE)

    async with connect() as client:
        task, _state, _text = task_of(await send(client, "Write to her."))
        request = message("approve", task=task.id)
        request.message.parts.append(proto_helpers.new_raw_part(b"x" * 1_200_000, "", "x.bin"))
        with pytest.raises(errors.ContentTypeNotSupportedError):
            assert [update async for update in client.send_message(request)]

    assert letter.sent == []


async def test_the_public_card_names_no_agent(address, agent):
    async with httpx.AsyncClient(base_url=address) as http:
        public = await http.get("/.well-known/agent-card.json")
        own = await http.get("/a2a/helper/.well-known/agent-card.json")
        call = await http.post("/a2a/", json={"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})

    assert public.status_code == 200
    assert agent.name not in public.text
    assert public.json()["url"] == f"{address}/a2a/"
    assert own.status_code == call.status_code == 401
    assert own.headers["WWW-Authenticate"].startswith("Bearer ")


async def test_a_live_context_takes_no_second_task(connect, scripted, letter):
    scripted(WRITE)

    async with connect(binding=TransportProtocol.HTTP_JSON) as client:
        await send(client, "Write to her.", context="one")
        with pytest.raises(errors.UnsupportedOperationError):
            await send(client, "And to him.", context="one")
        with pytest.raises(errors.InvalidParamsError):
            await send(client, "Hello", context="no spaces")
