"""Who gets in at `/mcp`, and what the endpoint keeps of a client: nothing."""

import asyncio
import json

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from agents.access import api_keys
from agents.db import database
from agents.engine.testing import Says
from agents.models import Agent, ApiKey, Approval, Run
from chat.api.mcp.server import SCOPES

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
ACCEPT = {"Accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def initialize(**capabilities):
    info = {"name": "test", "version": "1"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": info,
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


@pytest.fixture
async def http(address, make_key):
    """A client with a key that sends what it is told."""
    _key, token = await make_key()
    headers = ACCEPT | {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as client:
        yield client


async def test_the_sdks_client_asks_too(address, make_key, scripted):
    scripted(Says(answer="It is 42."))
    _key, token = await make_key()
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as client,
        streamable_http_client(address, http_client=client) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        greeting = await session.initialize()
        result = await session.call_tool("helper", {"question": "6 * 7?"})

    assert greeting.server_info.name == "ashiato"
    assert result.content[0].text == "It is 42."


async def test_another_spelling_of_the_address_is_no_way_in(http, address):
    for spelling in ("//mcp", "///mcp/", "/mcp//", "/mcp%0a"):
        for headers in ({}, {"Authorization": ""}):
            url = address.removesuffix("/mcp") + spelling
            response = await http.post(url, json=PING, headers=headers)
            assert response.status_code in {401, 403, 404}


async def test_without_a_key_apps_learn_how_to_sign_in(address):
    async with httpx2.AsyncClient(headers=ACCEPT) as client:
        for authorization in ("", "Bearer ash_wrong", "Basic YTpi"):
            response = await client.post(
                address, json=PING, headers={"Authorization": authorization}
            )
            assert response.status_code == 401
            challenge = response.headers["WWW-Authenticate"]
            assert challenge.startswith("Bearer ")
            assert ('error="invalid_token"' in challenge) == ("ash_" in authorization)
            assert challenge.endswith('/.well-known/oauth-protected-resource/mcp"')


@pytest.mark.parametrize(("method", "scope"), SCOPES.items())
async def test_an_app_learns_which_scope_it_lacks(method, scope, address, make_key):
    others = {*ApiKey.Scope.values} - {scope}
    _key, token = await make_key(*others)
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"name": "helper"}}
    headers = {**ACCEPT, "Authorization": f"Bearer {token}"}

    async with httpx2.AsyncClient(headers=headers) as client:
        response = await client.post(address, json=request)

    assert response.status_code == 403
    assert response.json()["id"] == 7
    assert "RateLimit-Remaining" in response.headers
    challenge = response.headers["WWW-Authenticate"]
    assert challenge.startswith(f'Bearer error="insufficient_scope", scope="{scope}", ')
    assert challenge.endswith('/.well-known/oauth-protected-resource/mcp"')


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "{own}"}, 200),
    ],
)
async def test_a_foreign_page_is_refused(headers, status, address, http):
    own = address.removesuffix("/mcp")
    headers = {name: value.format(own=own) for name, value in headers.items()}
    response = await http.post(address, json=initialize(), headers=headers)

    assert response.status_code == status


async def test_only_post_requests_of_a_limited_size_and_rate(address, http, make_key):
    assert (await http.get(address)).status_code == 405
    assert (await http.delete(f"{address}/")).headers["Allow"] == "POST"
    assert (await http.post(address, content=b"x" * (4 * 2**20 + 1))).status_code == 413
    _key, token = await make_key(requests_per_minute=1)
    limited = {"Authorization": f"Bearer {token}"}
    first = await http.post(address, json=initialize(), headers=limited)
    second = await http.post(address, json=initialize(), headers=limited)

    assert (first.status_code, first.headers["RateLimit-Remaining"]) == (200, "0")
    assert second.status_code == 429
    assert int(second.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"7", b'{"id": 1}', b"\xff", b"[" * 100_000]
)
async def test_nonsense_is_a_client_error(body, address, http):
    headers = {"Content-Type": "application/json"}
    for version in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        response = await http.post(address, content=body, headers=headers | version)
        assert 400 <= response.status_code < 500


