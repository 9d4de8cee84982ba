"""Connected apps: on the page of their user, in the console, and in exports."""

import json
import time

import pytest
from django.test import Client
from django.utils import timezone

from agents.access import api_keys
from agents.accounts.oauth_server import apps
from agents.accounts.views.connected_apps import connected_apps
from agents.models import ApiKey, AuditEntry, OAuthApp, OAuthGrant
from chat.people_data import data_export
from tests.conftest import as_user

from .conftest import Flow, make_app

pytestmark = pytest.mark.django_db


def test_a_user_sees_what_is_connected(flow, person, stranger):
    flow.tokens()
    Flow(flow.browser, scope="ask approve").tokens()

    (row,) = connected_apps(person)
    assert row.app.name == "Notes"
    assert [str(label) for label in row.scope_labels] == [
        str(ApiKey.Scope(scope).label) for scope in ("ask", "approve", "read")
    ]
    page = flow.browser.get("/account/api-keys/")
    assert "Notes" in page.content.decode()
    assert connected_apps(stranger) == []


def test_disconnecting_ends_all_access_at_once(flow, app, stranger):
    tokens = [flow.tokens(), flow.tokens()]
    unused = flow.allow()

    assert as_user(stranger).post(f"/account/apps/{app.pk}/disconnect/").status_code == 404
    assert flow.browser.post(f"/account/apps/{app.pk}/disconnect/").status_code == 302

    for pair in tokens:
        assert api_keys.find(f"Bearer {pair['access_token']}") is None
        assert flow.refresh(pair["refresh_token"]).status_code == 400
    assert flow.exchange(unused).status_code == 400
    assert AuditEntry.objects.filter(action="app.revoked").count() == 1
    assert flow.browser.post(f"/account/apps/{app.pk}/disconnect/").status_code == 404


def test_open_streams_notice_within_a_second(flow, app):
    key = api_keys.find(f"Bearer {flow.tokens()['access_token']}")
    assert api_keys.is_still_usable(key)
    flow.browser.post(f"/account/apps/{app.pk}/disconnect/")
    time.sleep(api_keys.RECHECK_SECONDS)

    assert not api_keys.is_still_usable(key)


def test_an_app_that_only_waits_to_be_refreshed_is_still_connected(flow, person):
    flow.tokens()
    ApiKey.objects.update(expires_at=timezone.now())
    assert len(connected_apps(person)) == 1

    OAuthGrant.objects.update(expires_at=timezone.now())
    assert connected_apps(person) == []


def test_administrators_block_an_app_for_everybody(flow, app, admin_client, person_client):
    tokens = flow.tokens()
    block = {"action": "block_selected", "_selected_action": [app.pk]}

    assert person_client.post("/admin/agents/oauthapp/", block).status_code == 302
    assert api_keys.find(f"Bearer {tokens['access_token']}")
    page = admin_client.get("/admin/agents/oauthapp/")
    assert [row.users for row in page.context["cl"].result_list] == [1]
    admin_client.post("/admin/agents/oauthapp/", block)

    assert api_keys.find(f"Bearer {tokens['access_token']}") is None
    assert flow.open().status_code == 400
    assert admin_client.get(f"/admin/agents/oauthapp/{app.pk}/change/").status_code == 200
    admin_client.post("/admin/agents/oauthapp/", block | {"action": "unblock_selected"})
    assert flow.open().status_code == 200


def test_an_export_has_the_connected_apps(flow, person):
    flow.tokens()

    files = data_export.files(person)
    content = next(content for name, content in files if name == "connected-apps.json")
    (entry,) = json.loads("".join(content))

    assert entry["app_name"] == "Notes"
    assert entry["scopes"] == ["ask", "read"]


def test_deleting_an_account_deletes_its_grants(flow, person):
    flow.tokens()
    person.delete()

    assert not ApiKey.objects.exists()
    assert not OAuthGrant.objects.exists()
    assert OAuthApp.objects.exists()


def test_an_apps_key_has_the_rate_limit_of_any_key(flow, configure):
    configure(api_requests=1)
    token = flow.tokens()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}

    first = Client().get("/api/v1/nothing", headers=headers)
    second = Client().get("/api/v1/nothing", headers=headers)

    assert first.status_code == 404
    assert second.status_code == 429


def test_metadata_say_where_everything_is():
    metadata = Client().get("/.well-known/oauth-authorization-server")
    resources = [
        Client().get(f"/.well-known/oauth-protected-resource{path}").json()
        for path in ("", "/mcp")
    ]

    assert metadata["Access-Control-Allow-Origin"] == "*"
    values = metadata.json()
    assert values["code_challenge_methods_supported"] == ["S256"]
    assert values["authorization_response_iss_parameter_supported"]
    assert values["grant_types_supported"] == list(apps.GRANT_TYPES)
    for name, url in values.items():
        if name.endswith("_endpoint"):
            path = url.removeprefix("http://testserver")
            assert Client().options(path).status_code in {204, 302}, name
    assert [resource["resource"] for resource in resources] == [
        "http://testserver",
        "http://testserver/mcp",
    ]
    assert all(r["authorization_servers"] == [values["issuer"]] for r in resources)


@pytest.mark.parametrize(
    ("path", "metadata"), [("/api/v1/chats", ""), ("/v1/models", ""), ("/mcp", "/mcp")]
)
def test_a_refused_program_is_told_where_to_sign_in(path, metadata):
    challenge = Client().post(path)["WWW-Authenticate"]

    url = f"http://testserver/.well-known/oauth-protected-resource{metadata}"
    assert f'resource_metadata="{url}"' in challenge


def test_two_apps_of_one_name_are_two_rows(flow, person):
    make_app("app_second")
    flow.tokens()
    Flow(flow.browser, "app_second").tokens()

    assert len(connected_apps(person)) == 2
