"""Commands and their output."""

import json
import os
import pty
import re
import socket
import sys
from datetime import date
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.db.migrations.recorder import MigrationRecorder
from django.utils import translation
from pydantic import SecretStr

from agents import runs
from agents.catalog.samples import sample_data
from agents.catalog.tools import tool_factory
from agents.console.tool_admin.tool_settings import load_tool
from agents.db.sentences import translate
from agents.engine.testing import Call, Says
from agents.management.commands import ask as ask_command
from agents.management.commands import migrate, seed_demo, serve
from agents.models import Agent, GuardrailPattern, Run, ToolRegistration
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)


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


def test_events_can_be_printed_as_json(agent):
    out, _ = ask("6 * 7", "--json")
    events = [json.loads(line) for line in out.splitlines()]

    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "run_started"
    assert events[-1]["type"] == "run_finished"
    assert all(set(e) == {"time", "agent", "type", "data", "seq"} for e in events)


def test_an_agent_can_be_chosen_by_name(agent):
    Agent.objects.create(name="other", model="demo")

    ask("6 * 7", "--agent", "other")

    assert Run.objects.get().agent_name == "other"


def test_an_unknown_agent_is_an_error(agent):
    with pytest.raises(
        CommandError, match=r"no agent named 'nobody'. Available agents: helper\."
    ):
        ask("6 * 7", "--agent", "nobody")


def test_a_blocked_question_exits_with_an_error(agent):
    with pytest.raises(CommandError, match="looks like a private key") as error:
        ask("-----BEGIN PRIVATE KEY----- abc")

    assert error.value.returncode == 1
    assert Run.objects.get().status == "blocked"


@pytest.mark.parametrize("arguments", [[], [""], ["  \n "], ["6 * 7", "--resume", "1"]])
def test_a_question_or_a_run_to_resume_is_required(agent, arguments):
    with pytest.raises(CommandError, match="Enter either a question or --resume RUN"):
        ask(*arguments)


def test_without_an_agent_the_error_has_advice(db):
    with pytest.raises(CommandError, match="No agent is enabled. Enable one"):
        ask("6 * 7")


def test_a_failed_run_exits_with_an_error_message(agent, scripted):
    from agents.engine.errors import ModelError

    scripted(ModelError("The provider refused."))

    with pytest.raises(CommandError, match="The provider refused"):
        ask("6 * 7")


# ask, where an agent waits for a word


@pytest.fixture
def careful(agent):
    careful = Agent.objects.create(name="careful", auto_execute_tools=False)
    careful.tools.set(ToolRegistration.objects.all())
    return careful


@pytest.fixture
def terminal(monkeypatch):
    """A real terminal into which a test types lines."""
    ours, theirs = pty.openpty()
    with open(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield lambda text: os.write(ours, text.encode())
    os.close(ours)


def test_the_terminal_asks_for_approval_with_exact_arguments(careful, terminal):
    terminal("y\n")

    out, err = ask("6 * 7", "--agent", "careful")

    assert 'careful wants to call calculator {"expression": "6 * 7"}\n' in err
    assert "This agent requires approval for every tool call. Approve? [y/N] " in err
    assert "42" in out
    approval = Run.objects.get().approvals.get()
    assert (approval.verdict, approval.decided_by) == ("approved", None)


@pytest.mark.parametrize("said", one_in(3, ["n", "", "what?"]))
def test_anything_but_yes_at_the_terminal_rejects_the_call(careful, terminal, said):
    terminal(f"{said}\n")

    out, _ = ask("6 * 7", "--agent", "careful")

    assert "was rejected, so it didn't run" in out
    assert Run.objects.get().approvals.get().verdict == "rejected"


def test_without_a_terminal_the_run_pauses_and_can_be_resumed(careful, terminal, monkeypatch):
    at_terminal = sys.stdin
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))

    with pytest.raises(CommandError, match=r"Run (\d+) is waiting .* ask --resume \1") as error:
        ask("6 * 7", "--agent", "careful")
    left = Run.objects.get()
    monkeypatch.setattr(sys, "stdin", at_terminal)
    terminal("y\n")
    out, _ = ask("--resume", str(left.pk))

    assert (error.value.returncode, left.status) == (3, "waiting")
    assert "42" in out
    assert Run.objects.get().status == "completed"


def test_end_of_input_leaves_the_run_paused(careful, terminal):
    terminal("\x04")

    with pytest.raises(CommandError, match="is waiting for approval"):
        ask("6 * 7", "--agent", "careful")

    assert Run.objects.get().status == "waiting"


def test_another_users_run_cannot_be_resumed(careful, person, terminal):
    left = runs.prepare(query="6 * 7", topic="chat.1", user=person, agent=careful)
    Run.objects.update(status="waiting")

    with pytest.raises(CommandError, match=f"Run {left.pk} isn't waiting"):
        ask("--resume", str(left.pk))


