"""Nobody grants more than they have: roles, restored invitations, sessions and quotas."""

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import Group, Permission, User

from agents.accounts.models import Invitation
from agents.accounts.users import invitations
from agents.accounts.users.forms import grantable_roles
from agents.accounts.users.quota_view import QuotaForm
from agents.console.system.config_files.installation import GroupKind
from agents.console.system.settings_form import SettingsForm
from agents.models import Quota
from agents.models.catalog.rights import Role
from tests.conftest import as_user

pytestmark = pytest.mark.django_db

PEOPLE, INVITATIONS = "/admin/auth/user/", "/admin/people/invitation/"


@pytest.fixture
def clerk(django_user_model):
    """Staff who edit users and invitations, and can do nothing else."""
    user = django_user_model.objects.create_user("clerk", is_staff=True)
    names = ("view_user", "change_user", "add_user", "view_invitation", "change_invitation")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


def test_staff_cant_make_themselves_administrator(clerk):
    sent = {"username": "clerk", "role": Role.ADMINISTRATOR, "is_active": "on"}

    answer = as_user(clerk).post(f"{PEOPLE}{clerk.pk}/change/", sent)

    assert "role" in answer.context["adminform"].form.errors
    assert not clerk.groups.exists()
    assert Role.ADMINISTRATOR not in grantable_roles(clerk)


def test_a_revoked_invitation_isnt_restored_by_somebody_who_couldnt_send_it(
    clerk, administrator
):
    terms = invitations.Terms(role=Role.ADMINISTRATOR)
    invitation, _token = invitations.create(administrator, terms)
    invitations.revoke(Invitation.objects.all(), administrator)

    answer = as_user(clerk).post(f"{INVITATIONS}{invitation.pk}/restore/")

    invitation.refresh_from_db()
    assert (answer.status_code, invitation.state) == (403, "revoked")


def test_a_new_link_doesnt_reset_the_uses_of_an_invitation(administrator):
    invitation, _token = invitations.create(administrator, invitations.Terms(role=Role.PERSON))
    Invitation.objects.update(uses=1)  # accepted by another request meanwhile

    invitations.renew(invitation, administrator)

    assert Invitation.objects.get().uses == 1


def test_viewers_of_users_cant_end_their_sessions(clerk, rf):
    clerk.user_permissions.set(Permission.objects.filter(codename="view_user"))
    request = rf.get(PEOPLE)
    request.user = clerk

    assert not site.get_model_admin(User).get_actions(request)


def test_a_cost_that_no_column_can_hold_is_refused(person):
    form = QuotaForm(person, {"cost-day-mode": "limit", "cost-day": "9999999999999.00"})

    assert "cost-day" in form.errors
    huge = SettingsForm({"quota_cost_day": "1e999999"})
    assert "quota_cost_day" in huge.errors


def test_a_file_changes_quotas_only_with_permission_for_them(clerk):
    group = Group.objects.create(name="Sales")
    kind, wanted = GroupKind("groups", Group), {"limits": {"runs_per_day": None}}

    assert kind.keep(group, wanted, clerk)
    assert not kind.keep(group, {"limits": {}}, clerk)
    assert not Quota.objects.exists()
    assert [*kind.mismatches({"limits": {"runs_per_day": 2**63}})]
