"""Sign-out here and at the identity provider."""

import html
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from agents.accounts.authentication import factors, totp
from agents.accounts.models import Identity
from agents.accounts.openid import provider_logout
from tests.accounts.provider import CLIENT, is_in, signed_in, use

pytestmark = pytest.mark.django_db

BACK = "/login/oidc/signed-out/"


@pytest.fixture
def ending(provider):
    """A provider that can end its sessions."""
    provider.more = {"end_session_endpoint": f"{provider.url}/end?tenant=1"}
    return provider


def leave(client):
    """Sign out; return where the browser is led, and with which parameters."""
    page = html.unescape(client.post("/logout/").text)
    place = urlsplit(re.search(r'content="0; url=([^"]+)"', page)[1])
    return place, {name: values[0] for name, values in parse_qs(place.query).items()}


def sentence(client):
    return html.unescape(client.get("/login/").text)


def test_signing_out_redirects_to_the_providers_sign_out(client, ending):
    signed_in(client)

    place, sent = leave(client)

    assert not is_in(client)
    assert f"http://{place.netloc}{place.path}" == f"{ending.url}/end"
    assert (sent["tenant"], sent["client_id"], sent["ui_locales"]) == ("1", CLIENT, "en")
    assert sent["post_logout_redirect_uri"] == f"http://testserver{BACK}"
    assert sent["id_token_hint"].count(".") == 2
    assert len(sent["state"]) > 40


def test_returning_from_the_provider_is_confirmed_once(client, ending):
    signed_in(client)
    _, sent = leave(client)

    assert client.get(BACK, {"state": sent["state"]}).headers["Location"] == "/login/"

    assert "signed out here and at Acme." in sentence(client)
    assert "signed out here" not in sentence(client)
    client.get(BACK, {"state": sent["state"]})
    assert "signed out here" not in sentence(client)


@pytest.mark.parametrize("state", ["", "another", "é"])
def test_a_direct_link_to_the_confirmation_shows_nothing(client, ending, state):
    signed_in(client)
    leave(client)

    assert client.get(BACK, {"state": state}).headers["Location"] == "/login/"

    assert "signed out here" not in sentence(client)


def test_a_provider_without_a_sign_out_endpoint_is_named(client, provider):
    signed_in(client)

    assert client.post("/logout/").headers["Location"] == "/login/"

    assert "You may still be signed in at Acme." in sentence(client)
    assert not is_in(client)


def test_a_password_session_has_no_provider_sign_out(client, ending, ada, sign_in):
    sign_in()

    assert client.post("/logout/").headers["Location"] == "/login/"

    assert "Acme." not in sentence(client)


def test_a_session_of_a_former_provider_ends_only_locally(client, ending, settings):
    signed_in(client)
    use(settings, oidc_issuer="https://new.example")

    assert client.post("/logout/").headers["Location"] == "/login/"
    assert not is_in(client)


def test_the_id_token_is_encrypted_and_deleted_afterwards(client, ending):
    signed_in(client)
    saved = Session.objects.get().get_decoded()

    _, sent = leave(client)

    assert sent["id_token_hint"] not in str(saved)
    assert sent["id_token_hint"] not in repr(saved)
    assert not Session.objects.exists()


def test_changed_encryption_keys_omit_the_token_hint(client, ending, settings):
    signed_in(client)
    settings.ENCRYPTION_KEYS = ["quite another phrase"]

    assert "id_token_hint" not in leave(client)[1]


def test_a_token_that_is_too_long_for_a_url_is_left_out(client, ending):
    ending.person |= {"groups": ["x" * 60] * 100}
    signed_in(client)

    _, sent = leave(client)

    assert "id_token_hint" not in sent
    assert sent["client_id"] == CLIENT


def test_a_second_factor_keeps_the_provider_sign_out(client, ending, person):
    Identity.objects.create(user=person, issuer=ending.url, subject="42")
    secret = totp.new_secret()
    factors.add_authenticator(person, secret, 0)
    signed_in(client)
    client.post("/login/second/", {"code": totp.generate_code(secret, int(time.time()) // 30)})
    assert is_in(client)

    assert "id_token_hint" in leave(client)[1]


def test_another_users_interrupted_sign_in_leaves_no_token(client, ending, ada, sign_in):
    other = type(ada).objects.create_user("other")
    Identity.objects.create(user=other, issuer=ending.url, subject="42")
    factors.add_authenticator(other, totp.new_secret(), 0)
    signed_in(client)

    sign_in()

    assert is_in(client)
    assert provider_logout.SESSION_KEY not in client.session


def test_another_browser_stays_signed_in(client, ending):
    other = Client()
    signed_in(client)
    signed_in(other)

    leave(client)

    assert is_in(other)
