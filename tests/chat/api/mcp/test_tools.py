"""Agents and workflows as tools of the MCP server, called with FastMCP's client."""

import asyncio
import json

import pytest
from django.contrib.auth.models import Group
from mcp import MCPError

from agents import runs
from agents.access import api_keys
from agents.catalog.tools import tool_factory
from agents.db import database
from agents.engine import ToolResult, function_tool
from agents.engine.testing import Call, Says
from agents.engine.tool import Attachment as EngineAttachment
from agents.models import Agent, ApiKey, Run, Workflow, WorkflowVersion
from chat.models import Attachment, ChatSession
from tests.chat.api.mcp.conftest import ERAS
from tests.pictures import png, wav

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
GREETING = """
name: Daily greeting
description: Greets someone.
parameters: {name: null, times: 2, loud: false}
steps:
  - name: greet
    agent: helper
    arguments: {task: "Greet ${parameters.name}"}
"""


async def names(client):
    return {tool.name for tool in await client.list_tools()}


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_answers_with_its_steps_as_progress(era, connect, scripted, address):
    scripted(Says.call("calculator", input="6 * 7"), Says(answer="It is 42."))
    reports = []

    async def on_progress(progress, total, message):
        reports.append((progress, message))

    async with connect(era, progress_handler=on_progress) as client:
        result = await client.call_tool("helper", {"question": "6 * 7?"})

    run = await Run.objects.aget()
    assert result.content[0].text == "It is 42."
    assert result.structured_content == {
        "run": run.pk,
        "conversation": (await ChatSession.objects.aget()).pk,
        "status": "completed",
        "url": address.replace("/mcp", f"/traces/{run.pk}/"),
        "sources": ["[1] Calculator · 6 * 7 = 42"],
    }
    assert "calculator called" in [message for _number, message in reports]
    assert [number for number, _message in reports] == sorted({n for n, _m in reports})
    assert run.api_key_id == (await ApiKey.objects.aget()).pk


async def test_files_that_tools_return_are_content(connect, scripted, monkeypatch, address):
    @function_tool
    def draw() -> ToolResult:
        """Draws."""
        files = (
            EngineAttachment(data=png(), mime_type="image/png"),
            EngineAttachment(data=wav(), mime_type="audio/wav"),
            EngineAttachment(data=b"a,b", mime_type="text/csv", name="table.csv"),
            EngineAttachment(data=b"%PDF-", mime_type="application/pdf", name="report.pdf"),
        )
        return ToolResult("Drawn.", attachments=files)

    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: draw)
    scripted(Says(calls=(Call("draw", "{}"),)), Says(answer="Here."))
    async with connect() as client:
        result = await client.call_tool("helper", {"question": "Draw"})

    text, image, sound, table, report = result.content
    assert text.text == "Here."
    assert (image.type, image.mime_type) == ("image", "image/png")
    assert (sound.type, sound.mime_type) == ("audio", "audio/wav")
    assert (table.type, table.resource.text) == ("resource", "a,b")
    assert (report.type, report.name) == ("resource_link", "report.pdf")
    assert str(report.uri).startswith(address.replace("/mcp", "/traces/"))


async def test_each_user_sees_what_they_may_ask(connect, stranger, agent):
    secret = await Agent.objects.acreate(name="secret")
    await secret.groups.aadd(await Group.objects.acreate(name="Spies"))
    hidden = await Agent.objects.acreate(name="hidden", enabled=False)
    async with connect() as client:
        assert {"helper"} <= await names(client)
        assert not {"secret", hidden.name} & await names(client)
        refused = await client.call_tool("hidden", {"question": "?"}, raise_on_error=False)
        assert refused.is_error
    async with connect("auto", "read") as client:
        assert await names(client) == set()
        with pytest.raises(MCPError, match="ask"):
            await client.call_tool("helper", {"question": "?"})
    assert not await Run.objects.aexists()


async def test_only_an_agent_without_changing_tools_is_read_only(connect, agent):
    async with connect() as client:
        [tool] = [tool for tool in await client.list_tools() if tool.name == "helper"]
        assert tool.annotations.read_only_hint
        await agent.links.filter(tool__name="search").aupdate(effect="at_most_once")
        [tool] = [tool for tool in await client.list_tools() if tool.name == "helper"]
        assert not tool.annotations.read_only_hint


