"""Pages of people in the console: lists, quotas and reasons."""

import pytest
from django.contrib.auth.models import Group

from agents.accounts.users import roles
from agents.models import Agent, AuditEntry, Quota, Run
from agents.models.catalog.rights import Role
from tests.conftest import as_staff
from tests.run_usage import record_usage

pytestmark = pytest.mark.django_db

PEOPLE, GROUPS = "/admin/auth/user/", "/admin/auth/group/"


@pytest.fixture
def sales(person):
    group = Group.objects.create(name="Sales")
    person.groups.add(group)
    return group


def limits(**values):
    """Return the quota form as a browser sends it."""
    keys = [(m, w) for m in ("runs", "messages", "tokens", "cost") for w in ("day", "month")]
    sent = {f"{m}-{w}-mode": "inherit" for m, w in keys}
    for name, value in values.items():
        key = name.replace("_", "-")
        sent |= (
            {f"{key}-mode": "none"} if value is None else {f"{key}-mode": "limit", key: value}
        )
    return sent


def test_the_list_has_state_usage_and_filters(console, person, sales, stranger):
    roles.set_role(stranger, Role.REVIEWER)
    about = {"user": person, "query": "q", "status": "completed"}
    record_usage(Run.objects.create(**about, prompt_tokens=1200, cost=0.5))
    page = console.get(PEOPLE).text
    assert "1,200 tokens · $0.5000" in page
    assert "Invited</span>" in page

    def names(query):
        return {
            row.username for row in console.get(f"{PEOPLE}?{query}").context["cl"].result_list
        }

    assert names("role=reviewer") == {"eve"}
    assert names("role=administrator") == {"grace"}
    assert names(f"groups__id__exact={sales.pk}") == {"ada"}
    person.is_active = False
    person.save()
    assert names("state=deactivated") == {"ada"}


def test_deactivating_several_skips_oneself_and_can_be_undone(
    console, helper, person, administrator
):
    people = [helper.pk, person.pk, administrator.pk]
    sent = {"action": "deactivate", "_selected_action": people, "index": "0"}
    page = console.post(PEOPLE, sent, follow=True).text

    assert "1 user disabled." in page
    assert "2 users were skipped" in page
    person.refresh_from_db()
    assert not person.is_active
    console.post(f"{PEOPLE}reactivate/", {"people": f"{person.pk},{administrator.pk}"})
    person.refresh_from_db()
    assert person.is_active


def test_several_are_added_to_a_group_that_may_be_granted(console, person, stranger):
    group = Group.objects.create(name="Lab")
    sent = {"action": "add_to_group", "group": group.pk, "index": "0"}

    console.post(PEOPLE, {**sent, "_selected_action": [person.pk, stranger.pk]})
    assert group.user_set.count() == 2

    role = Group.objects.get(name=Role.ADMINISTRATOR)
    console.post(PEOPLE, {**sent, "group": role.pk, "_selected_action": [person.pk]})
    assert not role.user_set.filter(pk=person.pk).exists()


def test_quotas_of_a_user_are_saved_and_audited(console, person, sales):
    Quota.objects.create(group=sales, measure="tokens", window="day", limit=500)
    page = console.get(f"{PEOPLE}{person.pk}/change/").text
    assert "Group Sales" in page

    console.post(f"{PEOPLE}{person.pk}/quotas/", limits(tokens_day=None, cost_month="2.5"))
    assert Quota.objects.get(user=person, measure="cost").limit == 2_500_000
    assert Quota.objects.get(user=person, measure="tokens").limit is None
    assert AuditEntry.objects.filter(action="rights.quota").count() == 1
    console.post(f"{PEOPLE}{person.pk}/quotas/", limits())
    assert not Quota.objects.filter(user=person).exists()


def test_the_page_says_why_an_agent_is_open(console, agent, person, sales, stranger):
    Agent.objects.get(pk=agent.pk).groups.add(sales)

    assert "Member of Sales." in console.get(f"{PEOPLE}{person.pk}/change/").text
    assert "Only for Sales." in console.get(f"{PEOPLE}{stranger.pk}/change/").text
    assert agent.name in console.get(f"{GROUPS}{sales.pk}/change/").text


def test_nobody_changes_quotas_or_states_beyond_their_rights(console, person, administrator):
    assert console.post(f"{PEOPLE}{administrator.pk}/quotas/", limits()).status_code == 404

    client = as_staff(person)
    assert client.post(f"{PEOPLE}reactivate/").status_code == 403
    assert client.post(f"{PEOPLE}{person.pk}/quotas/", limits()).status_code == 404


def test_the_roles_are_explained(console, person_client):
    page = console.get(f"{PEOPLE}roles/").text
    assert "Review other users&#x27; runs, with personal data masked" in page
    assert person_client.get(f"{PEOPLE}roles/").status_code == 302


def test_users_see_what_is_left(person_client, person, configure):
    assert "No limits apply to you." in person_client.get("/account/usage/").text
    configure(user_tokens=1000)
    run = Run.objects.create(user=person, query="q", status="completed", prompt_tokens=400)
    record_usage(run)
    Run.objects.create(query="of another", status="completed", prompt_tokens=4000)

    page = person_client.get("/account/usage/").text
    assert "600 tokens" in page
    assert page.count("<td>400</td>") == 2  # today and this month
    assert "resets " in page
