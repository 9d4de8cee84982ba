"""Roles in the console: who can do what, and who can change that."""

import re

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction
from django.db.migrations import Migration
from django.db.models import ProtectedError
from django.test.utils import CaptureQueriesContext

from agents.accounts.authentication import factors, totp
from agents.accounts.models import Authenticator, Visit
from agents.accounts.users import roles
from agents.models import Agent, AuditEntry, ModelConnection
from agents.models.catalog.rights import Role
from tests.conftest import as_user
from tests.sampling import one_in

pytestmark = pytest.mark.django_db


def page(user, way="change/"):
    return f"/admin/auth/user/{user.pk}/{way}"


def save_user(client, user, **changes):
    typed = {"username": user.username, "role": roles.get_role(user), "is_active": "on"}
    typed |= {"groups": [], "first_name": "", "last_name": "", "email": ""}
    typed |= changes
    answer = client.post(page(user), {k: v for k, v in typed.items() if v is not None})
    user.__dict__.pop("_prefetched_objects_cache", None)
    user.refresh_from_db()
    return answer


def fresh(user):
    return type(user).objects.get(pk=user.pk)


def test_each_role_has_its_permissions(person, stranger, helper):
    roles.set_role(stranger, Role.REVIEWER)
    person, stranger = fresh(person), fresh(stranger)

    assert not person.get_all_permissions()
    assert stranger.get_all_permissions() == {
        "agents.review_runs",
        "dashboard.view_dashboard",
        "problems.view_problem",
    }
    assert helper.is_staff
    assert helper.has_perms(["agents.change_agent", "agents.review_runs", "auth.add_user"])
    assert not helper.has_perm("agents.see_personal_data")
    assert not helper.has_perm("agents.use_stdio_servers")


def test_a_role_is_given_as_one_choice(admin_client, person):
    save_user(admin_client, person, role="reviewer")
    assert fresh(person).has_perm("agents.review_runs")
    save_user(admin_client, person, role="administrator")
    assert person.is_staff
    save_user(admin_client, person, role="person")

    assert not person.is_staff
    assert list(person.groups.values_list("name", flat=True)) == ["person"]
    actions = AuditEntry.objects.exclude(place="").values_list("action", flat=True)
    assert list(actions) == ["rights.changed"] * 3


def test_groups_are_chosen_next_to_the_role(admin_client, person):
    finance = Group.objects.create(name="finance")

    save_user(admin_client, person, groups=[finance.pk], role="reviewer")

    names = set(person.groups.values_list("name", flat=True))
    assert names == {"finance", "reviewer"}
    assert AuditEntry.objects.first().detail["groups"] == ["finance", "reviewer"]


def test_a_new_user_gets_a_link_instead_of_a_password(console, django_user_model):
    typed = {"username": "linus", "role": "person", "email": "", "groups": []}

    answer = console.post("/admin/auth/user/add/", typed)

    linus = django_user_model.objects.get(username="linus")
    assert not linus.has_usable_password()
    assert answer.context["link"].startswith("http://testserver/welcome/")
    assert list(linus.groups.values_list("name", flat=True)) == ["person"]


def test_only_possible_actions_are_offered_and_explained(admin_client, person):
    page = f"/admin/auth/user/{person.pk}/change/"
    assert "lost a device" not in admin_client.get(page).text

    person.passkeys.create(name="phone", key_id="a2V5", public_key="p")

    assert "lost a device" in admin_client.get(page).text


def test_the_last_administrator_keeps_the_role(admin_client, administrator, person):
    answer = save_user(admin_client, administrator, is_active=None)
    assert "You can&#x27;t disable your own account." in answer.text

    administrator.is_superuser = False
    administrator.save()
    roles.set_role(administrator, Role.ADMINISTRATOR)
    answer = save_user(admin_client, administrator, role="person")

    assert (
        "This is the last administrator. Make another user an administrator first."
        in answer.text
    )
    assert administrator.is_active
    assert administrator.is_staff


