"""Schedules of agents and triggers in the configuration file."""

import pytest
import yaml
from django.contrib.auth.models import Permission, User

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.insight.alerts.models import AlertChannel
from agents.models import Agent, Schedule, Trigger

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = ("agents", "triggers", "alert_channels")


@pytest.fixture
def starts(agent, person):
    """A schedule and a trigger of a user, which send their answers somewhere."""
    team = AlertChannel.objects.create(name="Team", kind="email", addresses="a@example.com")
    schedule = Schedule.objects.create(
        agent=agent, question="What is new?", user=person, cron="0 9 * * 1-5", into_chat=True
    )
    trigger = Trigger(
        name="issues",
        agent=agent,
        question="Sort ${payload.title}.",
        user=person,
        verification="github",
        result_channel=team,
    )
    trigger.new_secret()
    trigger.save()
    return schedule, trigger


def export_text():
    return export(TerminalUser(), ExportSelection(kinds=KINDS))


def messages(outcome):
    return [problem.message for item in outcome.items for problem in item.problems]


def test_a_file_has_them_without_address_and_secret(starts, agent, person):
    text = export_text()
    content = yaml.safe_load(text)

    assert content["agents"][agent.name]["schedules"] == [
        {
            "user": person.username,
            "cron": "0 9 * * 1-5",
            "question": "What is new?",
            "overlap": "skip",
            "into_chat": True,
            "result_channel": None,
            "enabled": True,
        }
    ]
    trigger = content["triggers"]["issues"]
    assert trigger["has_secret"] is True
    assert trigger["user"] == person.username
    assert trigger["result_channel"] == "Team"
    assert starts[1].public_id not in text
    assert "whsec_" not in text


def test_importing_an_export_changes_nothing(starts):
    outcome = preview_file(export_text(), TerminalUser(), remove=True)

    assert messages(outcome) == []
    assert outcome.is_empty


def test_an_import_recreates_them(starts):
    text = export_text()
    address = starts[1].public_id
    Schedule.objects.all().delete()
    Trigger.objects.all().delete()

    outcome = apply_file(text, TerminalUser())

    assert outcome.is_done, messages(outcome)
    trigger = Trigger.objects.get()
    assert (trigger.target, trigger.verification) == ("helper", "github")
    assert trigger.public_id != address
    assert not trigger.secret
    # Until its owner makes a secret, it starts nothing.
    assert {item.name: item.needs for item in outcome.items if item.needs} == {
        "issues": ("signing secret",)
    }
    schedule = Schedule.objects.get()
    assert (schedule.target, schedule.into_chat) == ("helper", True)
    # The owner hasn't seen it yet.
    assert schedule.accepted is None


def test_an_agent_without_the_key_keeps_its_schedules(starts):
    text = "ashiato: 1\nagents:\n  helper:\n    description: Helps.\n"

    assert apply_file(text, TerminalUser()).is_done
    assert Schedule.objects.count() == 1


def test_an_agents_schedules_are_exactly_those_of_the_file(starts, person):
    text = f"""\
ashiato: 1
agents:
  helper:
    schedules:
    - user: {person.username}
      cron: 0 8 * * *
      question: Anything?
"""
    outcome = apply_file(text, person_with_rights(person))

    assert outcome.is_done, messages(outcome)
    schedule = Schedule.objects.get()
    assert (schedule.cron, schedule.question) == ("0 8 * * *", "Anything?")
    assert schedule.accepted is not None  # its owner imported it
    assert Agent.objects.get(name="helper").versions.count() <= 1


def person_with_rights(person):
    person.is_staff = True
    person.save()
    names = [
        f"{verb}_{model}"
        for verb in ("add", "change", "delete", "view")
        for model in ("agent", "schedule", "trigger")
    ]
    person.user_permissions.set(Permission.objects.filter(codename__in=names))
    return User.objects.get(pk=person.pk)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{user: ada, cron: '0 8 * * *'}", "needs user, cron and question"),
        ("{user: nobody, cron: '0 8 * * *', question: x}", "no user named nobody"),
        ("{user: ada, cron: '0 8 * * *', question: x, parameters: {}}", "Unknown setting"),
        ("{user: ada, cron: nonsense, question: x}", "cron"),
        ("{user: ada, cron: '0 8 * * *', question: x, result_channel: Nowhere}", "Nowhere"),
        ("{user: ada, cron: '0 8 * * *', question: ' '}", "what the agent is asked"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_reason(starts, entry, problem):
    text = f"ashiato: 1\nagents:\n  helper:\n    schedules:\n    - {entry}\n"

    [message] = messages(preview_file(text, TerminalUser()))

    assert problem in message


def test_only_the_owner_imports_a_trigger(starts, person, administrator):
    """Another user's trigger would run with that user's permissions."""
    text = export_text().replace("Sort ${payload.title}.", "Delete ${payload.title}.")
    new = text.replace("  issues:", "  others:")

    assert messages(preview_file(text, administrator)) == [
        "Only its owner can change a trigger."
    ]
    assert "Only its owner can change a trigger." in messages(preview_file(new, administrator))
    assert apply_file(text, TerminalUser()).is_done
    assert Trigger.objects.get().question == "Delete ${payload.title}."


@pytest.mark.parametrize("problem", ["question", "parameters", "both targets"])
def test_a_trigger_is_validated_like_in_its_form(starts, problem):
    values = {
        "question": "question: Sort ${other.title}.",
        "parameters": "parameters: {a: '${'}",
        "both targets": "agent: null",
    }
    text = f"ashiato: 1\ntriggers:\n  issues:\n    {values[problem]}\n"

    assert messages(preview_file(text, TerminalUser()))


def test_where_a_user_receives_answers_is_not_lost(starts, person):
    """A user's own webhook has no name, so a file can't say it."""
    own = AlertChannel.objects.create(kind="webhook", owner=person, url="https://a.example")
    schedule, trigger = starts
    Schedule.objects.update(result_channel=own, into_chat=False)
    Trigger.objects.update(result_channel=own)
    text = export_text().replace("What is new?", "What now?").replace("Sort ", "Order ")

    outcome = apply_file(text, TerminalUser())

    assert outcome.is_done, messages(outcome)
    schedule.refresh_from_db()
    trigger.refresh_from_db()
    assert schedule.question == "What now?"
    assert trigger.question == "Order ${payload.title}."
    assert schedule.result_channel == trigger.result_channel == own
