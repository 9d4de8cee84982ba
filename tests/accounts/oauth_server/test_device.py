"""Devices without a browser, such as the command line."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.access import api_keys
from agents.accounts.oauth_server import apps
from agents.models import ApiKey, DeviceCode, OAuthApp
from tests.conftest import as_user

from .conftest import make_app, post

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db):
    """What the command line is told when it begins."""
    response = post(
        "/oauth/device_authorization", client_id=apps.CLI_CLIENT_ID, scope="ask read approve"
    )
    assert response.status_code == 200, response.content
    return response.json()


@pytest.fixture
def browser(person):
    return as_user(person)


def poll(device):
    """Ask for the tokens, as if the last time were long ago."""
    DeviceCode.objects.update(polled_at=None)
    return post(
        "/oauth/token",
        grant_type=apps.DEVICE_GRANT,
        device_code=device["device_code"],
        client_id=apps.CLI_CLIENT_ID,
    )


def test_the_command_line_gets_a_key_when_its_user_allows_it(device, browser, person):
    assert device["verification_uri"] == "http://testserver/oauth/device"
    assert poll(device).json()["error"] == "authorization_pending"

    page = browser.get(device["verification_uri_complete"])
    assert page.context["app"].name == apps.CLI_NAME
    assert page.context["user_code"] == device["user_code"]
    typed = device["user_code"].lower().replace("-", " ")
    allowed = browser.post("/oauth/device", {"user_code": typed, "decision": "allow"})
    assert allowed.context["is_allowed"]

    tokens = poll(device).json()
    key = api_keys.find(f"Bearer {tokens['access_token']}")
    assert key.user == person
    assert key.scopes == ["approve", "ask", "read"]
    assert tokens["refresh_token"]
    assert "error" in poll(device).json()
    assert ApiKey.objects.count() == 1


def test_codes_of_devices_are_only_saved_as_digests(device):
    saved = str(vars(DeviceCode.objects.get()))

    assert device["device_code"] not in saved
    assert device["user_code"] not in saved


def test_a_user_refuses_a_device(device, browser):
    browser.post("/oauth/device", {"user_code": device["user_code"], "decision": "deny"})

    assert poll(device).json()["error"] == "access_denied"
    again = browser.post(
        "/oauth/device", {"user_code": device["user_code"], "decision": "allow"}
    )
    assert again.status_code == 400
    assert poll(device).json()["error"] == "access_denied"


def test_a_device_that_asks_too_often_is_slowed_down(device):
    values = {
        "grant_type": apps.DEVICE_GRANT,
        "device_code": device["device_code"],
        "client_id": apps.CLI_CLIENT_ID,
    }

    assert post("/oauth/token", **values).json()["error"] == "authorization_pending"
    assert post("/oauth/token", **values).json()["error"] == "slow_down"


def test_an_expired_code_is_worth_nothing(device, browser):
    DeviceCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    page = browser.post(
        "/oauth/device", {"user_code": device["user_code"], "decision": "allow"}
    )

    assert page.status_code == 400
    assert poll(device).json()["error"] == "expired_token"


def test_codes_cannot_be_guessed(browser):
    answers = [browser.get("/oauth/device", {"user_code": f"BBBB-BBB{n}"}) for n in range(12)]

    assert answers[0].status_code == 400
    assert answers[-1].status_code == 429


def test_only_opening_the_link_allows_nothing(device, browser, person):
    browser.get(device["verification_uri_complete"])
    forger = Client(enforce_csrf_checks=True)
    forger.force_login(person)
    forged = forger.post(
        "/oauth/device", {"user_code": device["user_code"], "decision": "allow"}
    )

    assert forged.status_code == 403
    assert poll(device).json()["error"] == "authorization_pending"


def test_without_a_session_the_sign_in_page_comes_first(device):
    response = Client().get(device["verification_uri_complete"])

    assert response["Location"].startswith("/login/?next=/oauth/device%3Fuser_code")


def test_another_app_cannot_take_the_tokens(device, browser):
    make_app("app_other")
    browser.post("/oauth/device", {"user_code": device["user_code"], "decision": "allow"})

    response = post(
        "/oauth/token",
        grant_type=apps.DEVICE_GRANT,
        device_code=device["device_code"],
        client_id="app_other",
    )

    assert response.json()["error"] == "unauthorized_client"
    assert "access_token" in poll(device).json()


@pytest.mark.parametrize(
    "changed",
    [{"scope": "ask everything"}, {"client_id": "app_nobody"}, {"client_id": "app_web"}],
)
def test_a_device_is_refused(db, changed):
    make_app("app_web", grant_types=["authorization_code"])

    response = post(
        "/oauth/device_authorization",
        **{"client_id": apps.CLI_CLIENT_ID, "scope": "ask", **changed},
    )

    assert response.status_code in {400, 401}
    assert not DeviceCode.objects.exists()


def test_the_command_line_is_known_without_being_registered(configure):
    configure(app_registration=False)

    assert post("/oauth/device_authorization", client_id=apps.CLI_CLIENT_ID).status_code == 200
    assert OAuthApp.objects.get().source == OAuthApp.Source.BUILT_IN


def test_a_page_without_a_code_asks_for_one(browser):
    page = browser.get("/oauth/device")

    assert page.status_code == 200
    assert 'name="user_code"' in page.content.decode()