def test_one_of_two_administrators_can_be_removed(admin_client, administrator, helper):
    save_user(admin_client, helper, role="person")

    assert not helper.is_staff
    assert roles.is_last_administrator(administrator)


def test_administrators_cannot_make_themselves_superusers(console, helper):
    extra = {"is_superuser": "on", "user_permissions": ["1"], "is_staff": "on", "apart": ["1"]}
    secret = Permission.objects.get(codename="see_personal_data")
    powerful = Group.objects.create(name="auditors")
    powerful.permissions.add(secret)

    save_user(console, helper, **extra, groups=[powerful.pk])
    console.post(f"/admin/auth/group/{powerful.pk}/change/", {"name": "mine"})
    console.post("/admin/auth/group/add/", {"name": "new", "permissions": [secret.pk]})

    helper = fresh(helper)
    assert not helper.is_superuser
    assert not helper.has_perm("agents.see_personal_data")
    assert not Group.objects.get(name="new").permissions.exists()
    powerful.refresh_from_db()
    assert powerful.name == "auditors"


@pytest.mark.parametrize("way", one_in(3, ["link/", "factors/remove/", "sessions/end/"]))
def test_users_with_more_permissions_cannot_be_changed(console, administrator, stranger, way):
    stranger.user_permissions.add(Permission.objects.get(codename="see_personal_data"))

    for person in (administrator, stranger):
        assert console.post(page(person, way)).status_code == 404
    save_user(console, administrator, is_active=None)
    assert administrator.is_active


def test_a_disabled_user_with_more_permissions_cannot_be_taken_over(console, stranger):
    stdio = Permission.objects.get(codename="use_stdio_servers")
    stranger.user_permissions.add(stdio)
    type(stranger).objects.filter(pk=stranger.pk).update(is_active=False)

    answer = console.post(page(stranger, "link/"))
    save_user(console, stranger, is_active="on")

    assert answer.status_code == 404
    assert not stranger.is_active


def test_a_concurrent_permission_change_is_rejected(admin_client, person):
    roles.set_role(person, Role.PERSON)
    stdio = Permission.objects.get(codename="use_stdio_servers")
    seen = {
        each: admin_client.get(page(person)).context["seen"] for each in ("first", "second")
    }

    save_user(admin_client, person, apart=[stdio.pk], _seen=seen["first"])
    answer = save_user(admin_client, person, apart=[], _seen=seen["second"])

    assert "changed this" in answer.text
    assert fresh(person).has_perm("agents.use_stdio_servers")


def test_a_concurrent_role_change_is_rejected(admin_client, person):
    seen = admin_client.get(page(person)).context["seen"]

    save_user(admin_client, person, role="reviewer", _seen=seen)
    answer = save_user(admin_client, person, role="administrator", _seen=seen)

    assert "changed this" in answer.text
    assert roles.get_role(fresh(person)) == Role.REVIEWER


def test_superusers_grant_permissions_outside_of_roles(admin_client, person):
    secret = Permission.objects.get(codename="see_personal_data")

    save_user(admin_client, person, apart=[secret.pk])
    assert fresh(person).has_perm("agents.see_personal_data")
    save_user(admin_client, person, apart=[])

    assert not fresh(person).has_perm("agents.see_personal_data")


@pytest.mark.parametrize("way", ["link/", "factors/remove/", "sessions/end/"])
def test_get_requests_change_nothing(admin_client, person, way):
    assert admin_client.get(page(person, way)).status_code == 405


def test_ordinary_users_see_no_console_page(person_client, person):
    assert person_client.get(page(person)).status_code == 302
    assert person_client.post(page(person, "link/")).status_code == 302
    assert person_client.get("/admin/login/").status_code == 403


def test_resetting_lost_factors_ends_their_sessions(admin_client, person):
    factors.add_authenticator(person, totp.new_secret(), 0)
    Visit.objects.create(user=person, session_id=signed_in(person), way="totp")

    admin_client.post(page(person, "factors/remove/"))

    assert not Authenticator.objects.exists()
    assert not person.recovery_codes.exists()
    assert not Visit.objects.filter(user=person).exists()
    assert AuditEntry.objects.first().action == "mfa.removed"


