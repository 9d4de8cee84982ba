"""Alerts in the configuration file: channels without their secrets, rules and summaries."""

from datetime import time

import pytest
import yaml

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.insight.alerts.models import AlertChannel, AlertRule, SummarySchedule
from agents.models import Agent, ReviewScope

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = ("alert_channels", "alert_rules", "summaries")
URL, SECRET = "https://hooks.example.com/sentinel-path", "sentinel-secret"


@pytest.fixture
def alerts(agent, person):
    person.is_staff = True
    person.save()
    about = {"kind": "webhook", "url": URL, "secret": SECRET}
    slack = AlertChannel.objects.create(name="Slack", **about)
    mail = AlertChannel.objects.create(name="Mail", kind="email", addresses="a@example.com")
    mail.people.add(person)
    rule = AlertRule.objects.create(name="New", quiet_minutes=5)
    rule.agents.add(agent)
    rule.channels.set([slack, mail])
    row = SummarySchedule.objects.create(name="Weekly", at=time(7, 30), weekday=2)
    row.channels.add(mail)


def export_text(user=None):
    return export(user or TerminalUser(), ExportSelection(kinds=KINDS))


def problems(text, user=None):
    outcome = preview_file(text, user or TerminalUser())
    return [
        p.message for p in [*outcome.problems, *(q for t in outcome.items for q in t.problems)]
    ]


def test_a_file_has_alerts_without_secrets(alerts, agent, person):
    text = export_text()
    told = yaml.safe_load(text)

    slack = {
        "kind": "webhook",
        "events": [],
        "agent": None,
        "with_answer": False,
        "enabled": True,
        "has_url": True,
    }
    assert told["alert_channels"]["Slack"] == slack
    assert told["alert_channels"]["Mail"]["people"] == [person.username]
    assert told["alert_rules"]["New"]["agents"] == [agent.name]
    assert told["alert_rules"]["New"]["channels"] == ["Mail", "Slack"]
    assert told["summaries"]["Weekly"]["at"] == "07:30"
    assert "sentinel" not in text


def test_importing_an_export_changes_nothing(alerts):
    text = export_text()

    assert preview_file(text, TerminalUser(), remove=True).is_empty
    assert problems(text) == []


def test_an_import_recreates_alerts_and_says_what_to_enter(alerts):
    text = export_text()
    for model in (AlertRule, SummarySchedule, AlertChannel):
        model.objects.all().delete()
    outcome = apply_file(text, TerminalUser())

    assert outcome.is_done, outcome
    assert {t.name: t.needs for t in outcome.items if t.needs} == {"Slack": ("URL",)}
    assert AlertChannel.objects.get(name="Slack").secret
    assert SummarySchedule.objects.get().next_at is not None
    assert AlertChannel.objects.get(name="Mail").base_url == "http://testserver/"
    AlertChannel.objects.filter(name="Slack").update(url=URL, secret=SECRET)
    assert export_text() == text


def test_a_changed_channel_keeps_its_url_and_secret(alerts):
    text = export_text().replace("false\n    enabled: true", "false\n    enabled: false", 1)
    assert apply_file(text, TerminalUser()).is_done

    slack = AlertChannel.objects.get(name="Slack")
    assert (slack.enabled, slack.url, slack.secret.reveal()) == (False, URL, SECRET)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("kind: webhook", "kind: pigeon"), "Must be notification, email or webhook."),
        (("kind: webhook", "kind: email"), "Unknown setting: has_url."),
        (("has_url: true", "url: https://x.example.com"), "Unknown setting: url."),
        (("with_answer: false", "has_secret: abc"), "Secrets can't be imported from a file."),
        (("    - ada\n", "    - nemo\n"), "There's no user named nemo."),
        (("    - helper\n", "    - nemo\n"), "There's no agent named nemo."),
        (("a@example.com", "nonsense"), "nonsense isn't an email address."),
        (("07:30", "25:30"), "Enter a valid time."),
        (("event: problem.new", "event: problem.old"), "problem.old is not one of"),
    ],
)
def test_a_wrong_file_is_rejected(alerts, change, sentence):
    text = export_text()
    assert change[0] in text

    assert any(sentence in said for said in problems(text.replace(*change)))


@pytest.mark.parametrize("values", [{"is_staff": False}, {"is_active": False}])
def test_only_people_whom_the_page_offers_are_imported(alerts, person, values):
    text = export_text().replace("a@example.com", "b@example.com")
    type(person).objects.update(**values)

    assert problems(text) == ["ada has no active account with console access."]


def test_a_reviewer_with_a_scope_has_no_alerts_in_the_file(alerts, administrator):
    text = export_text()
    ReviewScope.objects.create(user=administrator).agents.set(Agent.objects.all())

    assert yaml.safe_load(export_text(administrator)) == {"ashiato": 1}
    changed = text.replace("quiet_minutes: 5", "quiet_minutes: 6")
    assert "You don't have permission to change alert rules." in problems(
        changed, administrator
    )
