"""API keys: who gets in, with what rights, for how long."""

from collections import OrderedDict
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.test import AsyncClient
from django.utils import timezone

from agents import runs
from agents.access import api_keys
from agents.accounts.models import Profile
from agents.db import database
from agents.engine.events import EventType
from agents.models import ApiKey, AuditEntry, Run
from agents.web.api_errors import is_api
from chat.api import calls
from chat.api.calls import Caller, Question
from chat.messages import dispatching
from chat.models import ChatSession

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def make_key(person):
    def make(*scopes, user=person, **columns):
        return api_keys.create(user, "CI", scopes, **columns)

    return make


def test_a_key_is_found_by_its_secret_alone(make_key):
    key, token = make_key("ask")

    assert token.startswith(key.prefix)
    assert token not in str(vars(key))
    assert api_keys.find(f"Bearer {token}") == key
    assert api_keys.find(f"bearer {token}") == key
    assert api_keys.find(f"Bearer {token[:-1]}") is None
    assert api_keys.find(f"Basic {token}") is None
    assert api_keys.find("") is None


@pytest.mark.parametrize("end", ["expired", "revoked", "account disabled"])
def test_an_ended_key_opens_nothing(make_key, person, end):
    key, token = make_key("ask")
    if end == "expired":
        ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif end == "revoked":
        api_keys.revoke(ApiKey.objects.all())
    else:
        type(person).objects.filter(pk=person.pk).update(is_active=False)

    assert api_keys.find(f"Bearer {token}") is None
    assert not api_keys.is_still_usable(key)


@pytest.mark.parametrize("path", ["/api/v1/chats", "/v1/models", "/a2a/x", "/ag-ui/x"])
async def test_without_a_key_a_program_gets_json(path, person_async_client):
    response = await AsyncClient().get(path)
    with_session = await person_async_client.get(path)

    assert response.status_code == with_session.status_code == 401
    assert "json" in response.headers["Content-Type"]
    assert response.headers["WWW-Authenticate"].startswith("Bearer resource_metadata=")
    error = response.json()
    assert (error["error"]["code"] if path.startswith("/v1") else error["code"]) == (
        "invalid_api_key"
    )


@pytest.mark.parametrize("path", ["/api/v1/chats", "/v1/models", "/a2a/x", "/ag-ui/x"])
async def test_an_app_learns_that_its_token_has_ended(path):
    headers = {"Authorization": "Bearer ash_ended"}

    response = await AsyncClient().get(path, headers=headers)

    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("path", "scope"),
    [("/api/v1/chats", "read"), ("/api/v1/approvals", "approve"), ("/v1/models", "ask")],
)
async def test_an_app_learns_which_scope_it_lacks(path, scope, make_key):
    scopes = {"ask", "read", "approve"} - {scope}
    _key, token = await database.run(make_key, *scopes)

    response = await AsyncClient().get(path, headers={"Authorization": f"Bearer {token}"})

    assert response.status_code == 403
    challenge = response.headers["WWW-Authenticate"]
    assert challenge.startswith(f'Bearer error="insufficient_scope", scope="{scope}", ')
    assert "resource_metadata=" in challenge


async def test_an_unknown_path_is_json_with_the_limits_of_the_key(make_key):
    _key, token = await database.run(make_key, "ask", requests_per_minute=2)
    client = AsyncClient()
    headers = {"Authorization": f"Bearer {token}"}

    unknown = await client.get("/api/v1/nothing", headers=headers)
    await client.get("/api/v1/nothing", headers=headers)
    refused = await client.get("/api/v1/nothing", headers=headers)

    assert unknown.status_code == 404
    assert unknown.json()["status"] == 404
    assert unknown.headers["RateLimit-Remaining"] == "1"
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0


@pytest.mark.usefixtures("run_executor", "agent")
async def test_a_question_of_a_program_is_answered_under_its_key(make_key):
    key, _token = await database.run(make_key, "ask", "read")
    caller = Caller(key)

    run = await calls.ask(caller, Question(text="What is 6 * 7?"))
    events = [event async for event in calls.follow(caller, run) if event is not None]

    assert events[-1].type is EventType.RUN_FINISHED
    assert "42" in events[-1].data["answer"]
    saved = await Run.objects.aget(pk=run.pk)
    assert saved.api_key_id == key.pk
    assert saved.user_id == key.user_id
    with pytest.raises(PermissionDenied):
        calls.waiting_approvals(caller)


@pytest.mark.usefixtures("run_executor", "agent")
async def test_a_stream_ends_when_its_key_is_revoked(make_key, monkeypatch):
    monkeypatch.setattr(api_keys, "RECHECK_SECONDS", 0.05)
    key, _token = await database.run(make_key, "ask")
    caller = Caller(key)
    run = await calls.ask(caller, Question(text="Wait for approval"))
    await runs.wait(run)
    await Run.objects.filter(pk=run.pk).aupdate(status=Run.Status.RUNNING)

    events = calls.follow(caller, run)
    async for event in events:
        if event is None:
            await ApiKey.objects.aupdate(revoked_at=timezone.now())
    await Run.objects.filter(pk=run.pk).aupdate(status=Run.Status.COMPLETED)