async def test_pages_below_the_address_stay_pages(address):
    async with httpx2.AsyncClient() as client:
        document = await client.get(f"{address}/client.json")
        callback = await client.get(f"{address}/callback/")

    assert document.status_code == 200
    assert callback.status_code in (302, 400)


async def test_an_answer_may_arrive_anywhere(address, http, scripted):
    """A client's answer needs nothing of the process in which its question was asked."""
    await Agent.objects.aupdate(auto_execute_tools=False)
    scripted(Says.call("calculator", input="6 * 7"), Says(answer="It is 42."))
    greeting = await http.post(address, json=initialize(elicitation={}))
    session = {"Mcp-Session-Id": greeting.headers["Mcp-Session-Id"]}
    call = {"name": "helper", "arguments": {"question": "?"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = {"action": "accept", "content": {"decision": "approve"}}
    async with http.stream("POST", address, json=request, headers=session) as response:
        async for line in response.aiter_lines():
            message = json.loads(line.removeprefix("data: ")) if "data: " in line else {}
            if message.get("method") == "elicitation/create":
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
                sent = await http.post(address, json=reply, headers=session)
            if message.get("id") == 1:
                break

    assert sent.status_code == 202
    assert message["result"]["content"][0]["text"] == "It is 42."
    assert (await Approval.objects.aget()).verdict == "approved"


async def test_a_session_and_its_questions_belong_to_its_user(
    address, http, scripted, make_key, stranger
):
    await Agent.objects.aupdate(auto_execute_tools=False)
    scripted(Says.call("calculator", input="6 * 7"), Says(answer="It is 42."))
    call = {"name": "helper", "arguments": {"question": "?"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    await http.post(address, json=request)
    approval = await Approval.objects.aget()
    greeting = await http.post(address, json=initialize(elicitation={}))
    session = {"Mcp-Session-Id": greeting.headers["Mcp-Session-Id"]}
    _key, token = await make_key(user=stranger)
    foreign = {"Authorization": f"Bearer {token}"}
    stolen = await http.post(address, json=PING, headers=session | foreign)
    forged = await http.post(address, json=PING, headers={"Mcp-Session-Id": "x"})
    own = await http.post(address, json=initialize(elicitation={}), headers=foreign)
    foreign |= {"Mcp-Session-Id": own.headers["Mcp-Session-Id"]}
    answer = {"action": "accept", "content": {"decision": "approve"}}
    question = f"approval-{approval.pk}-{approval.digest}"
    reply = {"jsonrpc": "2.0", "id": question, "result": answer}
    ignored = await http.post(address, json=reply, headers=foreign)

    assert stolen.status_code == forged.status_code == 404
    assert ignored.status_code == 202
    assert (await Approval.objects.aget()).is_waiting
    assert (await Run.objects.aget()).is_live


async def test_errors_say_nothing_of_the_inside(address, http, monkeypatch):
    from chat.api.mcp import tools

    def fail(call):
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(tools, "list_tools", fail)
    for version in ({}, {"MCP-Protocol-Version": "2025-06-18"}):
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        response = await http.post(address, json=request, headers=version)
        assert "Internal error" in response.text
        assert "swordfish" not in response.text


async def test_no_task_outlives_its_request(address, http):
    before = asyncio.all_tasks()
    for _ in range(3):
        await http.post(address, json=initialize())
        await http.post(address, json=PING)
    await asyncio.sleep(0.2)
    left = [repr(task.get_coro()) for task in asyncio.all_tasks() - before]

    assert [task for task in left if "mcp" in task or "sse" in task] == []


async def test_a_revoked_key_opens_nothing(address, http):
    await database.run(api_keys.revoke, ApiKey.objects.all())

    assert (await http.post(address, json=PING)).status_code == 401
