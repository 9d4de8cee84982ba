"""Every route as every role, with existing and missing rows."""

from itertools import chain
from typing import get_args

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.apps import apps
from django.contrib import admin
from django.urls import get_resolver
from django.utils import timezone

from agents import runs
from agents.insight.problems.models import Problem
from agents.models import (
    Agent,
    AuditEntry,
    AuditHead,
    AuditPerson,
    McpSignInAttempt,
    Run,
    Workflow,
)
from chat.embedding.frames import EmbedFrame
from chat.embedding.socket import EmbedConsumer
from chat.live.consumers import ChatConsumer
from chat.live.incoming_frames import Frame
from chat.sessions.rights import READ_ONLY_MESSAGE
from project.asgi import application
from tests import tables
from tests.access.routes import ACCOUNTS, ALL_REVIEWERS, MEMBERS, READERS, ROUTES, WRITERS
from tests.access.world import MISSING, ROLES, World, create_world
from tests.conftest import ORIGIN, frames_until
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

# What a page may say over its socket; the text that only writers are not answered with.
FRAMES = {
    "message": {"text": "hello", "client_id": "m"},
    "stop": {"run": MISSING},
    "send_now": {"message": MISSING},
    "withdraw": {"message": MISSING},
    "edit": {"message": MISSING, "text": "hello", "client_id": "e"},
    "correct": {"message": MISSING, "text": "hello"},
    "regenerate": {"message": MISSING, "client_id": "r"},
    "delete_message": {"message": MISSING, "scope": "below"},
}
# What a user can do with read access, because it only changes what they see.
READER_FRAMES = {"show_branch": {"message": MISSING}}
VOLATILE = {"Set-Cookie", "Content-Length", "Vary"}
IN, NONE, REFUSED, LOGIN = "let in", "nothing there", "refused", "to the login page"


def parts_of(*first: str):
    """Let `make test` run these roles, and `make test-all` the others as well."""
    others = [role for role in ROLES if role not in first]
    return pytest.mark.parametrize("roles", one_in(2, [[*first], others]), ids=" ".join)


@pytest.fixture
def fresh(agent, django_user_model):
    def make(*roles: str) -> World:
        Run.objects.all().delete()
        Workflow.objects.all().delete()
        django_user_model.objects.all().delete()
        return create_world(agent, django_user_model.objects, roles or ROLES)

    return sync_to_async(make)


async def request_route(world: World, role: str, route: str, *, missing: bool = False):
    client, address = world.clients[role], world.address(route, missing=missing)
    return await (client.post if ROUTES[route].method == "POST" else client.get)(address)


def outcome(answer) -> str:
    if answer.status_code == 302 and answer.headers["Location"].startswith("/login/?next="):
        return LOGIN
    assert answer.status_code < 500
    return {404: NONE, 403: REFUSED}.get(answer.status_code, IN)


def expected_status(role: str, route: str) -> str:
    access = ROUTES[route]
    if role in access.allowed:
        return IN
    if role in access.forbidden:
        return REFUSED
    return LOGIN if role in access.redirected else NONE


def rows() -> dict[str, int]:
    """Return the row counts of everything but the audit log and what is computed from runs.

    An attempt to sign in to a server is like a session: it is only of use to who comes back.
    """
    looks = {AuditEntry, AuditHead, AuditPerson, McpSignInAttempt}
    other = {"sessions", "dashboard"}
    kept = [m for m in apps.get_models() if m._meta.app_label not in other and m not in looks]
    return {model._meta.label: model._default_manager.count() for model in kept}


def test_every_route_is_in_the_access_matrix():
    outer = [p for p in get_resolver().url_patterns if str(p.pattern) != "admin/"]
    routes = [str(p.pattern) for q in outer for p in getattr(q, "url_patterns", [q])]

    assert sorted(routes) == sorted(ROUTES)


@parts_of("nobody", "stranger", "reader")
async def test_other_users_are_rejected(roles, fresh):
    """They can't see whether an object exists, and can't change anything."""
    world = await fresh()
    before = await sync_to_async(rows)()
    for route, access in ROUTES.items():
        for role in [role for role in roles if role not in access.allowed]:
            theirs = await request_route(world, role, route)
            assert outcome(theirs) == expected_status(role, route), (route, role)
            if outcome(theirs) == NONE:
                missing = await request_route(world, role, route, missing=True)
                assert alike(theirs, missing), (route, role)
    assert await sync_to_async(rows)() == before