def test_keys_of_open_streams_are_read_together(
    make_key, monkeypatch, django_assert_num_queries
):
    keys = [make_key("ask")[0] for _ in range(5)]
    with ExitStack() as streams:
        for key in keys:
            streams.enter_context(api_keys.open_stream(key))
        monkeypatch.setattr(api_keys, "RECHECK_SECONDS", 60.0)
        monkeypatch.setattr(api_keys, "_checked", OrderedDict())
        api_keys.revoke(ApiKey.objects.filter(pk=keys[1].pk))

        with django_assert_num_queries(1):
            current_keys = [api_keys.reread(key) for key in keys]
            known = [api_keys.is_surely_usable(key) for key in keys]

    assert current_keys == [keys[0], None, *keys[2:]]
    assert known == [True, False, True, True, True]
    assert not api_keys.open_streams


def test_other_peoples_runs_need_the_scope_and_the_permission(
    make_key, person, administrator, agent
):
    own = Run.objects.create(user=administrator, agent=agent, query="mine", topic="api.1")
    others = Run.objects.create(user=person, agent=agent, query="theirs", topic="api.2")

    def visible(*scopes, user=administrator):
        key, _token = make_key(*scopes, user=user)
        return set(Caller(key).runs())

    assert visible("read") == {own}
    assert visible("read", "read_all") == {own, others}
    assert visible("read", "read_all", user=person) == {others}
    with pytest.raises(PermissionDenied):
        visible("ask")


ODD_PATHS = [
    "/v1",
    "/api/v1",
    "/v1//models",
    "/v1/../admin/",
    "/v1/%2e%2e/admin/",
    "/%76%31/models",
    "/api/v1/../../account/",
    "/api/v1/;/chats",
]
TRICKS = {
    "another method": {"X-Http-Method-Override": "GET"},
    "another path": {"X-Original-Url": "/account/", "X-Rewrite-Url": "/account/"},
    "a proxy's user": {"Remote-User": "root", "X-Forwarded-User": "root"},
    "basic": {"Authorization": "Basic cm9vdDpyb290"},
    "an empty key": {"Authorization": "Bearer "},
    "a digest": {"Authorization": f"Bearer {'0' * 64}"},
    "an odd key": {"Authorization": "Bearer \u00e4\u0000' OR 1=1 --"},
    "a long key": {"Authorization": f"Bearer {'a' * 100_000}"},
    "another header": {"X-Api-Key": "ash_x", "Api-Key": "ash_x"},
}


@pytest.mark.parametrize("path", ODD_PATHS)
async def test_no_odd_path_leads_in_without_a_key(path, admin_async_client):
    for client in (AsyncClient(), admin_async_client):
        answer = await client.get(path)
        posted = await client.post(path, {"name": "x"})

        assert answer.status_code == posted.status_code == 401
        assert "json" in answer.headers["Content-Type"]


async def test_what_only_looks_like_the_api_is_no_page_either(admin_async_client):
    for path in ("/V1/models", "/v1x/models", "/api/v2/chats"):
        assert (await admin_async_client.get(path)).status_code == 404, path


def test_paths_of_programs_are_recognized_as_they_are_routed():
    assert all(map(is_api, ("/v1", "/v1/", "/v1/x", "/api/v1", "/a2a/x/y", "/v1/../admin/")))
    assert not any(map(is_api, ("", "/", "//v1/x", "/V1/x", "/v1x", "/api/runs/1/events/")))


@pytest.mark.parametrize("trick", TRICKS)
async def test_no_header_replaces_a_key(trick, admin_async_client):
    answer = await admin_async_client.get("/v1/models", headers=TRICKS[trick])

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"


async def test_a_key_with_two_values_is_none(make_key):
    _key, token = await database.run(make_key, "ask")

    for value in (f"Bearer {token}, Bearer {token}", f"Bearer {token} x", f"{token}"):
        answer = await AsyncClient().get("/v1/models", headers={"Authorization": value})
        assert answer.status_code == 401, value


async def test_cookies_decide_nothing_where_programs_call(
    make_key, admin_async_client, settings
):
    """Neither a session without a second factor nor a language or a time zone."""
    key, token = await database.run(make_key, "ask")
    client = admin_async_client
    client.cookies["ashiato_zone"] = "Asia/Tokyo"
    client.cookies["django_language"] = "ja"
    settings.REQUIRE_MFA = "all"
    session = settings.MIDDLEWARE.index(
        "django.contrib.auth.middleware.AuthenticationMiddleware"
    )
    mfa = "agents.web.middleware.RequireMfaMiddleware"
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE[: session + 1],
        mfa,
        *settings.MIDDLEWARE[session + 1 :],
    ]
    answer = await client.get("/v1/models", headers={"Authorization": f"Bearer {token}"})

    assert answer.status_code == 200
    assert answer.headers["Content-Language"] == "en"
    assert not answer.cookies
    assert not await Profile.objects.filter(user=key.user).aexists()


