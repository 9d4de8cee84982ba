"""Sign-in by another service, and what it is trusted with."""

import base64
import hmac
import json

import httpx2
import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import Permission
from django.test import Client
from joserfc.jwk import ECKey, OKPKey

from agents.accounts.authentication import factors, totp
from agents.accounts.models import Identity, Visit
from agents.accounts.openid import oidc, oidc_client
from agents.accounts.users import confusable_names, roles
from agents.models.catalog.rights import Role
from tests.accounts.provider import CLIENT, is_in, sent_back, signed_in, use
from tests.sampling import one_in

pytestmark = pytest.mark.django_db


def test_a_new_user_gets_an_account_and_is_redirected(client, provider, django_user_model):
    answer = signed_in(client)

    ada = django_user_model.objects.get()
    assert answer.headers["Location"] == "/traces/"
    assert client.session[SESSION_KEY] == str(ada.pk)
    assert (ada.username, ada.has_usable_password()) == ("ada", False)
    assert roles.get_role(ada) == Role.PERSON
    assert Visit.objects.get().way == "oidc"


def test_the_same_user_gets_the_same_account(client, provider, django_user_model):
    signed_in(client)
    provider.person = {"sub": "42", "preferred_username": "lovelace"}
    signed_in(Client())

    assert django_user_model.objects.get().username == "ada"
    assert Identity.objects.count() == 1


def test_an_existing_username_is_not_taken_over(client, provider, person, administrator):
    provider.person = {"sub": "1", "preferred_username": "root"}

    signed_in(client)

    assert client.session[SESSION_KEY] != str(administrator.pk)
    assert Identity.objects.get().user.username == "root-2"


@pytest.mark.parametrize("verified", one_in(4, [True, False, None, "true"]))
def test_only_a_verified_email_matches_an_account(client, provider, person, verified):
    person.email = "Ada@Example.org"
    person.save()
    provider.person |= {"email": "ada@example.org", "email_verified": verified}

    signed_in(client)

    is_found = Identity.objects.get().user == person
    assert is_found is (verified is True)
    assert person.identities.exists() is is_found


def test_accounts_are_not_created_if_disabled(client, provider, settings):
    use(settings, oidc_create=False)
    provider.person |= {"email": "ada@example.org", "email_verified": True}

    answer = signed_in(client)

    assert "have an account here." in answer.text
    assert not is_in(client)


def test_a_disabled_account_cannot_sign_in(client, provider, person):
    Identity.objects.create(user=person, issuer=provider.url, subject="42")
    person.is_active = False
    person.save()

    assert (
        "This account is disabled. Ask an administrator to enable it." in signed_in(client).text
    )
    assert not is_in(client)


def test_groups_of_the_provider_become_roles(client, provider, settings, administrator):
    use(settings, oidc_groups_claim="teams", oidc_administrators="ops, admins")
    for teams, role in ((["ops"], Role.ADMINISTRATOR), (["reviewer"], Role.REVIEWER)):
        provider.person |= {"teams": teams}
        signed_in(Client())
        assert roles.get_role(Identity.objects.get().user) == role

    provider.person |= {"teams": "nonsense"}
    signed_in(client)
    assert roles.get_role(Identity.objects.get().user) == Role.PERSON


def test_without_a_groups_claim_roles_are_managed_locally(client, provider, person):
    Identity.objects.create(user=person, issuer=provider.url, subject="42")
    roles.set_role(person, Role.REVIEWER)
    provider.person |= {"groups": ["administrator"]}

    signed_in(client)

    assert roles.get_role(type(person).objects.get(pk=person.pk)) == Role.REVIEWER


def test_a_response_for_another_browser_is_rejected(client, provider):
    back = sent_back(client)
    other = Client()

    assert "This sign-in took too long" in other.get(back).text
    sent_back(other)
    assert "started in a different browser" in other.get(back).text
    assert not is_in(other)


def test_a_response_is_accepted_once(client, provider):
    back = sent_back(client)
    cookie = client.cookies[oidc.COOKIE_NAME].value
    client.get(back)
    again = Client()
    again.cookies[oidc.COOKIE_NAME] = cookie

    assert "already used or has expired" in again.get(back).text
    assert not is_in(again)


SPOILT = {
    "nonce": "another",
    "aud": "somebody-else",
    "iss": "https://evil.example",
    "exp": 1,
    "azp": "somebody-else",
    "sub": "x" * 300,
    "several": {"aud": [CLIENT, "somebody-else"]},
    "azp of several": {"aud": [CLIENT, "somebody-else"], "azp": "somebody-else"},
    "empty sub": {"sub": ""},
    "blank sub": {"sub": " "},
    "no sub": {"sub": None},
    "number": {"sub": 42},
}