def test_terminal_escapes_in_arguments_are_neutralized(careful, terminal, scripted):
    scripted(
        Says(calls=(Call("calculator", '{"expression": "1\x1b[2K\u202e1"}'),)), Says(answer=".")
    )
    terminal("n\n")

    _, err = ask("6 * 7", "--agent", "careful")

    assert r'{"expression": "1\u001b[2K\u202e1"}' in err


NASTY = "a\x1b]0;x\x07\x9b2J\r\u202eb\u2066\U000e0041\u2028 c"
WRITTEN_OUT = r"a\u001b]0;x\u0007\u009b2J\u000d\u202eb\u2066\U000e0041\u2028 c"


def test_terminal_escapes_in_answers_are_neutralized(agent, scripted):
    scripted(Says(answer=f"{NASTY}\n\t日本\u3000語 👩\u200d💻"))

    out, _ = ask("6 * 7")

    assert out == f"{WRITTEN_OUT}\n\t日本\u3000語 👩\u200d💻\n"


def test_a_piped_answer_is_unchanged(agent, scripted):
    scripted(Says(answer=NASTY))

    out, _ = ask("6 * 7", "--json")

    assert json.loads(out.split("\n")[-2])["data"]["answer"] == NASTY
    assert not set(out) & {*"\x1b\x07\x9b\r\u202e\u2066\U000e0041\u2028"}


def test_terminal_escapes_in_errors_are_neutralized(agent, capsys):
    Agent.objects.update(name=NASTY)

    with pytest.raises(SystemExit):
        ask_command.Command().run_from_argv(["manage.py", "ask", "x", "--agent", "nobody"])

    assert f"Available agents: {WRITTEN_OUT}." in capsys.readouterr().err


def test_handoffs_work_on_the_command_line(db):
    seed_demo.make_agents()

    out, err = ask("Ask helper: what is 6 * 7?", "--agent", "lead")

    assert out == "helper says: The result is **42** (`6 * 7`).\n"
    assert '[ask_helper {"task": "what is 6 * 7?"}]' in err
    assert '[helper: calculator {"expression": "6 * 7"}]' in err


def test_a_call_of_a_sub_agent_needs_approval_at_the_terminal(db, terminal):
    seed_demo.make_agents()
    terminal("y\n")

    out, err = ask("Ask careful: what is 6 * 7?", "--agent", "lead")

    assert "careful wants to call calculator" in err
    assert out == "careful says: The result is **42** (`6 * 7`).\n"


# seed_demo


@pytest.fixture
def no_samples(monkeypatch):
    loaded = []
    monkeypatch.setattr(sample_data, "load", loaded.append)
    return loaded


def seed_output():
    out = StringIO()
    call_command("seed_demo", stdout=out)
    return out.getvalue()


def test_seeding_creates_everything_a_new_installation_needs(no_samples):
    said = seed_output()

    agent = Agent.objects.get(is_default=True)
    assert agent.is_default
    own = {tool.name for tool in agent.tools.all()}
    assert own == set(tool_factory.usable_names()) - {"ask_person"}
    assert "generate_image" not in own, "It needs a model."
    assert GuardrailPattern.objects.filter(enabled=True).count() == 2
    assert isinstance(no_samples[0], date)
    password = said.split("password ")[1].strip()
    assert get_user_model().objects.get(username="demo").check_password(password)


JAPANESE = re.compile(r"[ぁ-んァ-ン一-龠]")


def test_a_japanese_installation_is_seeded_in_japanese(no_samples, settings):
    settings.LANGUAGE_CODE = "ja"

    seed_output()

    described = Agent.objects.values_list("name", "description")
    assert len(described) == 7
    assert [name for name, words in described if not JAPANESE.search(words)] == []
    assert all(name.isascii() for name, _ in described)  # models call agents by their names
    rules = GuardrailPattern.objects.values_list("name", flat=True)
    assert [name for name in rules if not JAPANESE.search(name)] == []


@pytest.mark.parametrize("name", one_in(3, ["calculator", "database", "search"]))
def test_a_built_in_tool_is_described_in_the_readers_language(name, samples):
    tool = load_tool(ToolRegistration(name=name))

    with translation.override("ja"):
        words = translate(tool.description)

    assert not JAPANESE.search(tool.description)
    assert JAPANESE.search(words[:12])


def test_seeding_creates_agents_for_approvals_reports_and_handoffs(no_samples):
    seed_output()

    careful, reporter, lead = (
        Agent.objects.get(name=n) for n in ("careful", "reporter", "lead")
    )
    assert not careful.auto_execute_tools
    assert {*reporter.tools.all()} == {*Agent.objects.get(name="helper").tools.all()}
    assert reporter.full_clean() is None
    assert not lead.tools.exists()
    assert {agent.name for agent in lead.handoffs.all()} == {"helper", "careful", "reporter"}