@parts_of("reviewer")
async def test_allowed_users_can_read(roles, fresh):
    world = await fresh()
    for route in [route for route, access in ROUTES.items() if access.method == "GET"]:
        for role in [role for role in roles if role in ROUTES[route].allowed]:
            answer = await request_route(world, role, route)
            assert outcome(answer) == IN, (route, role)


@parts_of("owner", "scoped")
async def test_allowed_users_can_write(roles, fresh):
    """Each role starts from an unchanged world."""
    world = await fresh()
    unchanged, kept_out = await sync_to_async(tables.save_content)(), []
    for route in [route for route, access in ROUTES.items() if access.method == "POST"]:
        for role in [role for role in roles if role in ROUTES[route].allowed]:
            if outcome(await request_route(world, role, route)) != IN:
                kept_out.append((route, role))
            await runs.shut_down()  # what it started belongs to the changed world
            await sync_to_async(tables.restore_content)(unchanged)
    unchanged.close()

    assert kept_out == []


def alike(one, other) -> bool:
    """Whether the responses don't reveal that something exists."""
    headers = [
        {name: value for name, value in answer.headers.items() if name not in VOLATILE}
        for answer in (one, other)
    ]
    return (one.status_code, one.content, headers[0]) == (
        other.status_code,
        other.content,
        headers[1],
    )


@pytest.mark.parametrize("role", one_in(2, ["owner", "root"]))
async def test_get_requests_change_nothing(role, fresh):
    world = await fresh()
    before = await sync_to_async(rows)()
    for route, access in ROUTES.items():
        if access.method == "GET" and not route.startswith(("shared/", "public/")):
            await request_route(world, role, route)

    assert await sync_to_async(rows)() == before


# Sockets


async def open_socket(world: World, role: str, path: str):
    cookie = world.clients[role].cookies.get("sessionid")
    cookies = [(b"cookie", f"sessionid={cookie.value}".encode())] if cookie else []
    socket = WebsocketCommunicator(application, path, [ORIGIN, *cookies])
    await socket.connect()
    return socket


async def last_frame(socket) -> dict:
    return await socket.receive_output(10)


@pytest.mark.parametrize(
    ("path", "allowed"), [("chat", MEMBERS), ("runs", READERS), ("library", MEMBERS)]
)
async def test_only_allowed_sockets_stay_open(path, allowed, fresh):
    world = await fresh()
    rows = {"chat": world.chat.pk, "runs": world.run.pk}
    pk = rows.get(path) or world.ids["library/<int:pk>"]
    for role in ROLES:
        socket = await open_socket(world, role, f"/ws/{path}/{pk}/")
        frame = await last_frame(socket)
        await socket.disconnect()
        if role in allowed:
            assert frame["type"] == "websocket.send", role
            continue
        nowhere = await open_socket(world, role, f"/ws/{path}/{MISSING}/")
        assert frame == await last_frame(nowhere), role
        assert frame["code"] == 4404, role
        await nowhere.disconnect()


def test_every_socket_frame_is_in_the_access_matrix():
    types = [get_args(model.model_fields["type"].annotation) for model in get_args(Frame)]

    assert sorted(ChatConsumer.frame_handlers) == sorted(FRAMES | READER_FRAMES)
    assert sorted(ChatConsumer.frame_handlers) == sorted(chain(*types))


def test_visitors_of_other_sites_have_these_frames_only():
    types = [get_args(model.model_fields["type"].annotation) for model in get_args(EmbedFrame)]

    assert sorted(EmbedConsumer.frame_handlers) == sorted(chain(*types))
    assert sorted(chain(*types)) == ["message", "rate", "regenerate", "stop"]


@pytest.mark.parametrize("kind", one_in(2, FRAMES))
async def test_readers_cannot_change_anything_over_the_socket(kind, fresh):
    world = await fresh()
    for role in MEMBERS - WRITERS:
        socket = await open_socket(world, role, f"/ws/chat/{world.chat.pk}/")
        await frames_until(socket, "composer-state")
        before = await sync_to_async(rows)()
        await socket.send_json_to({"type": kind, **FRAMES[kind]})
        await frames_until(socket, str(READ_ONLY_MESSAGE))
        assert await sync_to_async(rows)() == before
        await socket.disconnect()


# The console


