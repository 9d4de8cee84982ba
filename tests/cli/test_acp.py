"""An editor talks to agents, with the client of the protocol's SDK."""

import asyncio
import socket
from contextlib import asynccontextmanager

import acp
import pytest
from acp import schema

from agents.db import database
from agents.engine.testing import Call, Says
from agents.models import Agent, Run, ToolRegistration
from project.cli.acp_agent import EditorAgent

pytestmark = pytest.mark.django_db(transaction=True)


class Editor(acp.Client):
    """Notes what it is sent, and decides about every request in the same way."""

    def __init__(self, decision="approve"):
        self.decision = decision
        self.updates = []
        self.requests = []
        self.started = asyncio.Event()

    async def session_update(self, session_id, update, **_options):
        self.updates.append(update)
        self.started.set()

    async def request_permission(self, session_id, tool_call, options, **_options):
        self.requests.append((tool_call, options))
        if self.decision is None:
            return acp.RequestPermissionResponse(
                outcome=schema.DeniedOutcome(outcome="cancelled")
            )
        return acp.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=self.decision)
        )

    def text(self, kind="agent_message_chunk"):
        chunks = [each for each in self.updates if each.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks)

    def of(self, kind):
        return [each for each in self.updates if each.session_update == kind]


@asynccontextmanager
async def connected(server, editor, agent=""):
    """Connect an editor to the agent, as over the pipes of a process."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    agent_reader, agent_writer = await asyncio.open_connection(sock=theirs)
    side = asyncio.create_task(
        acp.run_agent(EditorAgent(server, agent, "0"), agent_writer, agent_reader)
    )
    connection = acp.connect_to_agent(editor, writer, reader)
    try:
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield connection
    finally:
        await connection.close()
        writer.close()
        await side
        agent_writer.close()


async def new_session(connection):
    return await connection.new_session(cwd="/", mcp_servers=[])


async def prompt(connection, session, *texts):
    blocks = [acp.text_block(text) for text in texts]
    return await connection.prompt(session_id=session.session_id, prompt=blocks)


@pytest.fixture
async def careful(server):
    def create():
        careful = Agent.objects.create(name="careful", auto_execute_tools=False)
        careful.tools.set(ToolRegistration.objects.all())

    await database.run(create)


async def test_a_prompt_is_answered_with_its_steps(server):
    editor = Editor()
    async with connected(server, editor) as connection:
        session = await new_session(connection)
        response = await prompt(connection, session, "What is 12.5% of 3480?")

    assert response.stop_reason == "end_turn"
    assert "435" in editor.text()
    [call] = editor.of("tool_call")
    assert call.title.startswith("calculator ")
    assert call.raw_input == {"expression": "3480 * 12.5 / 100"} or call.raw_input
    [done] = editor.of("tool_call_update")
    assert (done.tool_call_id, done.status) == (call.tool_call_id, "completed")
    assert "435" in done.content[0].content.text
    assert editor.text("agent_thought_chunk")


async def test_prompts_of_a_session_are_one_chat(server):
    async with connected(server, Editor()) as connection:
        session = await new_session(connection)
        await prompt(connection, session, "6 * 7")
        await prompt(connection, session, "7 * 8")
        await prompt(connection, await new_session(connection), "8 * 9")

    topics = [run.topic async for run in Run.objects.order_by("pk")]
    assert topics[0] == topics[1] != topics[2]


@pytest.mark.parametrize(
    ("decision", "verdict"), [("approve", "approved"), ("reject", "rejected")]
)
async def test_the_editor_decides_about_a_call(careful, server, decision, verdict):
    editor = Editor(decision)
    async with connected(server, editor, "careful") as connection:
        response = await prompt(connection, await new_session(connection), "6 * 7")

    [(call, options)] = editor.requests
    assert call.raw_input == {"expression": "6 * 7"}
    assert [option.kind for option in options] == ["allow_once", "reject_once"]
    assert response.stop_reason == "end_turn"
    run = await Run.objects.aget()
    assert (await run.approvals.aget()).verdict == verdict


async def test_a_turn_that_is_canceled_at_a_request_stops_the_run(careful, server):
    async with connected(server, Editor(decision=None), "careful") as connection:
        response = await prompt(connection, await new_session(connection), "6 * 7")

    assert response.stop_reason == "cancelled"
    assert (await Run.objects.aget()).status == "stopped" or (
        (await Run.objects.aget()).stopped_reason == "cancelled"
    )


async def test_cancel_stops_the_run(server, scripted):
    class SlowModel:
        async def stream(self, **_request):
            yield {"choices": [{"index": 0, "delta": {"content": "Once upon"}}]}
            await asyncio.sleep(30)

    scripted(model=SlowModel())
    editor = Editor()
    async with connected(server, editor) as connection:
        session = await new_session(connection)
        turn = asyncio.create_task(prompt(connection, session, "Tell a long story."))
        await asyncio.wait_for(editor.started.wait(), 20)
        await connection.cancel(session_id=session.session_id)
        response = await asyncio.wait_for(turn, 20)

    assert response.stop_reason == "cancelled"
    assert (await Run.objects.aget()).stopped_reason == "cancelled"


async def test_agents_are_modes_between_which_the_editor_switches(careful, server):
    async with connected(server, Editor()) as connection:
        session = await new_session(connection)
        names = {mode.id for mode in session.modes.available_modes}
        await connection.set_session_mode(session_id=session.session_id, mode_id="careful")
        await prompt(connection, session, "6 * 7")

    assert session.modes.current_mode_id == "helper"
    assert names == {"helper", "careful"}
    assert (await Run.objects.aget()).agent_name == "careful"


async def test_an_unknown_agent_or_session_is_an_error(server):
    async with connected(server, Editor(), "nobody") as connection:
        with pytest.raises(acp.RequestError, match="no agent named 'nobody'"):
            await new_session(connection)
        with pytest.raises(acp.RequestError, match="no such session"):
            await connection.prompt(session_id="x", prompt=[acp.text_block("6 * 7")])


async def test_a_failed_run_is_an_error_and_a_blocked_one_a_refusal(server, scripted):
    from agents.engine.errors import ModelError

    scripted(ModelError("The provider refused."))
    async with connected(server, Editor()) as connection:
        session = await new_session(connection)
        with pytest.raises(acp.RequestError, match="The provider refused"):
            await prompt(connection, session, "6 * 7")
        blocked = await prompt(connection, session, "-----BEGIN PRIVATE KEY----- abc")

    assert blocked.stop_reason == "refusal"


async def test_resources_of_the_editor_are_part_of_the_message(server):
    async with connected(server, Editor()) as connection:
        session = await new_session(connection)
        resource = acp.embedded_text_resource("file:///a.py", "print(6 * 7)")
        blocks = [
            acp.text_block("6 * 7"),
            acp.resource_link_block("b.py", "file:///b.py"),
            acp.resource_block(resource),
        ]
        await connection.prompt(session_id=session.session_id, prompt=blocks)

    query = (await Run.objects.aget()).query
    assert query == "6 * 7\n\n[b.py](file:///b.py)\n\nfile:///a.py:\n```\nprint(6 * 7)\n```"


async def test_a_chat_can_be_opened_and_continued(server):
    first, second = Editor(), Editor()
    async with connected(server, first) as connection:
        await prompt(connection, await new_session(connection), "6 * 7")
    async with connected(server, second) as connection:
        [listed] = (await connection.list_sessions()).sessions
        await connection.load_session(cwd="/", session_id=listed.session_id, mcp_servers=[])
        replayed = second.text("user_message_chunk"), second.text()
        blocks = [acp.text_block("7 * 8")]
        await connection.prompt(session_id=listed.session_id, prompt=blocks)

    assert replayed[0] == "6 * 7"
    assert "42" in replayed[1]
    topics = {run.topic async for run in Run.objects.all()}
    assert len(topics) == 1


async def test_a_question_to_the_user_is_answered_by_the_next_prompt(server, scripted):
    def allow_questions():
        helper = Agent.objects.get(name="helper")
        tool, _ = ToolRegistration.objects.get_or_create(name="ask_person")
        helper.tools.add(tool)

    await database.run(allow_questions)
    question = {"question": "Which city?"}
    scripted(Says(calls=(Call("ask_person", question),)), Says(answer="It rains in Kobe."))
    editor = Editor()
    async with connected(server, editor) as connection:
        session = await new_session(connection)
        await prompt(connection, session, "How is the weather?")
        asked = editor.text()
        await prompt(connection, session, "Kobe")

    assert "Which city?" in asked
    assert "It rains in Kobe." in editor.text()
    run = await Run.objects.aget()
    assert run.status == "completed"