def test_seeding_creates_a_panel_with_different_members(no_samples):
    seed_output()

    panel = Agent.objects.get(name="panel")
    helper, librarian = panel.handoffs.order_by("name")
    assert (panel.mode, panel.merge) == ("panel", "synthesis")
    assert {tool.name for tool in librarian.tools.all()} == {"read_document", "search"}
    assert {"calculator", "database"} <= {tool.name for tool in helper.tools.all()}


def test_seeding_again_changes_nothing(no_samples):
    seed_output()
    before = get_user_model().objects.get().password

    said = seed_output()

    assert "password " not in said.replace("changepassword ", "")
    assert get_user_model().objects.get().password == before
    assert (Agent.objects.count(), GuardrailPattern.objects.count()) == (7, 2)


def test_seeding_keeps_changes_of_administrators(no_samples):
    seed_output()
    Agent.objects.exclude(is_default=True).delete()
    Agent.objects.update(name="renamed", enabled=False, instructions="Be brief.")
    Agent.objects.get().tools.clear()
    ToolRegistration.objects.filter(name="database").update(enabled=False)
    GuardrailPattern.objects.filter(name="Private keys").delete()

    seed_output()

    agent = Agent.objects.get(is_default=True)
    assert (agent.name, agent.enabled, agent.instructions) == ("renamed", False, "Be brief.")
    assert not agent.tools.exists()
    assert not ToolRegistration.objects.get(name="database").enabled
    assert GuardrailPattern.objects.count() == 1


def test_every_installation_gets_its_own_password(db):
    first = seed_demo.make_account()
    get_user_model().objects.all().delete()

    assert seed_demo.make_account() != first
    assert len(first) >= 12


def test_a_given_password_is_used_and_not_printed(db, settings, monkeypatch):
    given = SecretStr("correct horse battery")
    monkeypatch.setattr(settings.ENVIRONMENT, "admin_password", given)

    said = seed_demo.make_account()

    assert "correct horse" not in said
    assert get_user_model().objects.get().check_password("correct horse battery")


# serve


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_in_use_is_an_error_message(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as taken:
        try:
            taken.bind((host, 0))
        except OSError:
            pytest.skip("This machine has no such address.")
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(CommandError, match=f"Port {port} is in use. .*PORT={port + 1}"):
            call_command("serve", host=host, port=port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid"])
def test_an_unavailable_address_is_an_error_message(host):
    with pytest.raises(CommandError, match="Can't listen on"):
        serve.check_port(host, 8765)


def test_a_free_port_is_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    assert serve.check_port("127.0.0.1", port) is None


def test_pages_of_the_chosen_address_can_send_forms_and_open_sockets(settings):
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update={"origins": ""})
    settings.ORIGINS = settings.CSRF_TRUSTED_ORIGINS = ["http://127.0.0.1:8000"]
    settings.ALLOWED_HOSTS = ["127.0.0.1"]

    serve.allow_origins("192.0.2.7", 8123)

    assert "http://192.0.2.7:8123" in settings.ORIGINS
    assert "http://localhost:8123" in settings.CSRF_TRUSTED_ORIGINS
    assert "192.0.2.7" in settings.ALLOWED_HOSTS


def test_configured_origins_stay_those_of_the_load_balancer(settings):
    origins = ["https://chat.example.com"]
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update={"origins": origins[0]})
    settings.ORIGINS = list(origins)
    settings.ALLOWED_HOSTS = ["chat.example.com"]

    serve.allow_origins("127.0.0.1", 8123)

    assert origins == settings.ORIGINS
    assert settings.ALLOWED_HOSTS == ["chat.example.com"]


# setup


def test_an_up_to_date_database_is_not_migrated_again(no_samples, monkeypatch):
    called = []
    monkeypatch.setattr(migrate.Command, "handle", lambda *_, **__: called.append("migrate"))
    Permission.objects.filter(codename="view_agent").delete()

    call_command("setup", stdout=StringIO())

    assert called == []
    assert Permission.objects.filter(codename="view_agent").exists()  # of a killed start


def test_a_database_with_a_pending_migration_is_migrated(no_samples, monkeypatch):
    called = []
    monkeypatch.setattr(migrate.Command, "handle", lambda *_, **__: called.append("migrate"))
    last = MigrationRecorder.Migration.objects.filter(app="chat").latest("name")
    last.delete()
    try:
        call_command("setup", stdout=StringIO())
    finally:
        last.save(force_insert=True)

    assert called == ["migrate"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("agent")
def test_a_question_with_invalid_utf8_is_accepted(capsys):
    call_command("ask", "2 + 2 \udcff")

    assert "4" in capsys.readouterr().out
