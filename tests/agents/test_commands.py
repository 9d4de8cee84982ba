"""What an operator types, and what comes back."""

import json
import socket
from datetime import date
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from pydantic import SecretStr

from agents import samples
from agents.management.commands import seed_demo, serve
from agents.models import Agent, GuardrailPattern, Run, ToolRegistration

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    """Hashing a password well takes longer than the rest of a test."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def ask(*arguments):
    out, err = StringIO(), StringIO()
    call_command("ask", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


# ask


def test_a_question_is_answered_on_the_command_line(agent):
    out, err = ask("What is 12.5% of 3480?")

    assert "435" in out
    assert "[calculator " in err
    assert Run.objects.get().status == "completed"


def test_every_event_can_be_had_as_json(agent):
    out, _ = ask("6 * 7", "--json")
    events = [json.loads(line) for line in out.splitlines()]

    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "run_started"
    assert events[-1]["type"] == "run_finished"
    assert all(set(e) == {"time", "agent", "type", "data", "seq"} for e in events)


def test_an_agent_is_asked_by_its_name(agent):
    Agent.objects.create(name="other", model="demo")

    ask("6 * 7", "--agent", "other")

    assert Run.objects.get().agent_name == "other"


def test_an_agent_that_is_not_there_is_said_so(agent):
    with pytest.raises(CommandError, match=r"no agent named 'nobody'. Agents: helper\."):
        ask("6 * 7", "--agent", "nobody")


def test_a_blocked_question_is_a_failure(agent):
    with pytest.raises(CommandError, match="looks like a private key") as error:
        ask("-----BEGIN PRIVATE KEY----- abc")

    assert error.value.returncode == 1
    assert Run.objects.get().status == "blocked"


@pytest.mark.parametrize("question", ["", "  \n "])
def test_an_empty_question_is_refused(agent, question):
    with pytest.raises(CommandError, match="Ask something"):
        ask(question)


def test_without_an_agent_the_advice_is_given(db):
    with pytest.raises(CommandError, match="No agent is switched on. Switch one on"):
        ask("6 * 7")


def test_a_failed_run_is_a_failure_in_words(agent, scripted):
    from agents.engine.errors import ModelError

    scripted(ModelError("The provider refused."))

    with pytest.raises(CommandError, match="The provider refused"):
        ask("6 * 7")


# seed_demo


@pytest.fixture
def no_samples(monkeypatch):
    loaded = []
    monkeypatch.setattr(samples, "load", loaded.append)
    return loaded


def seeded():
    out = StringIO()
    call_command("seed_demo", stdout=out)
    return out.getvalue()


def test_a_first_visit_has_all_it_needs(no_samples):
    said = seeded()

    agent = Agent.objects.get(is_default=True)
    assert agent.is_default
    assert [tool.name for tool in agent.tools.all()] == ["calculator", "database", "search"]
    assert GuardrailPattern.objects.filter(enabled=True).count() == 2
    assert isinstance(no_samples[0], date)
    password = said.split("password ")[1].strip()
    assert get_user_model().objects.get(username="demo").check_password(password)


def test_seeding_again_changes_nothing(no_samples):
    seeded()
    before = get_user_model().objects.get().password

    said = seeded()

    assert "password " not in said.replace("changepassword ", "")
    assert get_user_model().objects.get().password == before
    assert (Agent.objects.count(), GuardrailPattern.objects.count()) == (2, 2)


def test_what_an_administrator_changed_stays_changed(no_samples):
    seeded()
    Agent.objects.exclude(is_default=True).delete()
    Agent.objects.update(name="renamed", enabled=False, instructions="Be brief.")
    Agent.objects.get().tools.clear()
    ToolRegistration.objects.filter(name="database").update(enabled=False)
    GuardrailPattern.objects.filter(name="Private keys").delete()

    seeded()

    agent = Agent.objects.get(is_default=True)
    assert (agent.name, agent.enabled, agent.instructions) == ("renamed", False, "Be brief.")
    assert not agent.tools.exists()
    assert not ToolRegistration.objects.get(name="database").enabled
    assert GuardrailPattern.objects.count() == 1


def test_no_two_installations_have_the_same_password(db):
    first = seed_demo.make_account()
    get_user_model().objects.all().delete()

    assert seed_demo.make_account() != first
    assert len(first) >= 12


def test_a_given_password_is_used_and_not_shown(db, settings, monkeypatch):
    given = SecretStr("correct horse battery")
    monkeypatch.setattr(settings.ENVIRONMENT, "admin_password", given)

    said = seed_demo.make_account()

    assert "correct horse" not in said
    assert get_user_model().objects.get().check_password("correct horse battery")


# serve


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_taken_port_is_said_in_a_sentence(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as taken:
        try:
            taken.bind((host, 0))
        except OSError:
            pytest.skip("This machine has no such address.")
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(CommandError, match=f"Port {port} is taken. .*PORT={port + 1}"):
            call_command("serve", host=host, port=port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid"])
def test_an_address_that_is_not_ours_is_said_in_a_sentence(host):
    with pytest.raises(CommandError, match="Cannot listen on"):
        serve.check_free(host, 8765)


def test_a_free_port_is_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    assert serve.check_free("127.0.0.1", port) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("agent")
def test_a_question_with_bytes_that_are_no_text_is_asked_all_the_same(capsys):
    call_command("ask", "2 + 2 \udcff")

    assert "4" in capsys.readouterr().out
