"""Administrators learn about a wrong single sign-on before users do."""

import pytest
from django.core.management import CommandError, call_command
from pydantic import SecretStr

from agents.accounts.admin import check_single_sign_on
from agents.accounts.openid import oidc, oidc_errors, provider_check
from tests.accounts.provider import use

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _unchecked():
    provider_check._check_cached.cache_clear()


@pytest.fixture
def client(provider):
    return oidc.configured_client("https://chat.example/login/oidc/back/")


def problem(client):
    with pytest.raises(oidc_errors.ProtocolError) as raised:
        provider_check.check(client)
    return raised.value


def test_without_a_provider_there_is_nothing_to_check(settings):
    use(settings, oidc_issuer="")

    assert list(check_single_sign_on()) == []
    with pytest.raises(CommandError, match="Set ASHIATO_OIDC_ISSUER first"):
        call_command("check_oidc")


def test_a_provider_that_accepts_the_client_is_ok(provider, capsys):
    (line,) = check_single_sign_on()
    call_command("check_oidc", origin="https://chat.example/")

    assert (line.status, line.is_good) == ("Acme accepts this server.", True)
    told = capsys.readouterr().out
    assert "https://chat.example/login/oidc/back/\n" in told
    assert "https://chat.example/login/oidc/signed-out/\n" in told


def test_only_a_good_result_is_cached(provider):
    provider.accepts_redirect = False
    assert not next(check_single_sign_on()).is_good
    provider.accepts_redirect = True
    assert next(check_single_sign_on()).is_good
    provider.accepts_redirect = False

    assert next(check_single_sign_on()).is_good


def test_a_wrong_secret_is_found(provider, settings):
    use(settings, oidc_client_secret=SecretStr("quokka-umbrella"))
    provider.refusal = "invalid_client"

    (line,) = check_single_sign_on()

    assert "Sign-in with Acme fails: invalid_client" in line.status
    assert line.advice == "Check ASHIATO_OIDC_CLIENT_ID and ASHIATO_OIDC_CLIENT_SECRET."
    with pytest.raises(CommandError) as told:
        call_command("check_oidc")
    assert "quokka" not in f"{told.value}{line}"


def test_an_unregistered_redirect_uri_is_named(client, provider):
    provider.accepts_redirect = False
    error = problem(client)

    assert isinstance(error, oidc_errors.RedirectUriRejected)
    assert client.redirect_uri in provider_check.advice_for(error, client)


@pytest.mark.parametrize("code", ["invalid_scope", "unauthorized_client"])
def test_an_error_in_the_providers_redirect_is_found(client, provider, code):
    provider.denial = {"error": code}

    assert code in str(problem(client))


def test_a_provider_that_requires_a_user_first_is_ok(client, provider):
    provider.denial = {"error": "login_required"}

    provider_check.check(client)


def test_an_unknown_scope_is_named(provider, settings):
    use(settings, oidc_scopes="openid profile teams")
    provider.more = {"scopes_supported": ["openid", "profile"]}

    assert "teams" in str(problem(oidc.configured_client("https://chat.example/")))


@pytest.mark.parametrize(
    ("date", "side"),
    [
        ("Mon, 01 Jan 2001 00:00:00 GMT", "ahead of"),
        ("Sat, 01 Jan 2101 00:00:00 GMT", "behind"),
    ],
)
def test_clocks_that_differ_are_found(client, provider, date, side):
    provider.date = date

    assert f"s {side} the provider's." in str(problem(client))


@pytest.mark.parametrize("date", ["yesterday", " "])
def test_a_provider_without_a_date_header_is_ok(client, provider, date):
    provider.date = date

    provider_check.check(client)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"id_token_signing_alg_values_supported": ["HS256"]}, oidc_errors.AlgorithmRejected),
        ({"issuer": "https://elsewhere.example"}, oidc_errors.IssuerMismatch),
        ({"token_endpoint": None}, oidc_errors.ProviderMisconfigured),
    ],
)
def test_an_invalid_discovery_document_is_found(client, provider, more, kind):
    provider.more = more

    assert type(problem(client)) is kind


@pytest.mark.parametrize("keys", [[], None, [{"kty": "RSA"}]])
def test_a_provider_without_keys_is_found(client, provider, keys):
    provider.keys = lambda: {"keys": keys}

    assert "no usable keys" in str(problem(client))


def test_a_provider_that_is_down_is_found(provider, settings):
    use(settings, oidc_issuer="http://127.0.0.1:9")

    (line,) = check_single_sign_on()

    assert "Sign-in with Acme fails: ConnectError" in line.status
    assert "the provider's status" in line.advice


def test_there_is_advice_for_every_problem(client):
    for kind in (oidc_errors.ProtocolError, *oidc_errors.ProtocolError.__subclasses__()):
        assert provider_check.advice_for(kind("why"), client)
