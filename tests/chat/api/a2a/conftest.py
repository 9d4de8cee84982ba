"""A server that programs reach over HTTP, and the SDK's own client."""

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import proto_helpers
from a2a.types import Role, SendMessageRequest
from a2a.utils.constants import TransportProtocol

from agents.access import api_keys
from agents.catalog.tools import tool_factory
from agents.db import database
from tests.bench.processes import free_port
from tests.chat.api.approved_tool import Letter

SCOPES = ("ask", "read", "approve")
BINDINGS = (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON)


@pytest.fixture
def letter(monkeypatch):
    tool = Letter()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    return tool


@pytest.fixture
async def address(run_executor, settings):
    """The URL of the product, in this process and on this test's event loop."""
    from project.asgi import application

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings.ORIGINS = [url]
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    config = uvicorn.Config(application, port=port, lifespan="off", log_level="warning")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    for _ in range(1_000):
        if server.started:
            break
        await asyncio.sleep(0.01)
    yield url
    server.should_exit = True
    server.force_exit = True
    await serving


@pytest.fixture
def make_token(person):
    async def make(*scopes, user=None):
        create = api_keys.create
        _key, token = await database.run(create, user or person, "Bot", scopes or SCOPES)
        return token

    return make


@pytest.fixture
def connect(address, make_token):
    """Connect the SDK's client with a new key, by the card of the installation or an agent."""

    @asynccontextmanager
    async def open_client(
        *scopes,
        user=None,
        agent="",
        binding=TransportProtocol.JSONRPC,
        version="1.0",
        **options,
    ):
        headers = {"Authorization": f"Bearer {await make_token(*scopes, user=user)}"}
        async with httpx.AsyncClient(headers=headers, timeout=30) as http:
            base = f"{address}/a2a/{agent}" if agent else address
            card = await A2ACardResolver(http, base).get_agent_card()
            interfaces = [
                interface
                for interface in card.supported_interfaces
                if interface.protocol_version == version
            ]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(interfaces)
            config = ClientConfig(
                httpx_client=http, supported_protocol_bindings=[binding.value], **options
            )
            client = ClientFactory(config).create(card)
            client.http = http
            yield client

    return open_client


def message(text="", *, task="", context="", data=None, **configuration):
    """Return a request that sends a message."""
    parts = [proto_helpers.new_text_part(text)] if text else []
    if data is not None:
        parts.append(proto_helpers.new_data_part(data))
    sent = proto_helpers.new_message(
        parts, context_id=context or None, task_id=task or None, role=Role.ROLE_USER
    )
    request = SendMessageRequest(message=sent)
    for name, value in configuration.items():
        setattr(request.configuration, name, value)
    return request


async def send(client, *arguments, **options):
    """Send a message; return the task at the end and what was streamed until then."""
    updates = [update async for update in client.send_message(message(*arguments, **options))]
    return updates


def task_of(updates):
    """Return the task as its updates leave it: state, id, context and the answer's text."""
    state, text, task = None, "", None
    for update in updates:
        kind = update.WhichOneof("payload")
        if kind == "task":
            task = update.task
            state = task.status.state
            text = "".join(
                part.text
                for artifact in task.artifacts
                if artifact.artifact_id == "answer"
                for part in artifact.parts
            )
        elif kind == "status_update":
            state = update.status_update.status.state
        elif update.artifact_update.artifact.artifact_id == "answer":
            new = "".join(part.text for part in update.artifact_update.artifact.parts)
            text = text + new if update.artifact_update.append else new
    return task, state, text


def last_status(updates):
    statuses = [
        update.status_update.status
        for update in updates
        if update.WhichOneof("payload") == "status_update"
    ]
    return statuses[-1] if statuses else updates[-1].task.status