CONSOLE = sorted(admin.site._registry, key=lambda model: model._meta.label)
OUTSIDERS = sorted(ACCOUNTS - {"staff", "root"})
OWN_PAGES = {
    "agents.DatabaseConnection": ["try/", "query/", "1/try/", "1/query/", "1/test/"],
    "agents.McpServer": ["import/"],
    "agents.ModelConnection": ["1/refresh/", "1/test/"],
    "problems.Problem": ["1/decide/"],
    "suggestions.Suggestion": ["1/decide/"],
    "alerts.AlertChannel": ["1/test/", "1/rotate/", "1/replay/"],
    "agents.Trigger": ["1/rotate/"],
    "agents.Embed": ["1/rotate/"],
    "alerts.SummarySchedule": ["1/preview/", "1/send/"],
    "agents.ToolRegistration": ["openapi/", "try/", "1/try/"],
}


def pages(model) -> list[str]:
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    return [
        base,
        f"{base}add/",
        *(f"{base}1/{name}/" for name in ("change", "delete", "history")),
        *(f"{base}{name}" for name in OWN_PAGES.get(model._meta.label, ())),
    ]


REVIEWER_PAGES = {
    *("/admin/problems/problem/", "/admin/problems/problem/1/change/"),
    *("/admin/review/example/", "/admin/review/example/1/change/"),
    *("/admin/review/exampleset/", "/admin/experiments/experiment/"),
    "/admin/experiments/experiment/1/change/",
}
RECENTLY_DELETED = [f"/admin/recently-deleted/{name}" for name in ("", "restore/", "erase/")]
CONSOLE_PAGES = [*RECENTLY_DELETED, *(page for model in CONSOLE for page in pages(model))]
half_of_the_pages = pytest.mark.parametrize(
    "part", one_in(2, [slice(0, None, 2), slice(1, None, 2)]), ids=["half", "other half"]
)


@pytest.mark.parametrize(
    "role",
    [
        pytest.param(role, marks=() if role == "reviewer" else pytest.mark.thorough)
        for role in ("nobody", *OUTSIDERS)
    ],
)
@half_of_the_pages
async def test_users_and_reviewers_are_redirected_from_the_console_to_sign_in(
    role, part, fresh
):
    world = await fresh(role)
    for page in CONSOLE_PAGES[part]:
        if role in ALL_REVIEWERS and page in REVIEWER_PAGES:
            continue
        for answer in [await call(world, role, page) for call in (get_page, post_page)]:
            assert answer.status_code == 302, page
            assert "/login/" in answer.headers["Location"], page


async def test_reviewers_read_the_problems_of_their_agents_and_change_nothing(fresh):
    world = await fresh("reviewer", "scoped")
    agent = await Agent.objects.afirst()
    problem = await Problem.objects.acreate(
        agent=agent,
        fingerprint="f",
        algorithm=1,
        kind="tool_error",
        first_seen=timezone.now(),
        last_seen=timezone.now(),
    )
    page = f"/admin/problems/problem/{problem.pk}/change/"
    before = await sync_to_async(rows)()

    assert (await get_page(world, "reviewer", page)).status_code == 200
    assert (await get_page(world, "scoped", page)).status_code == 404
    for role in ("reviewer", "scoped"):
        listed = await get_page(world, role, "/admin/problems/problem/")
        assert len(listed.context["cl"].result_list) == (role == "reviewer")
        answer = await world.clients[role].post(
            "/admin/problems/problem/",
            {"action": "resolve", "_selected_action": [problem.pk]},
        )
        assert answer.status_code < 400
        decided = await world.clients[role].post(
            f"/admin/problems/problem/{problem.pk}/decide/", {"action": "resolve"}
        )
        assert "/login/" in decided.headers["Location"]
    await problem.arefresh_from_db()
    assert problem.status == Problem.Status.OPEN
    assert await sync_to_async(rows)() == before


@half_of_the_pages
async def test_the_console_needs_a_console_permission(part, fresh):
    world = await fresh("staff", "root")
    for page in CONSOLE_PAGES[part]:
        for answer in [await call(world, "staff", page) for call in (get_page, post_page)]:
            assert answer.status_code == 403, page
    for model in CONSOLE[part]:
        assert (await get_page(world, "root", pages(model)[0])).status_code == 200, model


async def get_page(world: World, role: str, page: str):
    return await world.clients[role].get(page)


async def post_page(world: World, role: str, page: str):
    return await world.clients[role].post(page)
