"""Users can't see or change what isn't theirs, by any route."""

import re

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import RoutePattern, URLResolver

from agents import runs
from agents.models import Run
from agents.runs import close_codes, pubsub
from agents.web.consumers import live
from chat.live.consumers import ChatConsumer
from chat.models import ChatSession, Message
from project.asgi import application
from tests.access.routes import EVERYBODY, ROUTES
from tests.access.world import MISSING
from tests.conftest import ORIGIN, as_async_user, frames_until, tab
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

# Called by machines, which prove themselves in their own way.
SIGNED = {"hooks/<str:public_id>"}
# The method of every route; open ones need no account.
METHODS = {
    route: "open" if access.allowed == EVERYBODY or route in SIGNED else access.method
    for route, access in ROUTES.items()
}
OF_A_CHAT = [route for route in METHODS if route.startswith("chat/<int:pk>/")]
OF_A_RUN = [r for r in METHODS if r.startswith(("traces/<int:pk>/", "api/runs/"))]
POSTED = [route for route, method in METHODS.items() if method == "POST"]
SOCKETS = ["/ws/chat/{}/", "/ws/runs/{}/"]


@pytest.fixture
def run(chat, person):
    run = Run.objects.create(
        user=person, topic=chat.topic, query="6 * 7", answer="**42**", status="completed"
    )
    Message.objects.create(session=chat, author=person, run=run, text="6 * 7", client_id="a")
    return run


@pytest.fixture
def reviewer(stranger):
    stranger.user_permissions.add(Permission.objects.get(codename="review_runs"))
    return stranger


def address(route, pk=1):
    return "/" + re.sub(r"<\w+:\w+>", str(pk), route)


async def ask(client, route, pk=1, **data):
    method = client.post if METHODS[route] == "POST" else client.get
    return await method(address(route, pk), data or None)


def test_the_login_page_and_its_language_switch_are_open():
    answer = Client().post("/language/", {"language": "ja", "next": "/login/"})

    assert answer.headers["Location"] == "/login/"
    assert answer.cookies["django_language"].value == "ja"
    assert Client().get("/login/").status_code == 200


def test_the_console_needs_a_sign_in():
    admin = next(p for p in get_resolver().url_patterns if str(p.pattern) == "admin/")
    inner = [p for q in admin.url_patterns for p in getattr(q, "url_patterns", [q])]
    paths = {str(p.pattern) for p in inner if isinstance(p.pattern, RoutePattern)}
    models = [str(p.pattern) for p in admin.url_patterns if isinstance(p, URLResolver)]
    assert {"agents/run/", "chat/message/"} <= set(models)

    for path in [*models, *(f"agents/run/{address(p)[1:]}" for p in paths), "nothing/", ""]:
        answer = Client().get(f"/admin/{path}")
        assert answer.status_code in {302, 404} or "id_password" in answer.text, path


@pytest.mark.parametrize("pk", one_in(2, [2**63, 10**30]))
async def test_an_invalid_id_returns_404(pk, person):
    client = await as_async_user(person)

    for route in [*OF_A_CHAT, *OF_A_RUN]:
        assert (await ask(client, route, pk)).status_code == 404, route


async def test_lists_have_nothing_of_other_users(run, stranger):
    client = await as_async_user(stranger)

    for page in ["/", "/chat/sessions/", "/chat/sessions/?q=Sums", "/traces/", "/traces/?q=6"]:
        shown = (await client.get(page)).text
        assert "Sums" not in shown.replace('="Sums"', "").replace("“Sums”", ""), page
        assert "6 * 7" not in shown, page


@pytest.mark.parametrize("method", one_in(4, ["get", "put", "delete", "head"]))
async def test_changes_need_post(method, chat, run):
    client = await as_async_user(chat.user)

    for route in POSTED:
        answer = await getattr(client, method)(address(route, chat.pk))
        assert answer.status_code == 405, route
    assert await ChatSession.objects.aexists()


async def test_a_post_without_csrf_token_is_rejected(chat):
    client = await as_async_user(chat.user, enforce_csrf_checks=True)

    for route in [*POSTED, "language/"]:
        answer = await client.post(address(route, chat.pk), {"text": "hello", "title": "x"})
        assert answer.status_code == 403, route
        assert "This page has expired" in answer.text
    assert (await ChatSession.objects.aget()).title == "Sums"


def test_signing_in_needs_the_csrf_token(person):
    client = Client(enforce_csrf_checks=True)

    answer = client.post("/login/", {"username": "ada", "password": "a long password"})

    assert answer.status_code == 403


# Sockets


async def receive_until_closed(path, user=None, headers=(ORIGIN,)):
    """Return what a socket receives until it is closed, and its close code."""
    client, cookies = Client(), []
    if user is not None:
        await sync_to_async(client.force_login)(user)
        cookies = [(b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode())]
    socket = WebsocketCommunicator(application, path, [*headers, *cookies])
    accepted, code = await socket.connect()
    frames = []
    while accepted:
        frames.append(await socket.receive_output())
        accepted, code = frames[-1]["type"] != "websocket.close", frames[-1].get("code")
    await socket.disconnect()
    return frames, code


