"""What reviewers with a scope see and change of alerts; other agents stay unnamed."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from agents.insight.alerts.models import AlertChannel, AlertRule, Delivery, SummarySchedule
from agents.insight.problems.models import Problem
from agents.insight.suggestions.models import Suggestion
from agents.models import Agent, ReviewScope
from tests.conftest import as_user
from tests.insight.alerts.conftest import SECRET

pytestmark = pytest.mark.django_db
RULES = reverse("admin:alerts_alertrule_changelist")


@pytest.fixture
def mine(agent):
    return Agent.objects.create(name="mine", model=agent.model)


@pytest.fixture
def client(administrator, mine):
    """A browser of an administrator with one agent in their scope."""
    administrator.is_superuser = False
    administrator.save()
    administrator.user_permissions.set(Permission.objects.all())
    ReviewScope.objects.create(user=administrator).agents.add(mine)
    return as_user(administrator)


@pytest.fixture
def deliver(webhook):
    def create(subject, **values):
        about = {"channel": webhook, "event": "problem.new", "next_at": timezone.now()}
        return Delivery.objects.create(subject=subject, **about | values)

    return create


def rule(name, *agents, channel=None):
    row = AlertRule.objects.create(name=name)
    row.agents.set(agents)
    row.channels.set([channel] if channel else [])
    return row


def page(row, name="change"):
    return reverse(f"admin:alerts_{row._meta.model_name}_{name}", args=[row.pk])


def test_deliveries_are_those_of_visible_problems(client, deliver, problem, mine):
    hidden = [deliver("Payroll is broken", problem=problem), deliver("All figures")]
    own = Problem.objects.get(pk=problem.pk)
    own.pk, own.fingerprint, own.agent = None, "b", mine
    own.save()
    deliver("Mine is broken", problem=own)
    html = client.get(reverse("admin:alerts_delivery_changelist")).text

    assert "Mine is broken" in html
    assert not [row for row in hidden if row.subject in html]
    assert {client.get(page(row)).status_code for row in hidden} == {302}


def test_a_channel_lists_only_visible_deliveries_and_rules(
    client, deliver, problem, webhook, agent
):
    deliver("Payroll is broken", problem=problem)
    rule("Payroll alerts", agent, channel=webhook)
    pages = client.get(page(webhook)).text
    pages += client.get(reverse("admin:alerts_alertchannel_changelist")).text

    assert "Slack" in pages
    assert "Payroll" not in pages


def test_alerts_about_merged_problems_stay_in_the_log(client, deliver, problem, mine):
    problem.agent = mine
    problem.save()
    other = Problem.objects.get(pk=problem.pk)
    other.pk, other.fingerprint, other.merged_into = None, "b", problem
    other.save()
    deliver("Merged", problem=other)

    assert "Merged" in client.get(reverse("admin:alerts_delivery_changelist")).text


def test_a_summary_is_only_in_the_log_of_its_recipient(client, deliver, administrator):
    deliver("My week", event="summary", person=administrator)
    deliver("Everybody's week", event="summary")
    html = client.get(reverse("admin:alerts_delivery_changelist")).text

    assert "My week" in html
    assert "Everybody" not in html


def test_failed_deliveries_outside_the_scope_are_not_sent_again(client, deliver, problem):
    row = deliver("A", problem=problem, status="failed")
    picked = {"action": "send_again", "_selected_action": [row.pk], "index": 0}
    client.post(reverse("admin:alerts_delivery_changelist"), picked)

    row.refresh_from_db()
    assert row.status == "failed"


def test_rules_that_name_other_agents_are_hidden_and_general_ones_read_only(
    client, agent, mine, webhook
):
    own, general = rule("Own", mine), rule("General")
    hidden = [rule("Hidden", agent), rule("Hidden too", agent, mine)]
    html = client.get(RULES).text

    assert own.name in html
    assert general.name in html
    assert "Hidden" not in html
    assert {client.get(page(row)).status_code for row in hidden} == {302}
    assert 'name="_save"' in client.get(page(own)).text
    assert 'name="_save"' not in client.get(page(general)).text
    assert client.post(page(general, "delete"), {"post": "yes"}).status_code == 403


def test_a_rule_names_only_agents_of_the_scope(client, agent, mine, webhook):
    values = {"name": "New", "event": "problem.new", "channels": [webhook.pk]}
    values |= {"quiet_minutes": 5, "enabled": "on"}
    form = client.get(f"{RULES}add/").text
    for chosen in ([], [agent.pk], [agent.pk, mine.pk], [mine.pk]):
        client.post(f"{RULES}add/", values | {"agents": chosen})

    assert f" {agent.name}" not in form.split('id="id_agents"')[1].split("id_channels")[0]
    assert [list(row.agents.all()) for row in AlertRule.objects.all()] == [[mine]]


def test_a_channel_that_gets_more_than_the_scope_is_read_only(client, webhook, mine):
    values = {"name": "Slack", "url": "https://evil.example.com/", "enabled": "on"}
    own = AlertChannel.objects.create(name="Own", kind="webhook", url="https://a.example.com")
    rule("General", channel=webhook)
    rule("Own", mine, channel=own)

    assert client.post(page(webhook), values).status_code == 403
    assert client.post(page(webhook, "test")).status_code == 404
    assert client.post(page(own), values | {"name": "Own"}).status_code == 302
    webhook.refresh_from_db()
    assert webhook.host == "hooks.example.com"


def test_summaries_of_all_agents_are_read_only(client, webhook):
    row = SummarySchedule.objects.create(name="Weekly")
    row.channels.add(webhook)

    assert client.get(page(row, "preview")).status_code == 200
    assert client.post(page(row, "send")).status_code == 404
    assert client.post(page(webhook), {"name": "Slack"}).status_code == 403
    answer = client.get(reverse("admin:alerts_summaryschedule_add"))
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "name", ["problems_problem", "suggestions_suggestion", "agents_experience"]
)
def test_filters_name_no_agents_outside_the_scope(
    client, administrator, agent, mine, problem, name
):
    agent.name = "payroll"
    agent.save()
    # A filter with a single choice isn't displayed.
    second = Agent.objects.create(name="second", model=agent.model)
    administrator.review_scope.agents.add(second)
    now = timezone.now()
    Problem.objects.update(agent_name=agent.name)
    about = {"kind": "instruction", "first_seen": now, "last_seen": now}
    for one in (agent, mine):
        Suggestion.objects.create(agent=one, subject=one.name, **about)
    answer = client.get(reverse(f"admin:{name}_changelist"))
    spec = next(one for one in answer.context["cl"].filter_specs if one.title == "agent")

    assert [label for _pk, label in spec.lookup_choices] == ["mine", "second"]
    assert "payroll" not in answer.text


def test_an_administrator_without_a_scope_sees_everything(
    administrator, deliver, problem, webhook, agent
):
    deliver("Payroll", problem=problem)
    deliver("Figures", event="summary")
    row = rule("Payroll alerts", agent, channel=webhook)

    assert Delivery.objects.for_user(administrator).count() == 2
    assert AlertRule.objects.editable_by(administrator).get() == row
    assert AlertChannel.objects.editable_by(administrator).get() == webhook


def test_who_cannot_see_problems_sees_no_alerts_about_them(person, deliver, problem):
    deliver("Payroll", problem=problem)
    person.user_permissions.set(Permission.objects.filter(codename="view_delivery"))

    assert not Delivery.objects.for_user(person).exists()


def test_a_channel_with_deliveries_can_be_deleted(administrator, deliver, problem, webhook):
    deliver("Payroll", problem=problem)
    client = as_user(administrator)
    question = client.get(page(webhook, "delete")).text
    client.post(page(webhook, "delete"), {"post": "yes"})

    assert "Payroll" not in question
    assert not AlertChannel.objects.exists()


def test_a_secret_is_not_displayed_to_those_who_may_only_look(client, webhook):
    rule("General", channel=webhook)

    assert SECRET not in client.get(page(webhook)).text
    assert "https://hooks.example.com/a" not in client.get(page(webhook)).text
    assert "hooks.example.com" in client.get(page(webhook)).text


def test_what_waits_for_other_agents_is_not_redirected(client, webhook, deliver, problem, mine):
    row = deliver("Payroll is broken", problem=problem)
    values = {"name": "Slack", "url": "https://other.example.com/", "enabled": "on"}
    assert client.post(page(webhook), values).status_code == 403

    Problem.objects.update(agent=mine)
    assert client.post(page(webhook), values).status_code == 302
    Problem.objects.update(agent=None)
    Delivery.objects.filter(pk=row.pk).update(status="sent")
    assert client.post(page(webhook), values).status_code == 302
