"""A group on one page: members, what they can use, its limit and its permissions."""

import pytest
from django.contrib.auth.models import Group, Permission

from agents.access import audit
from agents.accounts.users import group_switches, roles
from agents.accounts.users.group_form import ACCESS, main_limit
from agents.accounts.users.group_switches import SWITCHES
from agents.console.navigation import MENU
from agents.models import Agent, AgentVersion, AuditEntry, Collection, Quota
from tests.conftest import as_staff, as_user

pytestmark = pytest.mark.django_db

GROUPS = "/admin/auth/group/"


@pytest.fixture
def sales():
    return Group.objects.create(name="Sales")


def page_of(group):
    return f"{GROUPS}{group.pk}/change/"


def sent(group, **changes):
    """What a browser sends: the group as it is, and `changes`."""
    values = {"name": group.name, "limit_window": "day", "limit_for": "shared"}
    values |= {
        kind.field: [row.pk for row in kind.listed(group) if row.is_on] for kind in ACCESS
    }
    names = group_switches.permissions_of(group)
    values["switches"] = [switch.key for switch in group_switches.switches_on(names)]
    if saved := main_limit(group):
        values |= {"limit": saved.limit / 1_000_000, "limit_window": saved.window}
    return values | changes


def errors(answer):
    return answer.context["adminform"].form.errors


def test_a_group_is_saved_with_one_button(console, sales, agent, person, stranger):
    agent = Agent.objects.get(pk=agent.pk)
    shelf = Collection.objects.create(name="Shelf")
    person.email = "ada@example.com"
    person.save()
    sales.user_set.add(stranger)

    changes = {"agents": [agent.pk], "collections": [shelf.pk], "limit": "5"}
    changes |= {"add": ["Ada@example.com", ""], "remove": [stranger.pk], "switches": ["audit"]}
    console.post(page_of(sales), sent(sales, **changes))

    assert [user.username for user in sales.user_set.all()] == ["ada"]
    assert [*agent.groups.all()] == [*shelf.groups.all()] == [sales]
    assert group_switches.permissions_of(sales) == {"agents.view_auditentry"}
    limit = Quota.objects.get(group=sales)
    assert (limit.limit, limit.measure, limit.window, limit.is_shared) == (
        5_000_000,
        "cost",
        "day",
        True,
    )


def test_a_new_group_is_complete_at_once(console, person):
    console.post(f"{GROUPS}add/", {"name": "Lab", "add": ["ada"], "limit": "2.5"})

    group = Group.objects.get(name="Lab")
    assert group.user_set.get() == person
    assert Quota.objects.get(group=group).limit == 2_500_000


def test_every_page_of_the_console_has_a_switch():
    pages = {tab.page.lower() for entry in MENU for tab in entry.tabs}
    granted = {name for switch in SWITCHES for name in switch.permissions}

    models = {page for page in pages if ":" not in page}
    viewable = {name.replace(".view_", ".") for name in granted}
    assert models <= viewable
    assert {tab.permission for e in MENU for tab in e.tabs if tab.permission} <= granted
    known = Permission.objects.values_list(*group_switches.PERMISSION_COLUMNS)
    assert granted <= {f"{app}.{codename}" for app, codename in known}


def test_permissions_without_a_switch_stay(admin_client, console, sales):
    sales.permissions.set(Permission.objects.filter(codename__in=["rerun_runs", "view_agent"]))

    admin_client.post(page_of(sales), sent(sales, switches=["guardrails"]))
    assert "agents.add_guardrailpattern" in group_switches.permissions_of(sales)
    admin_client.post(page_of(sales), sent(sales, switches=[]))

    assert group_switches.permissions_of(sales) == {"agents.rerun_runs", "agents.view_agent"}
    assert len(admin_client.get(page_of(sales)).context["other_permissions"]) == 2
    assert (
        "permissions"
        in admin_client.get(f"{page_of(sales)}?advanced=1").context["adminform"].form.fields
    )
    form = console.get(f"{page_of(sales)}?advanced=1").context["adminform"].form
    assert "permissions" not in form.fields


def test_nobody_grants_or_gives_more_than_they_have(sales, agent, person, administrator):
    rights = ("view_group", "change_group", "change_user", "view_user", "view_agent")
    client = as_staff(person, *rights)

    refused = client.post(page_of(sales), sent(sales, switches=["agents"]))
    assert "switches" in errors(refused)
    assert "add" in errors(client.post(page_of(sales), sent(sales, add=["root"])))
    client.post(page_of(sales), sent(sales, agents=[agent.pk], limit="5"))

    assert not sales.permissions.exists()
    assert not sales.user_set.exists()
    assert not Agent.objects.filter(groups=sales).exists()
    assert not Quota.objects.exists()