@pytest.mark.parametrize("path", SOCKETS)
async def test_another_users_socket_looks_like_a_missing_one(path, chat, run, stranger):
    pk = chat.pk if "chat" in path else run.pk

    theirs = await receive_until_closed(path.format(pk), stranger)

    assert theirs[1] == 4404
    assert len(theirs[0]) == 1
    assert theirs == await receive_until_closed(path.format(MISSING), stranger)
    assert theirs == await receive_until_closed(path.format(2**63), stranger)


async def test_what_a_refused_socket_sends_is_ignored(chat, stranger, caplog):
    client = Client()
    await sync_to_async(client.force_login)(stranger)
    cookie = (b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode())
    socket = WebsocketCommunicator(application, f"/ws/chat/{chat.pk}/", [ORIGIN, cookie])
    await socket.connect()
    assert (await socket.receive_output())["code"] == 4404

    message = {"type": "message", "text": "Hello", "client_id": "a", "agent": ""}
    await socket.send_json_to(message)
    await socket.disconnect()

    assert not await Message.objects.aexists()
    assert not caplog.records


@pytest.mark.parametrize("path", SOCKETS)
async def test_a_socket_without_an_account_is_closed(path, chat, run):
    pk = chat.pk if "chat" in path else run.pk

    assert await receive_until_closed(path.format(pk)) == await receive_until_closed(
        path.format(MISSING)
    )
    assert (await receive_until_closed(path.format(pk)))[1] == 4404


@pytest.mark.parametrize(
    "origin",
    one_in(
        4,
        [
            None,
            b"null",
            b"",
            b"http://evil.example",
            b"http://testserver:8001",
            b"https://testserver",
            b"http://testserver.evil.example",
        ],
    ),
)
async def test_a_socket_from_another_origin_is_rejected(origin, chat, run):
    headers = [] if origin is None else [(b"origin", origin)]

    for path in SOCKETS:
        frames, _ = await receive_until_closed(path.format(chat.pk), chat.user, headers)
        assert frames == []


@pytest.mark.parametrize("path", ["/", "/ws/", "/ws/chat/x/", "/ws/chat/-1/", "/chat/1/"])
async def test_an_unknown_socket_path_is_rejected_quietly(path, person):
    frames, _ = await receive_until_closed(path, person)

    assert frames == []


async def test_the_run_page_socket_takes_no_messages(run):
    async with tab(run.user, f"/ws/runs/{run.pk}/") as page:
        await frames_until(page, "run-")
        await page.send_json_to({"type": "message", "text": "hi", "client_id": "b"})

        assert await page.receive_nothing()
    assert await Message.objects.acount() == 1


async def test_a_disabled_account_can_no_longer_send(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        chat.user.is_active = False
        await chat.user.asave()
        await page.send_json_to({"type": "message", "text": "hi", "client_id": "a"})
        await frames_until(page, "This chat no longer exists.")

    assert not await Message.objects.aexists()


async def test_a_signed_out_user_can_no_longer_send(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await Session.objects.all().adelete()
        await page.send_json_to({"type": "message", "text": "hi", "client_id": "a"})
        await frames_until(page, "This chat no longer exists.")

    assert not await Message.objects.aexists()


async def test_an_idle_page_shows_nothing_after_signing_out(chat, monkeypatch):
    monkeypatch.setattr(live, "RECHECK_SECONDS", 0)
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await Session.objects.all().adelete()
        await pubsub.publish(chat.topic, "message.added", message=1, run=1)

        assert await page.receive_output(10) == {
            "type": "websocket.close",
            "code": close_codes.NOT_FOUND,
        }


async def test_a_deleted_chat_takes_no_messages(chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await ChatSession.objects.filter(pk=chat.pk).adelete()
        await page.send_json_to({"type": "message", "text": "hi", "client_id": "a"})
        await frames_until(page, "This chat no longer exists.")


def test_refreshing_the_user_does_not_close_the_chat(chat):
    """Frames are handled while a thread makes sure who it is that sends them."""
    consumer = ChatConsumer()
    consumer.scope, consumer.session = {"cookies": {}}, chat

    assert not consumer.is_signed_in()
    assert consumer.session is chat


# Reviewers


async def test_a_reviewer_sees_other_users_runs(run, reviewer):
    client = await as_async_user(reviewer)

    assert "6 * 7" in (await client.get("/traces/")).text
    page = (await client.get(f"/traces/{run.pk}/")).text
    assert ">42</strong>" in page
    assert (await client.get(f"/api/runs/{run.pk}/events/")).status_code == 200
    async with tab(reviewer, f"/ws/runs/{run.pk}/") as page:
        await frames_until(page, ">42</strong>")


async def test_a_reviewer_can_neither_stop_nor_write(chat, reviewer):
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic=chat.topic, user=chat.user)
    client = await as_async_user(reviewer)

    answers = [await ask(client, route, chat.pk, text="hello") for route in OF_A_CHAT]
    frames, code = await receive_until_closed(f"/ws/chat/{chat.pk}/", reviewer)

    assert {answer.status_code for answer in answers} == {404}
    assert (len(frames), code) == (1, 4404)
    await run.arefresh_from_db()
    assert run.is_live
    assert chat.title not in (await client.get(f"/traces/{run.pk}/")).text
