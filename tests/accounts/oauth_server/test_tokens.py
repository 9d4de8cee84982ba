"""Codes, refresh tokens and their theft."""

import base64
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.access import api_keys
from agents.accounts.oauth_server import grants
from agents.models import (
    ApiKey,
    AuditEntry,
    AuthorizationCode,
    DeviceCode,
    OAuthApp,
    OAuthGrant,
)
from tests.conftest import as_user

from .conftest import SECRET, Flow, make_app, post

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "changed",
    [
        {"code_verifier": None},
        {"code_verifier": "x" * 43},
        {"code_verifier": "short"},
        {"redirect_uri": "https://notes.example/other"},
        {"redirect_uri": None},
        {"code": "made-up"},
        {"code": None},
        {"client_id": "app_other"},
        {"client_id": None},
        {"resource": "https://other.example/"},
        {"grant_type": "password"},
        {"grant_type": None},
        {"client_id": "\0"},
        {"code": "\u3042"},
    ],
)
def test_a_code_is_only_good_with_all_that_it_is_bound_to(flow, changed):
    make_app("app_other")
    code = flow.allow()

    response = flow.exchange(changed.pop("code", code) or "", **changed)

    assert response.status_code in {400, 401}, response.content
    assert "error" in response.json()
    assert not ApiKey.objects.exists()


@pytest.mark.both_databases
def test_a_code_works_once_and_the_second_time_ends_all(flow):
    code = flow.allow()
    tokens = flow.exchange(code).json()

    assert flow.exchange(code).json()["error"] == "invalid_grant"
    assert api_keys.find(f"Bearer {tokens['access_token']}") is None
    assert flow.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert AuditEntry.objects.filter(action="app.token_reused").count() == 1


def test_a_code_expires_after_a_minute(flow):
    code = flow.allow()
    AuthorizationCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert flow.exchange(code).json()["error"] == "invalid_grant"


def test_refreshing_replaces_both_tokens(flow):
    first = flow.tokens()
    key = ApiKey.objects.get()

    second = flow.refresh(first["refresh_token"]).json()

    assert {second["access_token"], second["refresh_token"]}.isdisjoint(first.values())
    assert api_keys.find(f"Bearer {first['access_token']}") is None
    assert api_keys.find(f"Bearer {second['access_token']}") == key
    assert flow.refresh(second["refresh_token"]).status_code == 200


@pytest.mark.both_databases
def test_an_old_refresh_token_ends_the_whole_grant(flow):
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()

    stolen = flow.refresh(first["refresh_token"])

    assert stolen.json()["error"] == "invalid_grant"
    assert flow.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert api_keys.find(f"Bearer {second['access_token']}") is None
    assert AuditEntry.objects.filter(action="app.token_reused").count() == 1


@pytest.mark.both_databases
def test_of_two_refreshes_at_the_same_moment_the_second_ends_the_grant(flow):
    token = flow.tokens()["refresh_token"]
    grant = grants.find_grant(token)
    flow.refresh(token)

    with pytest.raises(grants.TokenReused):
        grants.refresh(grant, "ash_x", ["ask"], token.partition(".")[0])
    assert ApiKey.objects.get().revoked_at is not None


def test_a_guessed_refresh_token_ends_nothing(flow):
    token = flow.tokens()["refresh_token"]
    for guess in ("", ".", "ashr_x.y", token.replace("ashr_", "ashr_x"), token[6:]):
        assert flow.refresh(guess).status_code == 400

    assert flow.refresh(token).status_code == 200


def test_another_app_cannot_use_a_refresh_token(flow):
    make_app("app_other")
    token = flow.tokens()["refresh_token"]

    response = post(
        "/oauth/token", grant_type="refresh_token", refresh_token=token, client_id="app_other"
    )

    assert response.json()["error"] == "invalid_grant"
    assert flow.refresh(token).status_code == 200


def test_scopes_can_be_left_out_for_a_while_but_never_added(flow):
    token = flow.tokens()["refresh_token"]

    assert flow.refresh(token, scope="ask read configure").json()["error"] == "invalid_scope"
    fewer = flow.refresh(token, scope="ask").json()
    assert fewer["scope"] == "ask"
    assert ApiKey.objects.get().scopes == ["ask"]
    assert flow.refresh(fewer["refresh_token"]).json()["scope"] == "ask read"


def test_a_refresh_token_expires_if_it_is_not_used(flow):
    token = flow.tokens()["refresh_token"]
    OAuthGrant.objects.update(expires_at=timezone.now())

    assert flow.refresh(token).json()["error"] == "invalid_grant"