def test_members_of_a_group_with_console_switches_can_open_the_console(console, sales, person):
    def home_status():
        person.refresh_from_db()
        return as_user(person).get("/admin/").status_code

    sales.user_set.add(person)
    assert home_status() == 302
    console.post(page_of(sales), sent(sales, switches=["guardrails"]))
    assert home_status() == 200
    assert as_user(person).get("/admin/agents/guardrailpattern/").status_code == 200
    assert as_user(person).get("/admin/agents/agent/").status_code == 403

    roles.set_role(person, roles.Role.PERSON)
    assert home_status() == 200
    console.post(page_of(sales), sent(sales, remove=[person.pk]))
    assert home_status() == 302


def test_users_who_are_added_in_the_list_can_open_the_console(console, sales, person):
    group_switches.set_switches(sales, ["limits"])
    sent = {"action": "add_to_group", "group": sales.pk, "_selected_action": [person.pk]}

    console.post("/admin/auth/user/", {**sent, "index": "0"})

    person.refresh_from_db()
    assert person.is_staff


def test_the_rights_of_reviewers_open_no_console(console, sales, person):
    sales.user_set.add(person)

    console.post(page_of(sales), sent(sales, switches=["review"]))

    person.refresh_from_db()
    assert not person.is_staff
    assert person.has_perm("agents.review_runs")


def test_the_console_is_closed_to_members_of_a_deleted_group(console, sales, person):
    group_switches.set_switches(sales, ["alerts"])
    console.post(page_of(sales), sent(sales, add=["ada"]))
    person.refresh_from_db()
    assert person.is_staff

    console.post(f"{GROUPS}{sales.pk}/delete/", {"post": "yes"})

    person.refresh_from_db()
    assert not person.is_staff


def test_nothing_becomes_open_to_everyone_by_taking_it_from_its_last_group(
    console, sales, agent
):
    Agent.objects.get(pk=agent.pk).groups.add(sales)

    answer = console.post(page_of(sales), sent(sales, agents=[]))

    assert "agents" in errors(answer)
    assert Agent.objects.filter(groups=sales).exists()


def test_what_an_agent_is_open_to_is_in_its_history(console, sales, agent):
    console.post(page_of(sales), sent(sales, agents=[agent.pk]))

    newest = AgentVersion.objects.filter(agent=agent.pk).order_by("number").last()
    assert newest.number == 2
    assert newest.snapshot["groups"] == ["Sales"]
    entry = AuditEntry.objects.get(action=audit.CHANGED, detail__name=agent.name)
    assert entry.detail["changes"]["groups"] == [[], ["Sales"]]


def test_a_limit_is_moved_and_deleted_and_others_stay(console, sales):
    Quota.objects.create(group=sales, measure="tokens", window="day", limit=500)
    console.post(page_of(sales), sent(sales, limit="5"))

    moved = sent(sales, limit="7", limit_window="month", limit_for="each")
    console.post(page_of(sales), moved)
    limit = Quota.objects.get(group=sales, measure="cost")
    assert (limit.limit, limit.window, limit.is_shared) == (7_000_000, "month", False)

    console.post(page_of(sales), sent(sales, limit=""))
    assert Quota.objects.get(group=sales).measure == "tokens"
    assert AuditEntry.objects.filter(action="rights.quota").count() == 3


def test_a_limit_that_exists_already_is_not_overwritten(console, sales):
    for window in ("day", "month"):
        Quota.objects.create(
            group=sales, is_shared=True, measure="cost", window=window, limit=1_000_000
        )

    answer = console.post(page_of(sales), sent(sales, limit_window="month", limit="9"))

    assert "limit" in errors(answer)
    assert set(Quota.objects.values_list("limit", flat=True)) == {1_000_000}


def test_members_have_entries_of_their_own_in_the_audit_log(console, sales, person):
    console.post(page_of(sales), sent(sales, add=["ada"], name="Shop"))

    of_group = AuditEntry.objects.get(action=audit.CHANGED)
    assert set(of_group.detail["changes"]) == {"name"}
    assert AuditEntry.objects.filter(action="rights.changed").exists()


def test_unknown_members_are_named(console, sales):
    answer = console.post(page_of(sales), sent(sales, add=["nobody, root"], limit="5"))

    assert errors(answer)["add"]
    assert not Quota.objects.exists()


def test_users_are_suggested_by_name_and_address_to_those_who_can_add_them(
    console, person, stranger
):
    person.email = "lovelace@example.com"
    person.save()

    def names(client, typed):
        answer = client.get(f"{GROUPS}people/", {"name": typed})
        return [user.username for user in answer.context["people"]]

    assert names(console, "lovel") == names(console, "ad") == ["ada"]
    assert as_staff(stranger, "view_group").get(f"{GROUPS}people/").status_code == 403


def test_a_change_of_someone_else_meanwhile_is_rejected(console, sales, agent):
    seen = console.get(page_of(sales)).context["seen"]
    console.post(page_of(sales), sent(sales, limit="5", _seen=seen))

    answer = console.post(page_of(sales), sent(sales, limit="9", _seen=seen))

    assert answer.status_code == 200
    assert Quota.objects.get(group=sales).limit == 5_000_000