async def test_a_conversation_continues_with_its_history(connect, scripted, make_key, stranger):
    model = scripted(Says(answer="Hello Ada."), Says(answer="You are Ada."))
    async with connect() as client:
        first = await client.call_tool("helper", {"question": "I am Ada"})
        conversation = first.structured_content["conversation"]
        arguments = {"question": "Who am I?", "conversation": conversation}
        second = await client.call_tool("helper", arguments)
    async with connect(user=stranger) as client:
        foreign = await client.call_tool("helper", arguments, raise_on_error=False)

    assert second.structured_content["conversation"] == conversation
    assert "I am Ada" in json.dumps(model.requests[1]["messages"])
    assert foreign.is_error
    assert str(conversation) in foreign.content[0].text
    assert await Run.objects.acount() == 2


async def test_texts_are_sent_as_files(connect, scripted):
    scripted(Says(answer="Read."))
    files = [{"name": "notes.md", "text": "# Notes\nBuy milk."}]
    async with connect() as client:
        await client.call_tool("helper", {"question": "Read this", "files": files})
        bad = await client.call_tool(
            "helper", {"question": "?", "files": [{"name": ""}]}, raise_on_error=False
        )

    assert (await Attachment.objects.aget()).name == "notes.md"
    assert bad.is_error
    assert "files.0.name" in bad.content[0].text


async def test_a_failed_run_is_an_error_in_words(connect, scripted):
    scripted(ValueError("secret detail"))
    async with connect() as client:
        result = await client.call_tool("helper", {"question": "?"}, raise_on_error=False)

    assert result.is_error
    assert result.structured_content["status"] == "failed"
    assert result.content[0].text


async def test_a_workflow_is_a_tool_with_its_parameters(connect, scripted):
    scripted(Says(answer="Hello Ada!"))
    workflow = await Workflow.objects.acreate(name="Daily greeting")
    await WorkflowVersion.objects.acreate(workflow=workflow, number=1, text=GREETING)
    async with connect() as client:
        [tool] = [t for t in await client.list_tools() if t.name == "workflow_daily_greeting"]
        missing = await client.call_tool(tool.name, {}, raise_on_error=False)
        result = await client.call_tool(tool.name, {"name": "Ada", "loud": True})

    assert tool.title == "Daily greeting"
    assert tool.input_schema["required"] == ["name"]
    assert tool.input_schema["properties"]["times"] == {"type": "integer", "default": 2}
    assert missing.is_error
    run = await Run.objects.aget()
    assert run.parameters == {"name": "Ada", "times": 2, "loud": True}
    assert "Hello Ada!" in result.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_stops_its_run(era, connect, model):
    async with connect(era) as client:
        calling = asyncio.create_task(client.call_tool("helper", {"question": "?"}))
        await model.started.wait()
        calling.cancel()
        async with asyncio.timeout(10):
            await runs.wait(await Run.objects.aget())

    assert (await Run.objects.aget()).status == Run.Status.STOPPED


async def test_a_revoked_key_ends_the_call(connect, model):
    async with connect("auto") as client:
        calling = asyncio.create_task(
            client.call_tool("helper", {"question": "?"}, raise_on_error=False)
        )
        await model.started.wait()
        await database.run(api_keys.revoke, ApiKey.objects.all())
        async with asyncio.timeout(5):
            result = await calling

    assert result.is_error
    assert "no longer works" in result.content[0].text


@pytest.fixture
async def model(monkeypatch):
    """A model that never finishes its answer."""
    from agents.catalog.language_models import model_clients
    from agents.engine.testing import delta

    class Endless:
        started = asyncio.Event()

        async def stream(self, **request):
            yield delta(content="Well, ")
            self.started.set()
            await asyncio.Event().wait()

    model = Endless()
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    return model


async def test_a_key_that_only_asks_continues_its_own_conversations_alone(connect, scripted):
    scripted(Says(answer="Noted."), Says(answer="Who?"), Says(answer="I don't know."))
    async with connect() as client:
        first = await client.call_tool("helper", {"question": "I am Ada."})
    conversation = first.structured_content["conversation"]
    arguments = {"question": "Who am I?", "conversation": conversation}
    async with connect("auto", "ask") as client:
        refused = await client.call_tool("helper", arguments, raise_on_error=False)
        own = await client.call_tool("helper", {"question": "Who am I?"})
        arguments["conversation"] = own.structured_content["conversation"]
        continued = await client.call_tool("helper", arguments, raise_on_error=False)

    assert refused.is_error
    assert str(conversation) in refused.content[0].text
    assert continued.structured_content["conversation"] != conversation