def test_without_the_grant_type_there_is_no_refresh_token(person):
    make_app("app_short", grant_types=["authorization_code"])

    assert "refresh_token" not in Flow(as_user(person), "app_short").tokens()


def test_an_app_with_a_secret_needs_it(person):
    make_app("app_server", SECRET)
    flow = Flow(as_user(person), "app_server")
    basic = base64.b64encode(f"app_server:{SECRET}".encode()).decode()
    wrong = base64.b64encode(b"app_server:guess").decode()

    assert flow.exchange(flow.allow()).json()["error"] == "invalid_client"
    assert flow.exchange(flow.allow(), client_secret=SECRET).status_code == 401
    for header in (wrong, "%%%", base64.b64encode(b"\xff\xfe:x").decode(), "AAAA"):
        refused = flow.exchange(
            flow.allow(), client_id=None, headers={"Authorization": f"Basic {header}"}
        )
        assert refused.status_code == 401
        assert refused["WWW-Authenticate"].startswith("Basic ")
    headers = {"Authorization": f"Basic {basic}"}
    assert flow.exchange(flow.allow(), client_id=None, headers=headers).status_code == 200


def test_parameters_belong_in_the_body(flow):
    code = flow.allow()
    query = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": flow.redirect_uri,
        "client_id": flow.client_id,
        "code_verifier": flow.verifier,
    }

    in_query = Client().post(
        "/oauth/token",
        "",
        content_type="application/x-www-form-urlencoded",
        query_params=query,
    )
    as_json = Client().post("/oauth/token", query, content_type="application/json")

    many = post("/oauth/token", **{f"field{number}": "1" for number in range(1_100)})

    assert many.json()["error"] == "invalid_request"
    assert in_query.json()["error"] == as_json.json()["error"] == "invalid_request"
    assert Client().get("/oauth/token", query).status_code == 405


@pytest.mark.parametrize("name", ["access_token", "refresh_token"])
def test_an_app_revokes_its_own_token_and_all_access_ends(flow, name):
    make_app("app_other")
    tokens = flow.tokens()
    key = api_keys.find(f"Bearer {tokens['access_token']}")

    assert post("/oauth/revoke", token=tokens[name], client_id="app_other").status_code == 400
    assert post("/oauth/revoke", token="unknown", client_id="app_notes").status_code == 200
    assert post("/oauth/revoke", token=tokens[name]).status_code in {400, 401}
    assert api_keys.find(f"Bearer {tokens['access_token']}") == key
    hint = {"token_type_hint": "something"}
    ended = post("/oauth/revoke", token=tokens[name], client_id="app_notes", **hint)
    assert ended.status_code == 200

    assert api_keys.find(f"Bearer {tokens['access_token']}") is None
    assert not ApiKey.objects.usable().filter(pk=key.pk).exists()
    assert flow.refresh(tokens["refresh_token"]).status_code == 400


def test_browsers_of_other_sites_can_use_the_endpoints_without_cookies(flow):
    for path in ("/oauth/token", "/oauth/register", "/oauth/revoke"):
        preflight = Client().options(path, headers={"Origin": "https://inspector.example"})
        assert preflight.status_code == 204
        assert preflight["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in preflight
    assert flow.exchange(flow.allow())["Access-Control-Allow-Origin"] == "*"
    assert flow.exchange("wrong")["Access-Control-Allow-Origin"] == "*"


@pytest.mark.both_databases
def test_what_has_ended_is_pruned(flow, person):
    flow.tokens()
    DeviceCode.objects.create(
        app=OAuthApp.objects.get(),
        digest="d",
        user_code_digest="u",
        expires_at=timezone.now() - timedelta(seconds=1),
    )
    make_app("app_unused")
    make_app("app_blocked")
    OAuthApp.objects.filter(client_id="app_blocked").update(blocked_at=timezone.now())
    long_ago = timezone.now() - timedelta(days=100)
    OAuthApp.objects.update(created_at=long_ago)

    grants.prune()
    assert {app.client_id for app in OAuthApp.objects.all()} == {"app_notes", "app_blocked"}
    assert not DeviceCode.objects.exists()
    assert OAuthGrant.objects.exists()

    OAuthGrant.objects.update(expires_at=long_ago)
    ApiKey.objects.update(expires_at=long_ago)
    AuthorizationCode.objects.update(expires_at=long_ago)
    personal, _token = api_keys.create(person, "CI", ["ask"], expires_at=long_ago)
    grants.prune()
    assert list(ApiKey.objects.all()) == [personal]
    assert not OAuthGrant.objects.exists()
    assert [app.client_id for app in OAuthApp.objects.all()] == ["app_blocked"]