def signed_in(person):
    client = as_user(person)
    return client.session.session_key


def test_a_session_is_ended_on_its_users_page(admin_client, person):
    visit = Visit.objects.create(user=person, session_id=signed_in(person), way="password")
    shown = admin_client.get(page(person)).text
    assert page(person, f"sessions/{visit.pk}/end/") in shown

    admin_client.post(page(person, f"sessions/{visit.pk}/end/"))

    assert not Visit.objects.exists()
    assert admin_client.post(page(person, f"sessions/{visit.pk}/end/")).status_code == 404


def test_the_user_page_shows_sign_in_methods_and_no_hash(admin_client, person):
    person.set_password("a long walk on the beach")
    person.save()
    factors.add_authenticator(person, totp.new_secret(), 0)

    shown = admin_client.get(page(person)).text

    assert "password · authenticator app · recovery codes: 10" in shown
    assert person.password not in shown


def test_roles_cannot_be_renamed_or_deleted(admin_client):
    group = roles.role_group(Role.REVIEWER)

    admin_client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "x", "permissions": []})
    answer = admin_client.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})

    group.refresh_from_db()
    assert group.name == "reviewer"
    assert group.permissions.exists()
    assert answer.status_code == 403


def test_a_group_in_use_cannot_be_deleted(admin_client, person):
    finance, sales = (Group.objects.create(name=name) for name in ("finance", "sales"))
    ledger = Agent.objects.create(name="ledger")
    ledger.groups.set([finance, sales])
    both = {"action": "delete_selected", "_selected_action": [finance.pk, sales.pk]}

    page = admin_client.post("/admin/auth/group/", both | {"post": "yes"})
    with pytest.raises(ProtectedError), transaction.atomic():
        Group.objects.filter(name__in=["finance", "sales"]).delete()
    admin_client.post(f"/admin/auth/group/{sales.pk}/delete/", {"post": "yes"})
    admin_client.post(f"/admin/auth/group/{finance.pk}/delete/", {"post": "yes"})

    assert "Agent: ledger" in page.text
    assert list(ledger.groups.all()) == [finance]
    assert not Agent.objects.usable_by(person).exists()


def test_a_role_page_describes_its_permissions_and_is_read_only(admin_client):
    group = roles.role_group(Role.REVIEWER)

    shown = admin_client.get(f"/admin/auth/group/{group.pk}/change/").text

    assert "Reviews other users" in shown
    assert "_continue" not in shown
    assert "Can " not in shown


def test_existing_users_have_the_default_role(person, administrator):
    Group.objects.all().delete()

    roles.sync_groups(sender=type("App", (), {"label": roles._last_migrated_app()}))

    assert [group.name for group in person.groups.all()] == ["person"]
    assert not administrator.groups.exists()
    assert Group.objects.filter(name__in=Role.values).count() == 3


def test_going_back_to_an_earlier_version_gives_nobody_a_role(person):
    """Its tables may be gone, for example that of visitors."""
    Group.objects.all().delete()
    last_app = type("App", (), {"label": roles._last_migrated_app()})
    migration = Migration("0020_embeds", "agents")

    with CaptureQueriesContext(connection) as queries:
        roles.sync_groups(sender=last_app, plan=[(migration, True)])

    assert not queries.captured_queries
    assert not person.groups.exists()


def test_roles_have_their_labels_wherever_groups_are_listed(admin_client, agent):
    Group.objects.create(name="finance")
    admin_client.cookies["django_language"] = "ja"
    ModelConnection.objects.create(name="OpenAI")
    places = ("agent/1/change/", "languagemodel/add/", "toolregistration/add/")
    pages = [f"/admin/agents/{place}".replace("/1/", f"/{agent.pk}/") for place in places]

    for way in (*pages, "/admin/auth/group/", "/admin/auth/user/"):
        shown = admin_client.get(way).text
        assert "レビュアー" in shown, way
        assert "finance" in shown, way
        assert not re.search(r">\s*(person|reviewer|administrator)\s*<", shown), way