@pytest.mark.parametrize("name", SPOILT)
def test_an_invalid_token_is_rejected(client, provider, name):
    spoilt = SPOILT[name] if isinstance(SPOILT[name], dict) else {name: SPOILT[name]}
    provider.change = lambda claims: {**claims, **spoilt}

    answer = signed_in(client)

    assert 'role="alert"' in answer.text
    assert not is_in(client)


def test_a_token_signed_by_another_key_is_rejected(client, provider):
    back = sent_back(client)
    signed_in(Client())  # the provider's keys are known
    real, name = provider.key, provider.kid
    provider.renew()
    provider.kid, forged = name, provider.key
    provider.keys = lambda: {"keys": []}
    try:
        answer = client.get(back)
    finally:
        del provider.keys
        provider.key = real

    assert forged is not real
    assert "be verified" in answer.text
    assert not is_in(client)


def test_new_keys_are_fetched(client, provider):
    signed_in(client)
    provider.renew()
    other = Client()

    signed_in(other)

    assert is_in(other)


def test_an_unreachable_provider_has_an_error_message(client, provider, settings):
    use(settings, oidc_issuer="http://127.0.0.1:9")

    answer = client.get("/login/oidc/")

    assert "Acme isn&#x27;t responding." in answer.text


@pytest.mark.parametrize("place", [None, 7, "http://[", ["x"]])
def test_an_incomplete_discovery_document_has_an_error_message(
    client, provider, monkeypatch, place
):
    there = provider.discovery() | {"token_endpoint": place}
    monkeypatch.setattr(provider, "discovery", lambda: there)

    answer = signed_in(client)

    assert answer.status_code == 200
    assert "Acme" in answer.text
    assert not is_in(client)


def test_without_a_provider_there_is_no_button_and_no_route(client, db):
    assert "oidc" not in client.get("/login/").text
    assert client.get("/login/oidc/").headers["Location"] == "/login/"
    assert client.get("/login/oidc/back/").headers["Location"] == "/login/"


def test_redirecting_to_the_provider_saves_no_session(client, provider):
    away = client.get("/login/oidc/")

    cookie = away.cookies[oidc.COOKIE_NAME]
    assert "sessionid" not in away.cookies
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert "code_challenge_method=S256" in away.headers["Location"]


@pytest.mark.parametrize("audience", [[CLIENT], [CLIENT, "somebody-else"]])
def test_a_token_for_several_audiences_needs_the_authorized_party(client, provider, audience):
    provider.change = lambda claims: {**claims, "aud": audience, "azp": CLIENT}

    signed_in(client)

    assert is_in(client)


@pytest.mark.parametrize(
    ("told", "is_twice"),
    one_in(
        4,
        [
            ({}, False),
            ({"amr": ["pwd"]}, False),
            ({"amr": ["pwd", "pin"]}, False),
            ({"amr": "mfa"}, False),
            ({"amr": ["mfa"]}, True),
            ({"amr": ["pwd", "otp"]}, True),
            ({"amr": [["mfa"], None]}, False),
            ({"acr": "gold"}, True),
            ({"acr": "silver"}, False),
            ({"acr": ["gold"]}, False),
        ],
    ),
)
def test_it_counts_as_two_factors_only_if_the_provider_says_so(
    client, provider, settings, told, is_twice
):
    use(settings, oidc_acr="gold, platinum")
    provider.person |= told

    signed_in(client)

    assert client.session["proved_twice"] is is_twice


def test_a_missing_second_factor_is_requested_locally(client, provider, settings):
    settings.REQUIRE_MFA = "all"

    assert signed_in(client).headers["Location"].startswith("/login/app/?next=")
    assert not is_in(client)
    provider.person |= {"amr": ["pwd", "mfa"]}
    assert signed_in(client).headers["Location"] == "/traces/"
    assert is_in(client)


def test_a_local_second_factor_is_requested_after_the_provider(client, provider, person):
    Identity.objects.create(user=person, issuer=provider.url, subject="42")
    factors.add_authenticator(person, totp.new_secret(), 0)

    assert signed_in(client).headers["Location"].startswith("/login/second/?next=")
    assert not is_in(client)


@pytest.mark.parametrize("rank", ["superuser", "staff", "administrator", "reviewer", "right"])
def test_privileged_accounts_are_not_matched_by_email(client, provider, person, rank):
    person.email = "ada@example.org"
    person.is_superuser, person.is_staff = rank == "superuser", rank == "staff"
    person.save()
    if rank in Role.values:
        roles.set_role(person, Role(rank))
    if rank == "right":
        person.user_permissions.add(Permission.objects.get(codename="see_personal_data"))
    provider.person |= {"email": "ada@example.org", "email_verified": True}

    answer = signed_in(client)

    assert "Sign in with your password." in answer.text
    assert not is_in(client)
    assert not Identity.objects.exists()


