"""API keys: who gets in, with what rights, for how long."""

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.test import AsyncClient
from django.utils import timezone

from agents import runs
from agents.access import api_keys
from agents.db import database
from agents.engine.events import EventType
from agents.models import ApiKey, Run
from chat.api import calls
from chat.api.calls import Caller, Question

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
    assert response.headers["WWW-Authenticate"].startswith("Bearer ")
    error = response.json()
    assert (error["error"]["code"] if path.startswith("/v1") else error["code"]) == (
        "invalid_api_key"
    )


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
