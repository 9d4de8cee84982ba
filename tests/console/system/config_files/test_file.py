"""The configuration as a file: its content, and that it imports unchanged."""

import pytest
import yaml
from django.contrib.auth.models import Group

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.models import (
    Agent,
    AuditEntry,
    GuardrailPattern,
    McpServer,
    ModelConnection,
    Schedule,
    ToolRegistration,
    Workflow,
)
from tests.sampling import one_in

from .conftest import HEADER, KEY, SECRETS, TEXT

pytestmark = pytest.mark.django_db(transaction=True)
ALL = ExportSelection()


def export_text(**chosen):
    return export(TerminalUser(), ExportSelection(**chosen))


def changed_fields(outcome):
    assert not [*outcome.problems, *(t.problems for t in outcome.items if t.problems)]
    return {thing.name: thing.changed_fields for thing in outcome.items if thing.changed_fields}


def test_a_file_has_the_whole_configuration_and_no_secret(installation):
    text = export_text()
    told = yaml.safe_load(text)

    assert [*told] == [
        *("ashiato", "settings", "groups", "connections", "models", "servers"),
        *("databases", "tools"),
        *("agents", "patterns", "workflows", "triggers", "limits"),
        *("alert_channels", "alert_rules", "summaries"),
    ]
    assert told["connections"]["fast"]["has_key"] is True
    assert told["tools"]["weather"]["headers"] == ["Authorization"]
    assert told["servers"]["files"]["env"] == ["TOKEN"]
    assert told["agents"]["asker"]["tools"] == {"weather": {"approval": "always", "timeout": 9}}
    assert told["agents"]["asker"]["handoffs"] == ["helper"]
    assert told["workflows"]["greeting"]["schedules"][0]["user"] == "ada"
    assert not [secret for secret in SECRETS if secret in text]


def test_multiline_texts_are_written_as_blocks(installation):
    text = export_text()

    assert "    instructions: |-\n      Be brief.\n\n      Be kind.\n" in text
    assert "    text: |\n      name: greeting\n" in text


def test_importing_an_export_changes_nothing(installation):
    text = export_text()

    outcome = preview_file(text, TerminalUser(), remove=True)
    assert changed_fields(outcome) == {}
    assert outcome.is_empty
    assert export_text() == text


def test_an_import_recreates_the_exported_installation(installation):
    text = export_text()
    for model in (Workflow, Agent, GuardrailPattern, ToolRegistration, ModelConnection):
        model.objects.all().delete()

    outcome = apply_file(text, TerminalUser())
    assert outcome.is_done, outcome
    needs = {thing.name: thing.needs for thing in outcome.items if thing.needs}
    assert needs == {"fast": ("API key",), "weather": ("Authorization",)}
    ModelConnection.objects.update(api_key="x")
    ToolRegistration.objects.filter(name="weather").update(headers={"Authorization": "x"})
    assert export_text() == text


@pytest.mark.parametrize(
    "words", one_in(4, ["yes", "1e5", "007", "2026-01-01", "a: b", "雪\n ", "~", ""])
)
def test_a_string_that_looks_like_another_type_stays_a_string(agent, words):
    Agent.objects.update(description=words)
    text = export_text()

    assert changed_fields(preview_file(text, TerminalUser())) == {}


def test_the_experts_of_an_agent_and_who_approves_are_in_the_file(installation):
    legal = Group.objects.create(name="legal")
    helper = Agent.objects.get(name="helper")
    helper.experts.add(legal)
    Agent.objects.filter(pk=helper.pk).update(asker_approves_questions=False)
    text = export_text(kinds=["agents"])
    helper.experts.clear()
    Agent.objects.update(asker_approves_questions=True)

    assert changed_fields(apply_file(text, TerminalUser())) == {
        "helper": ["asker_approves_questions", "experts"]
    }
    assert list(helper.experts.all()) == [legal]


def test_only_the_chosen_kinds_are_in_the_file(installation):
    told = yaml.safe_load(export_text(kinds=["agents", "tools"], names=["asker", "weather"]))

    assert {kind: [*things] for kind, things in told.items() if kind != "ashiato"} == {
        "tools": ["weather"],
        "agents": ["asker"],
    }


def test_a_workflow_in_a_file_becomes_its_newest_version(installation, administrator):
    text = export_text(kinds=["workflows"]).replace("Says hello.", "Greets.")

    assert changed_fields(apply_file(text, administrator)) == {"greeting": ["text"]}
    newest = Workflow.objects.get().newest
    assert (newest.number, newest.author) == (2, administrator)
    assert newest.text == TEXT.replace("Says hello.", "Greets.")


def test_an_import_creates_agent_versions_and_an_audit_entry(installation, administrator):
    text = export_text(kinds=["agents"]).replace("Be kind.", "Be quick.")
    outcome = apply_file(text, administrator)

    assert outcome.is_done
    newest = Agent.objects.get(name="helper").versions.first()
    assert (newest.number, newest.author) == (2, administrator)
    assert newest.note == "Imported from a file."
    entry = AuditEntry.objects.get(action="configuration.imported")
    assert entry.detail == {"changed": {"agents: helper": ["instructions"]}}
    assert McpServer.objects.count() == 1


def test_a_secret_is_kept_when_a_file_changes_its_row(installation):
    text = export_text(kinds=["connections", "models", "tools"])
    text = text.replace("timeout: 30", "timeout: 31").replace("enabled: true", "enabled: false")

    assert apply_file(text, TerminalUser()).is_done
    weather = ToolRegistration.objects.get(name="weather")
    assert (weather.timeout, weather.enabled) == (31, False)
    assert weather.headers.reveal() == {"Authorization": HEADER}
    assert ModelConnection.objects.get().api_key.reveal() == KEY
    assert ToolRegistration.objects.get(name="calculator").timeout == 31


def test_an_mcp_tool_is_exported_with_its_accepted_definition(db):
    server = McpServer.objects.create(name="shop", url="https://shop.example/mcp")
    definition = {"name": "find", "description": "Finds.", "parameters": {}, "annotations": {}}
    made = {"name": "shop__find", "source": "mcp", "definition": definition}
    server.tools.create(**made, pending={**definition, "description": "Finds all."})
    text = export_text()
    assert "pending" not in text
    McpServer.objects.all().delete()

    assert apply_file(text, TerminalUser()).is_done
    row = ToolRegistration.objects.get()
    assert (row.server.name, row.definition, row.pending) == ("shop", definition, None)
    assert export_text() == text


def test_an_accepted_definition_is_pinned_by_the_file(db):
    server = McpServer.objects.create(name="shop", url="https://shop.example/mcp")
    old, new = ({"name": "find", "description": words} for words in ("Finds.", "Finds all."))
    server.tools.create(name="shop__find", source="mcp", definition=old, pending=new)
    text = export_text(kinds=["tools"]).replace("Finds.", "Finds all.")

    assert changed_fields(apply_file(text, TerminalUser())) == {"shop__find": ["definition"]}
    row = ToolRegistration.objects.get()
    assert (row.definition["description"], row.pending) == ("Finds all.", None)


def test_schedules_are_exactly_those_of_the_file(installation, stranger):
    text = export_text(kinds=["workflows"])
    wanted = text.replace("user: ada", "user: eve").replace("who: world", "who: you")

    assert changed_fields(apply_file(wanted, TerminalUser())) == {
        "greeting": ["text", "schedules"]
    }
    schedule = Schedule.objects.get()
    assert (schedule.user, schedule.next_at is None) == (stranger, False)
    assert export_text(kinds=["workflows"]) == wanted