async def test_a_program_needs_no_csrf_token_and_a_page_still_does(make_key, person):
    _key, token = await database.run(make_key, "ask")
    browser = AsyncClient(enforce_csrf_checks=True)
    headers = {"Authorization": f"Bearer {token}"}

    accepted = await browser.post("/v1/chat/completions", headers=headers)
    assert accepted.status_code in {400, 422}
    await browser.aforce_login(person)
    refused = await browser.post("/account/api-keys/1/revoke/", headers=headers)
    assert refused.status_code == 403


async def test_a_key_opens_no_page(make_key):
    _key, token = await database.run(make_key, "ask", "read")
    headers = {"Authorization": f"Bearer {token}"}

    for path in ("/", "/account/", "/traces/", "/api/runs/1/events/"):
        answer = await AsyncClient().get(path, headers=headers)
        assert answer.status_code == 302, path
        assert answer.headers["Location"].startswith("/login/"), path


async def test_a_failing_note_of_its_use_rejects_no_request(make_key, monkeypatch):
    _key, token = await database.run(make_key, "ask")

    def fail(*arguments, **options):
        raise OperationalError("disk full")

    monkeypatch.setattr("django.db.models.query.QuerySet.update", fail)
    answer = await AsyncClient().get(
        "/api/v1/nothing", headers={"Authorization": f"Bearer {token}"}
    )

    assert answer.status_code == 404


@pytest.mark.usefixtures("run_executor", "agent")
async def test_what_a_program_looks_at_is_audited_with_its_key(make_key, person, administrator):
    run = await database.run(
        lambda: runs.prepare(query="What is 6 * 7?", topic="t", user=person)
    )
    runs.launch(run)
    await runs.wait(run)
    key, _token = await database.run(make_key, "read", "read_all", user=administrator)

    async for _event in calls.follow(Caller(key), run):
        pass

    entry = await AuditEntry.objects.aget(action="run.viewed")
    assert entry.detail["api_key"] == key.beginning


def test_a_stream_of_another_users_run_ends_when_the_permission_does(
    make_key, person, administrator, agent, monkeypatch
):
    monkeypatch.setattr(api_keys, "RECHECK_SECONDS", 0.0)
    run = Run.objects.create(user=person, agent=agent, query="theirs", topic="api.2")
    key, _token = make_key("read", "read_all", user=administrator)

    assert run in api_keys.visible_runs(api_keys.reread(key))
    type(administrator).objects.update(is_superuser=False, is_staff=False)
    assert run not in api_keys.visible_runs(api_keys.reread(key))


@pytest.mark.usefixtures("run_executor")
async def test_what_a_revoked_key_has_queued_is_never_asked(make_key, person, agent):
    chat = await ChatSession.objects.acreate(user=person, title="Sums", is_shared=True)
    live = await Run.objects.acreate(
        user=person, agent=agent, query="x", topic=chat.topic, status="running"
    )
    key, _token = await database.run(make_key, "ask")
    queued = await calls.send(Caller(key), chat, "What is 6 * 7?")
    await database.run(api_keys.revoke, ApiKey.objects.all())
    await Run.objects.filter(pk=live.pk).aupdate(status="completed")

    await dispatching.answer_next(chat)

    assert queued.is_queued
    assert await Run.objects.acount() == 1
    assert not await chat.messages.aexists()


async def test_a_message_that_a_program_queues_is_answered_under_its_key(
    make_key, person, agent
):
    chat = await ChatSession.objects.acreate(user=person, title="Sums", is_shared=True)
    live = await Run.objects.acreate(
        user=person, agent=agent, query="x", topic=chat.topic, status="running"
    )
    key, _token = await database.run(make_key, "ask")
    queued = await calls.send(Caller(key), chat, "What is 6 * 7?")
    assert queued.is_queued
    await Run.objects.filter(pk=live.pk).aupdate(status="completed")

    await dispatching.answer_next(chat)

    run = await Run.objects.exclude(pk=live.pk).aget()
    assert run.api_key_id == key.pk
    await runs.wait(run)


async def test_a_key_follows_a_limited_number_of_runs(make_key, monkeypatch):
    monkeypatch.setattr(calls, "MAX_STREAMS", 1)
    monkeypatch.setattr(api_keys, "RECHECK_SECONDS", 0.05)
    key, token = await database.run(make_key, "ask", "read")
    run = await Run.objects.acreate(user=key.user, query="6 * 7", topic="api.1")
    path = f"/api/v1/runs/{run.pk}/events"
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    stream = calls.follow(Caller(key), run)
    assert await anext(stream) is None  # nothing happens in the run

    refused = await AsyncClient().get(path, headers=headers)
    await stream.aclose()
    again = calls.follow(Caller(key), run)

    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_streams"
    assert await anext(again) is None
    await again.aclose()
