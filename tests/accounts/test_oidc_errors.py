"""What users and the log are told when a sign-in with the provider fails."""

import html

import pytest
from django.test import Client
from django.utils import translation
from pydantic import SecretStr

from agents.accounts.openid import oidc, oidc_client, oidc_errors
from tests.accounts.provider import SECRET, is_in, sent_back, signed_in, use

pytestmark = pytest.mark.django_db


def told(answer):
    assert answer.status_code == 200
    return html.unescape(answer.text)


DENIALS = {
    "access_denied": "you canceled at Acme, or your account there has no access",
    "unauthorized_client": "rejected this server's client ID or secret",
    "invalid_scope": "rejected the requested scopes (openid profile email)",
    "redirect_uri_mismatch": "register http://testserver/login/oidc/back/ there",
    "temporarily_unavailable": "Acme isn't responding.",
    "login_required": "Acme didn't complete the sign-in.",
    "<script>": "Acme didn't complete the sign-in.",
}


@pytest.mark.parametrize("code", DENIALS)
def test_an_error_from_the_provider_is_explained_and_logged(client, provider, code, caplog):
    provider.denial = {"error": code, "error_description": "because\nof it"}

    answer = signed_in(client)

    assert DENIALS[code] in told(answer)
    assert f"{code}: because of it" in caplog.text
    assert not is_in(client)


def test_a_failed_sign_in_keeps_the_target_page(client, provider):
    provider.denial = {"error": "access_denied"}

    answer = signed_in(client, onward="/workflows/")

    assert "/login/oidc/?next=%2Fworkflows%2F" in answer.text


def test_a_wrong_secret_is_reported_but_never_shown(client, provider, settings, caplog):
    use(settings, oidc_client_secret=SecretStr("quokka-umbrella"))
    provider.refusal = "invalid_client"

    answer = signed_in(client)

    assert "rejected this server's client ID or secret" in told(answer)
    assert "ClientRejected" in caplog.text
    assert "quokka" not in caplog.text + answer.text


def test_an_address_without_a_provider_names_the_setting(client, provider, settings, caplog):
    use(settings, oidc_issuer=f"{provider.url}/keys-only")
    provider.more = {"issuer": provider.url}

    assert "Ask an administrator to check ASHIATO_OIDC_ISSUER." in told(
        client.get("/login/oidc/")
    )
    assert f"names the issuer {provider.url!r}, not {provider.url + '/keys-only'!r}" in (
        caplog.text
    )


def test_a_page_instead_of_a_discovery_document_names_the_setting(
    client, provider, monkeypatch, caplog
):
    monkeypatch.setattr(provider, "discovery", lambda: ["not one"])

    assert "couldn't be found at its configured URL" in told(client.get("/login/oidc/"))
    assert "There is no discovery document" in caplog.text


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (404, "couldn't be found at its configured URL"),
        (403, "couldn't be found at its configured URL"),
        (429, "Acme isn't responding."),
        (503, "Acme isn't responding."),
    ],
)
def test_a_busy_provider_is_not_a_wrong_address(client, provider, status, sentence, caplog):
    provider.discovery_status = status

    assert sentence in told(client.get("/login/oidc/"))
    assert f"answered with status {status}." in caplog.text


def test_a_correction_at_the_provider_counts_at_once(client, provider):
    provider.more = {"issuer": "https://elsewhere.example"}
    assert "reports a different issuer" in told(client.get("/login/oidc/"))
    provider.more = {}

    signed_in(client)

    assert is_in(client)


@pytest.mark.parametrize("place", ["http://id.example/token", "ftp://x", "/token"])
def test_an_endpoint_is_encrypted_if_the_issuer_is(provider, monkeypatch, place):
    client = oidc_client.Client(
        issuer="https://id.example", client_id="x", client_secret="y", redirect_uri="z"
    )
    there = {"issuer": client.issuer, "token_endpoint": place}
    monkeypatch.setattr(oidc_client, "_fetch_cached", lambda url: there)

    with pytest.raises(oidc_errors.ProviderMisconfigured, match="token_endpoint"):
        client.endpoint("token_endpoint")


def test_a_response_of_another_issuer_is_rejected(client, provider):
    back = sent_back(client)

    assert "be verified" in told(client.get(f"{back}&iss=https://evil.example"))
    assert not is_in(client)
    assert client.get(f"{sent_back(client)}&iss={provider.url}").status_code == 302


def test_another_nonce_is_rejected(client, provider):
    provider.change = lambda claims: {**claims, "nonce": "another"}

    assert "belongs to a different sign-in" in told(signed_in(client))


def test_an_expired_sign_in_is_explained(client, provider, monkeypatch):
    back = sent_back(client)
    monkeypatch.setattr(oidc, "LOGIN_SECONDS", -1)

    assert "This sign-in took too long" in told(client.get(back))


def test_a_state_is_consumed_by_a_failure_but_not_by_another_tab(client, provider):
    first = sent_back(client)
    second = sent_back(client)
    assert "started in a different browser" in told(client.get(first))

    assert client.get(second).status_code == 302
    assert not client.cookies[oidc.COOKIE_NAME].value


def test_going_back_after_a_sign_in_redirects_to_the_target(client, provider):
    back = sent_back(client)
    client.get(back)

    assert client.get(back).headers["Location"] == "/"


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({}, "Acme sent no email address"),
        ({"email": "a@example.org"}, "Acme hasn't verified your email address"),
        ({"email": "a@example.org", "email_verified": "true"}, "hasn't verified your email"),
    ],
)
def test_an_account_that_cannot_be_found_says_why(client, provider, settings, claims, sentence):
    use(settings, oidc_create=False)
    provider.person |= claims

    assert sentence in told(signed_in(client))
    assert not is_in(client)


def test_the_secret_is_sent_in_the_body_if_the_provider_requires_it(
    client, provider, monkeypatch
):
    provider.more = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    seen = []
    monkeypatch.setattr(provider, "tokens", lambda given, _: seen.append(given))

    signed_in(client)

    assert seen[0]["client_secret"] == SECRET


def test_every_error_has_its_own_message():
    values = {"service": "Acme", "redirect_uri": "https://x", "scopes": "openid"}
    with translation.override("en"):
        kinds = all_kinds(oidc_errors.ProtocolError)
        sentences = {str(kind.message) % values for kind in kinds}

    assert len(sentences) == len(kinds)


def all_kinds(kind):
    return [kind, *(each for sub in kind.__subclasses__() for each in all_kinds(sub))]


def test_the_log_line_of_a_refusal_is_short_and_without_secrets():
    error = oidc_errors.from_code("invalid_grant", "sk-proj-" + "a1B2" * 12 + " x" * 400)

    assert len(str(error)) < 260
    assert "a1B2a1B2" not in str(error)


def test_an_error_does_not_sign_in_a_new_browser(provider):
    assert "This sign-in took too long" in told(
        Client().get("/login/oidc/back/?error=access_denied&state=x")
    )
