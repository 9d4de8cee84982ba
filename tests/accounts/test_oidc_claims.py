"""Names, addresses and groups, from the ID token and from UserInfo."""

import pytest
from django.test import Client

from agents.accounts.models import Identity
from agents.accounts.openid import oidc_claims
from agents.accounts.users import roles
from agents.models.catalog.rights import Role
from tests.accounts.provider import is_in, signed_in, use

pytestmark = pytest.mark.django_db

PROFILE = {
    "sub": "42",
    "preferred_username": "ada",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "email": "ada@example.org",
    "email_verified": True,
    "teams": ["ops"],
}


@pytest.fixture
def bare(provider, settings):
    """A provider whose ID token only has the subject."""
    use(settings, oidc_groups_claim="teams", oidc_administrators="ops")
    provider.person, provider.user_info = {"sub": "42"}, dict(PROFILE)
    return provider


def someone():
    return Identity.objects.get().user


@pytest.mark.parametrize("signs", [False, True])
def test_claims_that_the_token_lacks_come_from_userinfo(client, bare, signs, administrator):
    bare.signs = signs

    signed_in(client)

    ada = someone()
    assert (ada.username, ada.get_full_name()) == ("ada", "Ada Lovelace")
    assert ada.email == "ada@example.org"
    assert roles.get_role(ada) == Role.ADMINISTRATOR


def test_a_complete_token_needs_no_userinfo(client, bare, administrator):
    bare.person, bare.user_info_status = dict(PROFILE), 500

    signed_in(client)

    assert someone().email == "ada@example.org"


def test_the_token_takes_precedence_over_userinfo(client, bare):
    bare.person |= {"teams": [], "preferred_username": "lovelace"}

    signed_in(client)

    assert someone().username == "lovelace"
    assert roles.get_role(someone()) == Role.PERSON


@pytest.mark.parametrize("subject", ["43", None, 42])
def test_userinfo_of_another_user_is_rejected(client, bare, subject):
    bare.user_info |= {"sub": subject}

    assert "be verified" in signed_in(client).text
    assert not is_in(client)


@pytest.mark.parametrize("wrong", [{"aud": "somebody-else"}, {"iss": "https://evil.example"}])
def test_signed_userinfo_for_another_client_is_rejected(client, bare, wrong):
    bare.signs = True
    bare.user_info |= wrong

    assert "be verified" in signed_in(client).text
    assert not is_in(client)


def test_userinfo_does_not_prove_a_second_factor(client, bare):
    bare.user_info |= {"amr": ["mfa"], "acr": "gold"}

    signed_in(client)

    assert client.session["proved_twice"] is False


def test_an_email_is_verified_only_by_its_own_source(client, bare, person):
    person.email = "victim@example.org"
    person.save()
    bare.person |= {"email": "victim@example.org"}

    signed_in(client)

    assert someone() != person
    assert someone().email == "ada@example.org"


def test_a_refused_userinfo_is_fatal_only_if_roles_depend_on_it(client, bare, settings, caplog):
    bare.user_info_status = 403
    assert "t share your profile" in signed_in(client).text
    assert not is_in(client)

    use(settings, oidc_groups_claim="")
    signed_in(client)

    assert is_in(client)
    assert "UserInfo answered with status 403" in caplog.text


def test_a_failing_userinfo_request_rejects_the_sign_in(client, bare):
    bare.user_info_status = 503

    assert "Acme isn&#x27;t responding." in signed_in(client).text
    assert not is_in(client)


def test_missing_groups_are_logged(client, bare, caplog):
    del bare.user_info["teams"]

    signed_in(client)

    assert roles.get_role(someone()) == Role.PERSON
    assert "sent no claim 'teams'" in caplog.text


def test_a_later_sign_in_fills_only_empty_fields(client, bare, person):
    person.first_name, person.email = "", ""
    person.save()
    Identity.objects.create(user=person, issuer=bare.url, subject="42")
    signed_in(client)
    assert someone().get_full_name() == "Ada Lovelace"
    bare.user_info |= {"given_name": "Countess", "email": "new@example.org"}

    signed_in(Client())

    assert (someone().first_name, someone().email) == ("Ada", "ada@example.org")


def test_an_email_of_another_account_is_not_filled_in(client, bare, person, administrator):
    administrator.email = "ADA@example.org"
    administrator.save()
    person.email = ""
    person.save()
    Identity.objects.create(user=person, issuer=bare.url, subject="42")

    signed_in(client)

    assert someone().email == ""


def test_a_single_name_is_saved(client, provider):
    provider.person = {"sub": "7", "name": "Prince"}

    signed_in(client)

    assert (someone().username, someone().get_full_name()) == ("Prince", "Prince")


@pytest.mark.parametrize(
    ("claims", "path", "groups"),
    [
        ({"groups": ["a", "b"]}, "groups", {"a", "b"}),
        ({"groups": "a"}, "groups", {"a"}),
        ({}, "groups", set()),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", {"a"}),
        ({"realm_access": ["roles"]}, "realm_access.roles", set()),
        ({"https://acme.example/roles": ["a"]}, "https://acme.example/roles", {"a"}),
        ({"roles": {"a": {"org": "1"}}}, "roles", {"a"}),
    ],
)
def test_groups_are_read_in_the_forms_that_providers_send(claims, path, groups):
    assert oidc_claims.groups(claims, path) == groups


def test_nested_groups_of_userinfo_count(client, bare, settings, administrator):
    use(settings, oidc_groups_claim="realm_access.roles")
    bare.person |= {"realm_access": {"other": []}}
    bare.user_info |= {"realm_access": {"roles": ["ops"]}}

    signed_in(client)

    assert roles.get_role(someone()) == Role.ADMINISTRATOR


def test_the_default_scopes_ask_for_groups_where_they_are_offered_and_used(
    client, provider, settings
):
    provider.more = {"scopes_supported": ["openid", "groups"]}
    signed_in(client)
    use(settings, oidc_groups_claim="groups")
    signed_in(client)
    use(settings, oidc_scopes="openid, roles")
    signed_in(client)

    wanted = ["openid profile email", "openid profile email groups", "openid roles"]
    assert provider.scopes == wanted
