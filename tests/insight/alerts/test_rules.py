"""Which changes of problems become messages, and to whom."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from agents.accounts.users import profiles
from agents.insight.alerts import rules
from agents.insight.alerts.models import AlertChannel, AlertRule, Delivery, Notification
from agents.insight.problems.models import Problem, ProblemChange
from agents.models import Agent, AuditEntry, Deletion

pytestmark = pytest.mark.django_db


def test_a_new_problem_is_announced_once(happen, webhook, add_rule):
    add_rule(webhook)
    happen()
    assert (rules.announce(), rules.announce()) == (1, 0)

    sent = Delivery.objects.get().payload
    assert sent["type"] == "problem.new"
    assert sent["text"].startswith("New problem: City ‹number› is unknown\n")
    assert sent["data"]["problem"]["url"].startswith(
        "https://ashiato.example.com/admin/problems/"
    )
    assert (sent["data"]["problem"]["cause"], sent["data"]["problem"]["agent_version"]) == (
        "weather",
        2,
    )


@pytest.mark.parametrize(
    ("action", "event"),
    [("found", "problem.new"), ("reopened", "problem.reopened"), ("spiked", "problem.spiking")],
)
def test_each_event_has_its_own_rule(happen, webhook, add_rule, action, event):
    for kind in ("problem.new", "problem.reopened", "problem.spiking"):
        add_rule(webhook, event=kind)
    happen(action, details={"recent": 30, "usual": 1.5} if action == "spiked" else {})
    rules.announce()

    assert Delivery.objects.get().event == event


def test_within_the_quiet_period_nothing_is_repeated(happen, webhook, add_rule):
    add_rule(webhook, event="problem.reopened", quiet_minutes=60)
    for minutes in (0, 30, 61):
        happen("reopened")
        rules.announce(timezone.now() + timedelta(minutes=minutes))

    assert Delivery.objects.count() == 2


@pytest.mark.parametrize("off", ["rule", "channel", "ignored", "old", "other agent"])
def test_what_is_not_announced(happen, webhook, add_rule, off):
    rule = add_rule(webhook, enabled=off != "rule")
    AlertChannel.objects.update(enabled=off != "channel")
    Problem.objects.update(status="ignored" if off == "ignored" else "open")
    if off == "other agent":
        rule.agents.add(Agent.objects.create(name="other"))
    age = timedelta(days=2 if off == "old" else 0)
    happen(at=timezone.now() - age)

    assert rules.announce() == 0
    assert ProblemChange.objects.get().is_announced


def test_people_are_told_only_of_what_they_can_see(happen, add_rule, person, stranger):
    person.user_permissions.add(Permission.objects.get(codename="view_problem"))
    channel = AlertChannel.objects.create(name="Team", kind="notification")
    channel.people.set([person, stranger])
    add_rule(channel)
    happen()
    rules.announce()

    assert [row.user for row in Notification.objects.all()] == [person]


def test_mail_is_in_the_language_of_its_reader(happen, add_rule, administrator):
    administrator.email = "root@example.com"
    administrator.save()
    profiles.save_setting(administrator, language="ja")
    channel = AlertChannel.objects.create(
        name="Mail", kind="email", addresses="team@example.com\nteam@example.com"
    )
    channel.people.add(administrator)
    add_rule(channel)
    happen()
    rules.announce()

    rows = {row.address: row for row in Delivery.objects.all()}
    assert rows.keys() == {"root@example.com", "team@example.com"}
    assert rows["team@example.com"].subject.startswith("New problem")
    assert "<h2>New problem" in rows["team@example.com"].html
    assert rows["root@example.com"].person == administrator


def test_a_rule_without_channels_says_nothing(happen):
    AlertRule.objects.create(name="empty")
    happen()

    assert rules.announce() == 0


def test_undoing_the_deletion_of_an_agent_enables_its_rules(admin_client, webhook, add_rule):
    on = add_rule(webhook)
    off = add_rule(webhook, event="problem.reopened", enabled=False)
    agent = Agent.objects.create(name="first")
    on.agents.add(agent)
    off.agents.add(agent)
    admin_client.post(f"/admin/agents/agent/{agent.pk}/delete/", {"post": "yes"})
    entry = AuditEntry.objects.filter(subject__contains="alertrule").get()
    assert entry.detail["changes"] == {"enabled": [True, False]}

    url = reverse("admin:restore_deleted")
    admin_client.post(f"{url}?items=agents.Agent:{Deletion.objects.get().pk}")

    found = {rule.pk: (rule.enabled, rule.agents.get()) for rule in AlertRule.objects.all()}
    assert found == {on.pk: (True, agent), off.pk: (False, agent)}


@pytest.mark.parametrize("at_once", [True, False])
def test_a_rule_whose_agents_are_deleted_does_not_apply_to_all(
    happen, webhook, add_rule, at_once
):
    rule = add_rule(webhook)
    agents = [Agent.objects.create(name=name) for name in ("first", "second")]
    rule.agents.set(agents)
    gone = Agent.objects.filter(pk__in=[agent.pk for agent in agents])
    for rows in [gone] if at_once else agents:
        rule.refresh_from_db()
        assert rule.enabled
        rows.delete()
    happen()

    assert rules.announce() == 0
    rule.refresh_from_db()
    assert not rule.enabled


def test_one_pass_announces_more_than_a_batch(happen, webhook, add_rule, monkeypatch):
    monkeypatch.setattr(rules, "BATCH", 2)
    add_rule(webhook, quiet_minutes=0)
    for _ in range(5):
        happen()

    assert rules.announce() == 5
