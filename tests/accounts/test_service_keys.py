"""API keys in the console: everyone's, and those of services."""

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from agents.access import api_keys
from agents.accounts import sign_in
from agents.accounts.users import people_list, roles
from agents.models import ApiKey, Quota
from agents.models.catalog.rights import Role
from agents.web.people_suggestions import find_people
from tests.conftest import as_staff

pytestmark = pytest.mark.django_db

LIST = "/admin/agents/apikey/"


def typed(**more):
    return {"name": "CI", "scopes": ["ask"], "expiry": "never", "role": "person", **more}


@pytest.fixture
def service(console):
    """A service's account."""
    console.post(f"{LIST}new/", typed())
    return User.objects.get(username="service-ci")


def test_a_service_key_comes_with_an_account_of_its_own(console):
    sales = Group.objects.create(name="Sales")
    page = console.post(f"{LIST}new/", typed(groups=[sales.pk], cost="5"))
    key = ApiKey.objects.get()

    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    assert api_keys.find(f"Bearer {page.context['token']}") == key
    assert key.is_service
    assert key.user.username == "service-ci"
    assert (key.user.email, key.user.has_usable_password()) == ("", False)
    assert set(key.user.groups.all()) == {sales, roles.role_group(Role.PERSON)}
    assert Quota.objects.get(api_key=key).limit == 5_000_000


def test_services_of_the_same_name_have_accounts_of_their_own(console):
    for _time in range(3):
        console.post(f"{LIST}new/", typed())

    names = set(api_keys.service_accounts().values_list("username", flat=True))
    assert names == {"service-ci", "service-ci-2", "service-ci-3"}


def test_a_service_can_have_another_key(console, service):
    console.post(f"{LIST}new/", typed(name="CI 2", account=service.pk))

    assert service.api_keys.count() == 2
    assert api_keys.service_accounts().count() == 1


@pytest.mark.parametrize("scope", ["read_all", "configure"])
def test_a_scope_needs_a_role_that_has_it(console, scope):
    refused = console.post(f"{LIST}new/", typed(scopes=[scope]))

    assert refused.status_code == 422
    assert "scopes" in refused.context["form"].errors
    assert not ApiKey.objects.exists()
    assert not User.objects.filter(username__startswith="service-").exists()
    console.post(f"{LIST}new/", typed(scopes=[scope], role="administrator"))
    assert ApiKey.objects.get().scopes == [scope]


def test_nobody_grants_a_service_more_than_they_have(person, service):
    limited = as_staff(person, "add_apikey", "view_apikey")
    roles.set_role(service, Role.ADMINISTRATOR)

    for more in ({"role": "administrator"}, {"account": service.pk}):
        refused = limited.post(f"{LIST}new/", typed(**more))
        assert refused.status_code == 422, more
    assert ApiKey.objects.count() == 1


def test_making_and_revoking_need_their_permissions(person, service):
    key = ApiKey.objects.get()
    viewer = as_staff(person, "view_apikey")

    assert viewer.get(LIST).status_code == 200
    assert viewer.get(f"{LIST}new/").status_code == 403
    assert viewer.post(f"{LIST}{key.pk}/revoke/").status_code == 403
    refused = viewer.post(LIST, {"action": "revoke_selected", "_selected_action": [key.pk]})
    assert refused.status_code != 500
    assert ApiKey.objects.get().revoked_at is None
    assert as_staff(person).get(LIST).status_code == 403


def test_the_console_lists_filters_and_revokes_all_keys(console, person):
    theirs, token = api_keys.create(person, "laptop", ["read"])
    api_keys.create(person, "CI", ["ask"], is_service=True)

    def listed(query=""):
        page = console.get(f"{LIST}{query}")
        assert page.status_code == 200
        assert token not in page.text
        assert theirs.digest not in page.text
        return {key.name for key in page.context["cl"].result_list}

    assert listed() == {"laptop", "CI"}
    assert listed("?q=ada") == {"laptop", "CI"}
    assert listed(f"?q={theirs.prefix}") == {"laptop"}
    assert listed("?kind=service") == {"CI"}
    assert listed("?state=active&kind=personal") == {"laptop"}
    console.post(f"{LIST}{theirs.pk}/revoke/")
    assert listed("?state=revoked") == {"laptop"}
    assert api_keys.find(f"Bearer {token}") is None


def test_the_page_of_a_key_has_no_digest_and_changes_nothing(console, person):
    key, _token = api_keys.create(person, "laptop", ["read"])
    url = f"{LIST}{key.pk}/change/"

    assert key.digest not in console.get(url).text
    assert console.post(url, {"name": "x", "scopes": '["configure"]'}).status_code == 403
    assert console.get(f"{LIST}?digest__startswith={key.digest[:2]}").status_code != 200
    key.refresh_from_db()
    assert key.scopes == ["read"]


def test_nobody_signs_in_as_a_service(console, service):
    change = f"/admin/auth/user/{service.pk}/"
    assert console.post(f"{change}link/").status_code == 404
    page = console.get(f"{change}change/")
    assert "email" not in page.context["adminform"].form.fields

    # Not even with what an administrator should never have made.
    service.set_password("a long walk on the beach")
    service.save()
    answer = Client().post(
        "/login/", {"username": service.username, "password": "a long walk on the beach"}
    )
    assert answer.status_code == 403
    with pytest.raises(PermissionDenied):
        sign_in.complete(RequestFactory().get("/"), service, "oidc", twice=True)


def test_a_password_link_of_a_service_leads_to_no_session(service):
    uid = urlsafe_base64_encode(force_bytes(service.pk))
    link = f"/welcome/{uid}/{default_token_generator.make_token(service)}/"

    browser = Client()
    password = "a long walk on the beach"
    browser.post(link, {"new_password1": password, "new_password2": password})
    browser.post("/login/", {"username": service.username, "password": password})

    assert "_auth_user_id" not in browser.session


def test_services_are_marked_among_users_and_not_suggested(console, service):
    page = console.get("/admin/auth/user/?state=service")

    assert [user.pk for user in page.context["cl"].result_list] == [service.pk]
    [row] = people_list.annotate(User.objects.filter(pk=service.pk))
    assert people_list.state_of(row) == "service"
    assert [found.username for found in find_people("service", ())] == []


def test_a_service_doesnt_count_as_the_last_administrator(helper, service):
    roles.set_role(service, Role.ADMINISTRATOR)

    assert roles.is_last_administrator(helper)
