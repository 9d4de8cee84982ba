"""Requests of programs take a way of their own: what it has to keep, and what it costs."""

import asyncio
from io import BytesIO
from threading import get_ident

import pytest
from django.db import connections
from django.test import AsyncClient

from agents import runs
from agents.access import api_keys
from agents.accounts.users import profiles
from agents.catalog import agent_factory
from agents.db import database
from agents.models import Run
from agents.web import api_access
from agents.web.asgi.request_body import BODY_FILE
from project.asgi import application
from tests.access.test_headers import PROMISED

pytestmark = pytest.mark.django_db(transaction=True)

PATHS = ["/v1/models", "/v1/nothing", "/api/v1/me", "/a2a/nobody/v1/card", "/ag-ui/nobody"]


@pytest.fixture
def token(person):
    return api_keys.create(person, "CI", ["ask", "read"])[1]


async def call(path, token, body=b"", method="GET", body_file=None, accept=b"*/*"):
    """Send a request to the server's application, and return its status and its body."""
    headers = [(b"host", b"testserver"), (b"authorization", f"Bearer {token}".encode())]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [
            *headers,
            (b"accept", accept),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ],
        "extensions": {BODY_FILE: body_file} if body_file else {},
    }
    requests = asyncio.Queue()
    requests.put_nowait({"type": "http.request", "body": body, "more_body": False})
    sent = []

    async def send(message):
        sent.append(message)

    await application(scope, requests.get, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("has_key", [True, False])
async def test_a_program_gets_the_headers_that_pages_have(path, has_key, token):
    headers = {"Authorization": f"Bearer {token}"} if has_key else {}

    answer = await AsyncClient().get(path, headers=headers)

    assert {name: answer.headers[name] for name in PROMISED} == PROMISED
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert "camera=()" in answer.headers["Permissions-Policy"]
    assert "no-store" in answer.headers["Cache-Control"]
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert ("RateLimit-Remaining" in answer.headers) == has_key


async def test_an_unknown_host_is_refused_in_json(token):
    headers = {"Authorization": f"Bearer {token}", "Host": "elsewhere.example"}

    answer = await AsyncClient().get("/v1/models", headers=headers)

    assert answer.status_code == 400
    assert "json" in answer.headers["Content-Type"]


async def test_a_program_is_answered_in_the_language_of_its_user(token, person):
    path = "/v1/models/nobody"
    headers = {"Authorization": f"Bearer {token}"}

    from_browser = await AsyncClient().get(path, headers=headers | {"Accept-Language": "ja"})
    await database.run(profiles.save_setting, person, language="ja")
    from_profile = await AsyncClient().get(path, headers=headers)

    for answer in (from_browser, from_profile):
        assert answer.status_code == 404
        assert answer.headers["Content-Language"] == "ja"
        assert "エージェント" in answer.json()["error"]["message"]


@pytest.fixture
def admitting_threads(monkeypatch):
    """Return the threads in which programs are let in."""
    threads = []
    admit = api_access.admit

    def note_thread(request):
        threads.append(get_ident())
        return admit(request)

    monkeypatch.setattr(api_access, "admit", note_thread)
    return threads


async def test_protocols_share_a_connection_to_the_database(token, admitting_threads):
    def find_connection():
        return get_ident(), connections["default"].connection

    shared = await database.run(find_connection)
    status, body = await call("/v1/models", token)

    assert status == 200
    assert b'"list"' in body
    assert admitting_threads == [shared[0]]
    assert await database.run(find_connection) == shared


async def test_the_rest_api_and_large_bodies_have_threads_of_their_own(
    token, admitting_threads
):
    """Exports and files take long, and nobody else's message may wait for them."""
    await call("/api/v1/me", token)
    await call("/v1/chat/completions", token, b"{}", "POST", body_file=BytesIO(b"{}"))

    assert len(admitting_threads) == 2
    assert await database.run(get_ident) not in admitting_threads


async def test_a_stream_of_events_has_no_thread_of_its_own(token, person, admitting_threads):
    run = await Run.objects.acreate(user=person, query="6 * 7", status="completed")

    await call(f"/api/v1/runs/{run.pk}/events", token, accept=b"text/event-stream")
    await call(f"/api/v1/runs/{run.pk}/events", token)

    shared = await database.run(get_ident)
    assert [thread == shared for thread in admitting_threads] == [True, False]


@pytest.mark.usefixtures("run_executor", "agent")
async def test_a_run_has_nothing_of_the_thread_of_its_request(token, monkeypatch):
    """Otherwise each would have a thread and a connection of its own, to its end."""
    threads = set()
    start = agent_factory.start

    async def note_thread(run):
        threads.add(await database.run(get_ident))
        return await start(run)

    monkeypatch.setattr(agent_factory, "start", note_thread)
    status, _body = await call("/api/v1/runs", token, b'{"text": "What is 6 * 7?"}', "POST")
    await runs.wait(await Run.objects.aget())

    assert status == 201
    assert threads == {await database.run(get_ident)}
