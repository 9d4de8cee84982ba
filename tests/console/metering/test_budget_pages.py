"""The console's page of all limits."""

import pytest
from django.contrib.auth.models import Group

from agents.access import api_keys
from agents.console.metering.budgets import budget_rows
from agents.console.system.config_files import exporter, importer
from agents.metering.budgets.windows import window_start
from agents.models import AuditEntry, BudgetCounter, Quota

pytestmark = pytest.mark.django_db


def add(client, **form):
    form = {"measure": "cost", "window": "day", "amount": "5", **form}
    return client.post("/admin/agents/quota/add/", form)


def spend(scope, micros):
    start = window_start("day")
    BudgetCounter.objects.create(scope=scope, window="day", start=start, cost=micros)


def test_a_limit_is_saved_for_each_scope(admin_client, agent, person):
    group = Group.objects.create(name="Sales")

    add(admin_client, scope="all")
    add(admin_client, scope="agent", agent=agent.pk, group=group.pk)
    add(admin_client, scope="group_shared", group=group.pk)
    add(admin_client, scope="user", user=person.pk, amount="0.25")

    rows = {(str(row.owner or ""), row.is_shared, row.limit) for row in Quota.objects.all()}
    assert rows == {
        ("", True, 5_000_000),
        (str(agent), False, 5_000_000),
        ("Sales", True, 5_000_000),
        (person.username, False, 250_000),
    }
    assert AuditEntry.objects.filter(action="console.added").count() >= 4


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"scope": "agent"}, "Choose one."),
        ({"scope": "all", "amount": ""}, "Enter a number."),
        ({"scope": "all", "measure": "tokens", "amount": "1.5"}, "Enter a whole number."),
        ({"scope": "tool", "measure": "runs"}, "limited by calls"),
        ({"scope": "all", "unlimited": "on"}, "Only users and groups"),
    ],
)
def test_a_wrong_limit_gets_a_sentence(admin_client, form, sentence):
    response = add(admin_client, **form)

    assert sentence in response.text
    assert not Quota.objects.exists()


def test_a_limit_of_an_api_key_has_its_runs_and_is_in_no_file(admin_client, admin_user, person):
    key = api_keys.create(person, "Nightly report", ["ask"])[0]
    add(admin_client, scope="key", api_key=key.pk, user=person.pk)
    row = Quota.objects.get()
    spend(f"key:{key.pk}", 4_500_000)

    assert (row.owner, row.user, row.limit) == (key, None, 5_000_000)
    [budget] = budget_rows([row])
    assert (budget.percent, budget.title) == (90, "Nightly report")
    assert "key%3A%22Nightly+report%22" in budget.runs_url
    page = admin_client.get("/admin/agents/quota/?scope=key&usage=near")
    assert list(page.context["cl"].result_list) == [row]
    found = admin_client.get(f"/admin/agents/apikey/{key.pk}/change/").context["budget_rows"]
    assert [shown.row for shown in found] == [row]
    everything = exporter.ExportSelection(kinds=["limits"])
    assert "Nightly report" not in exporter.export(admin_user, everything)


def test_a_second_limit_of_the_same_kind_is_refused_with_a_sentence(admin_client):
    add(admin_client, scope="all")

    assert "This limit already exists" in add(admin_client, scope="all").text


def test_the_list_says_what_is_used_and_marks_what_is_nearly_used_up(admin_client, agent):
    add(admin_client, scope="all")
    add(admin_client, scope="agent", agent=agent.pk)
    spend("all", 1_000_000)
    spend(f"agent:{agent.pk}", 4_200_000)

    shown = admin_client.get("/admin/agents/quota/").text
    near = admin_client.get("/admin/agents/quota/?usage=near").text

    assert "$5.00 per day" in shown
    assert "84%" in shown
    assert "$4.00" in shown
    assert "All users together</b>" in shown
    assert "All users together</b>" not in near


def test_only_the_amount_of_a_saved_limit_changes(admin_client):
    add(admin_client, scope="all")
    row = Quota.objects.get()
    form = {"amount": "7.50", "scope": "default", "measure": "runs"}

    admin_client.post(f"/admin/agents/quota/{row.pk}/change/", form)

    row.refresh_from_db()
    assert (row.limit, row.measure, row.is_shared) == (7_500_000, "cost", True)


def test_a_deleted_limit_can_be_restored(admin_client):
    add(admin_client, scope="all")
    row = Quota.objects.get()

    response = admin_client.post(
        f"/admin/agents/quota/{row.pk}/delete/", {"post": "yes"}, follow=True
    )

    assert not Quota.objects.exists()
    assert "Undo" in response.text


def test_limits_are_exported_and_imported_by_name(admin_user, agent):
    Quota.objects.create(agent=agent, measure="cost", window="day", limit=5_000_000)
    Quota.objects.create(is_shared=True, measure="calls", window="minute", limit=60)
    text = exporter.export(admin_user, exporter.ExportSelection(kinds=["limits"]))
    Quota.objects.all().delete()

    assert importer.apply_file(text, admin_user).is_done

    assert f"agent/{agent.name}/cost_per_day" in text
    assert {(row.measure, row.limit) for row in Quota.objects.all()} == {
        ("cost", 5_000_000),
        ("calls", 60),
    }
