import json

import pytest
from ag_ui.core import Event, RunAgentInput, UserMessage
from django.test import AsyncClient
from pydantic import TypeAdapter

from agents.access import api_keys
from agents.catalog.tools import tool_factory
from agents.db import database
from tests.chat.api.approved_tool import Letter

SCOPES = ("ask", "read", "approve")
EVENTS = TypeAdapter(Event)


@pytest.fixture
def letter(monkeypatch):
    tool = Letter()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    return tool


def said(text, id="m1"):
    return UserMessage(id=id, content=text)


@pytest.fixture
def post(person):
    """Send an input to an agent; return the response."""

    async def send(*messages, scopes=SCOPES, agent="helper", user=person, **fields):
        _key, token = await database.run(api_keys.create, user, "front end", scopes)
        run_input = RunAgentInput(
            thread_id="thread", run_id="run", messages=list(messages), **fields
        )
        return await AsyncClient().post(
            f"/ag-ui/{agent}",
            run_input.model_dump_json(by_alias=True),
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        )

    return send


@pytest.fixture
def stream(post):
    """Send an input to an agent; return all events that follow."""

    async def send(*messages, **options):
        response = await post(*messages, **options)
        assert response.status_code == 200, response.content
        assert response["Content-Type"] == "text/event-stream"
        body = b"".join([chunk async for chunk in response.streaming_content]).decode()
        lines = [line for line in body.splitlines() if line.startswith("data: ")]
        return [EVENTS.validate_python(json.loads(line[6:])) for line in lines]

    return send
