"""Invitations: who can send which, what accepting one does, and attacks on them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core import mail
from django.db import connections
from django.test import Client
from django.utils import timezone

from agents.accounts.models import Invitation
from agents.accounts.users import invitations, roles
from agents.accounts.views import invitation as view
from agents.models import AuditEntry
from agents.models.catalog.rights import Role
from tests.accounts.conftest import PASSWORD
from tests.accounts.provider import signed_in, use
from tests.conftest import as_staff, as_user

pytestmark = pytest.mark.django_db

LIST = "/admin/people/invitation/"


@pytest.fixture
def invited(helper):
    def create(email="", **terms):
        return invitations.create(
            helper, invitations.Terms(**{"role": Role.PERSON} | terms), email
        )

    return create


def typed(name="mika", **more):
    return {"username": name, "new_password1": PASSWORD, "new_password2": PASSWORD, **more}


def accept(token, name="mika", client=None, **more):
    return (client or Client()).post(f"/invite/{token}/", typed(name, **more))


def invite(client, **more):
    sent = {"way": "email", "emails": "mika@example.com", "role": "person", "days": 7}
    return client.post(f"{LIST}new/", sent | more)


def test_an_invited_person_gets_an_account_with_its_role_and_groups(console, helper, client):
    sales = Group.objects.create(name="Sales")
    answer = invite(console, role="reviewer", groups=[sales.pk], emails="Mika@Example.com")
    [link] = answer.context["links"]
    assert "no-store" in answer["Cache-Control"]

    page = client.get(link.link)
    assert "mika@example.com" in page.text
    assert client.post(link.link, typed(first_name="Mika")).url == "/"
    user = User.objects.get(username="mika")
    assert (user.email, user.first_name) == ("mika@example.com", "Mika")
    assert roles.get_role(user) == Role.REVIEWER
    assert user.groups.filter(pk=sales.pk).exists()
    assert client.get("/account/").status_code == 200  # and is signed in
    assert AuditEntry.objects.filter(action="person.added", detail__by="invitation").exists()


def test_the_token_is_saved_nowhere(invited):
    invitation, token = invited("mika@example.com")

    assert token not in str(vars(Invitation.objects.get()))
    entries = str(list(AuditEntry.objects.values_list("detail", flat=True)))
    assert token not in entries
    assert "mika@example.com" not in entries


def test_an_invitation_is_used_once_and_says_so(invited):
    _invitation, token = invited()
    assert accept(token).status_code == 302

    again = accept(token, "eve")
    assert again.status_code == 404
    assert "already used" in again.text
    assert not User.objects.filter(username="eve").exists()


def test_expired_revoked_and_unknown_invitations_have_a_sentence_each(invited):
    late, late_token = invited()
    Invitation.objects.filter(pk=late.pk).update(expires_at=timezone.now() - timedelta(days=1))
    revoked, revoked_token = invited()
    invitations.revoke(Invitation.objects.filter(pk=revoked.pk), None)

    def text(token):
        return Client().get(f"/invite/{token}/").text

    assert "has expired" in text(late_token)
    assert "no longer valid" in text(revoked_token)
    assert "exist. Check the link." in text("x" * 43)


def test_guessing_is_limited(monkeypatch):
    monkeypatch.setattr(view, "MAX_VISITS", 3)
    codes = [Client().get(f"/invite/guess{n}/").status_code for n in range(4)]

    assert codes == [404, 404, 404, 429]


def test_a_signed_in_user_does_not_use_up_an_invitation(invited, person_client):
    invitation, token = invited()

    for answer in (person_client.get(f"/invite/{token}/"), accept(token, client=person_client)):
        assert "signed in as ada" in answer.text
    invitation.refresh_from_db()
    assert invitation.uses == 0


def test_names_that_look_like_others_are_rejected_and_nothing_is_used(invited, person):
    invitation, token = invited()

    answer = accept(token, "аda")  # with a Cyrillic letter

    assert answer.status_code == 422
    assert "available. Choose another one." in answer.text
    invitation.refresh_from_db()
    assert invitation.uses == 0


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_racing_requests_use_a_link_as_often_as_allowed(invited):
    _invitation, token = invited(max_uses=2)

    def race(number):
        try:
            return accept(token, f"racer{number}").status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as people:
        codes = list(people.map(race, range(6)))

    assert codes.count(302) == 2
    assert User.objects.filter(username__startswith="racer").count() == 2


def test_nobody_can_grant_more_than_they_have(console, helper, django_user_model):
    boss = Group.objects.create(name="Boss")
    boss.permissions.add(Permission.objects.get(codename="see_personal_data"))
    assert invite(console, groups=[boss.pk]).status_code == 422

    staff = django_user_model.objects.create_user("staff", is_staff=True)
    for right in ("add_user", "add_invitation", "view_invitation"):
        rights = Permission.objects.filter(content_type__app_label__in=("auth", "people"))
        staff.user_permissions.add(rights.get(codename=right))
    low = as_user(staff)
    assert invite(low, role="administrator").status_code == 422
    assert invite(low, role="reviewer").status_code == 422
    assert invite(low).status_code == 200
    assert Invitation.objects.count() == 1


def test_an_invitation_ends_with_the_rights_of_its_sender(invited, helper):
    _invitation, token = invited(role=Role.ADMINISTRATOR)
    roles.set_role(helper, Role.PERSON)

    answer = accept(token)

    assert "no longer valid" in answer.text
    assert not User.objects.filter(username="mika").exists()


def test_a_user_without_permission_can_not_invite(person, invited):
    invitation, _token = invited()
    client = as_staff(person)

    assert invite(client).status_code == 403
    for way in ("renew", "revoke", "restore"):
        assert client.post(f"{LIST}{invitation.pk}/{way}/").status_code == 403


def test_an_address_with_an_account_is_only_named_to_the_inviter(console, person, invited):
    person.email = "mika@example.com"
    person.save()
    assert "already has an account" in invite(console).text

    _invitation, token = invited("new@example.com")
    person.email = "new@example.com"
    person.save()
    answer = accept(token)
    assert "already used" in answer.text
    assert "account" not in answer.text.lower().split("<h1>")[1].split("sign in")[0]


def test_mail_is_sent_if_configured_and_otherwise_the_page_says_so(console, settings):
    assert "No mail server is configured" in console.get(f"{LIST}new/").text
    invite(console)
    assert mail.outbox == []

    settings.SENDS_EMAIL = True
    answer = invite(console, emails="one@example.com, two@example.com")
    assert [message.to for message in mail.outbox] == [["one@example.com"], ["two@example.com"]]
    assert answer.context["links"][0].link in mail.outbox[0].body
    assert "Email sent" in answer.text


def test_a_new_link_replaces_the_old_one(console, invited):
    invitation, old = invited("mika@example.com")

    [link] = console.post(f"{LIST}{invitation.pk}/renew/").context["links"]

    assert accept(old).status_code == 404
    assert Client().get(link.link).status_code == 200


def test_a_revoked_invitation_can_be_restored(console, invited):
    invitation, token = invited()
    console.post(f"{LIST}{invitation.pk}/revoke/")
    assert accept(token).status_code == 404

    page = console.get(LIST).text
    assert f"{LIST}{invitation.pk}/restore/" in page
    console.post(f"{LIST}{invitation.pk}/restore/")
    assert accept(token).status_code == 302


def test_single_sign_on_creates_the_invited_account(client, provider, settings, invited):
    use(settings, oidc_create=False)
    provider.person |= {"email": "mika@example.com", "email_verified": True}
    invitation, token = invited("mika@example.com", role=Role.REVIEWER)
    assert "Sign in with Acme" in client.get(f"/invite/{token}/").text

    client.post(f"/invite/{token}/sso/")
    signed_in(client)

    user = User.objects.get(email="mika@example.com")
    assert roles.get_role(user) == Role.REVIEWER
    invitation.refresh_from_db()
    assert (invitation.uses, invitation.email) == (1, "")


def test_single_sign_on_with_another_address_is_rejected(client, provider, invited):
    provider.person |= {"email": "eve@example.com", "email_verified": True}
    invitation, token = invited("mika@example.com")

    client.post(f"/invite/{token}/sso/")
    answer = signed_in(client)

    assert "for a different address" in answer.text
    invitation.refresh_from_db()
    assert invitation.uses == 0