@pytest.mark.parametrize(
    "name",
    one_in(4, ["аda", "ADA", "ａｄａ", "a\u200bda", "αda", "AdА"]),  # some of them not in Latin
)
def test_a_lookalike_username_gets_a_suffix(client, provider, person, name):
    provider.person = {"sub": "7", "preferred_username": name}

    signed_in(client)

    made = Identity.objects.get().user
    assert made != person
    assert made.username.endswith("-2")


@pytest.mark.parametrize(
    ("one", "other"), [("paypal", "paypaI"), ("modern", "rnodern"), ("root", "r00t")]
)
def test_lookalike_names_have_the_same_skeleton(one, other):
    assert confusable_names.skeleton(one) == confusable_names.skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"), [("かく", "がく"), ("ann", "anna"), ("山田", "山本")]
)
def test_different_names_have_different_skeletons(one, other):
    assert confusable_names.skeleton(one) != confusable_names.skeleton(other)


def test_reauthentication_by_the_provider_forces_a_new_sign_in(client, provider):
    back = sent_back(client)
    client.get(back)
    away = client.get("/login/oidc/", {"next": "/account/", "fresh": "1"})
    assert "prompt=login" in away.headers["Location"]
    provider.person |= {"auth_time": 1}

    answer = client.get(httpx2.get(away.headers["Location"]).headers["Location"])

    assert "ask you to sign in again." in answer.text


def test_reauthentication_by_the_provider_keeps_the_session(client, provider):
    client.get(sent_back(client))
    before = client.session.session_key
    away = client.get("/login/oidc/", {"next": "/account/", "fresh": "1"})

    answer = client.get(httpx2.get(away.headers["Location"]).headers["Location"])

    assert answer.headers["Location"] == "/account/"
    assert client.session.session_key == before
    assert Visit.objects.count() == 1


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [("ES256", ECKey.generate_key("P-256")), ("Ed25519", OKPKey.generate_key("Ed25519"))],
)
def test_other_asymmetric_signatures_are_verified(client, provider, algorithm, key):
    provider.algorithm, provider.key = algorithm, key
    provider.kid = algorithm

    signed_in(client)

    assert is_in(client)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_an_unsigned_token_is_rejected(client, provider, monkeypatch, algorithm):
    """A public key must not be taken for the secret of an HMAC either."""
    signed, public = provider.signed, provider.key.as_pem(private=False)

    def forged(asked):
        header = json.dumps({"alg": algorithm, "kid": provider.kid}).encode()
        start = f"{base64url(header)}.{signed(asked).split('.')[1]}"
        proof = hmac.digest(public, start.encode(), "sha256") if algorithm != "none" else b""
        return f"{start}.{base64url(proof)}"

    monkeypatch.setattr(provider, "signed", forged)

    assert "an algorithm that isn&#x27;t accepted" in signed_in(client).text
    assert not is_in(client)


def base64url(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def test_a_token_for_another_access_token_is_rejected(client, provider):
    provider.person |= {"at_hash": "bm90IGl0"}

    assert "be verified" in signed_in(client).text
    assert not is_in(client)


@pytest.mark.parametrize("spoilt", [{"iat": 9_999_999_999}, {"exp": 1}, {"nbf": 9_999_999_999}])
def test_a_token_from_another_time_is_rejected_and_names_the_clocks(client, provider, spoilt):
    provider.person |= spoilt

    assert "The clocks of this server and Acme differ" in signed_in(client).text
    assert not is_in(client)


def test_encryption_keys_and_unknown_keys_are_skipped(client, provider):
    def keys():
        more = [{"kty": "new"}, {**provider.public(), "use": "enc"}, "nonsense"]
        return {"keys": [*more, provider.public()]}

    provider.keys = keys

    signed_in(client)

    assert is_in(client)


@pytest.mark.parametrize("padding", ["x" * 2_000_000, None])
def test_a_too_large_or_compressed_response_is_not_read(client, provider, monkeypatch, padding):
    there = provider.discovery() | {"padding": padding}
    monkeypatch.setattr(provider, "discovery", lambda: there)
    provider.encoding = "" if padding else "gzip"

    answer = client.get("/login/oidc/")

    assert "Acme isn&#x27;t responding." in answer.text


def test_a_dripping_response_times_out(client, provider, monkeypatch):
    monkeypatch.setattr(oidc_client, "TIMEOUT_SECONDS", 0.2)
    provider.pause = 0.05

    answer = client.get("/login/oidc/")

    assert "Acme isn&#x27;t responding." in answer.text


def test_a_redirect_of_the_provider_is_not_followed(client, provider):
    back = sent_back(client)
    provider.elsewhere = f"{provider.url}/token"

    assert "Acme isn&#x27;t responding." in client.get(back).text
    assert not is_in(client)


def test_a_public_client_uses_pkce(client, provider, settings):
    use(settings, oidc_client_secret=None)
    provider.is_public = True

    signed_in(client)

    assert is_in(client)
