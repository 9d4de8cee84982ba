"""Invalid files: a message and line for each problem, and nothing is imported."""

import pytest

from agents.console.system.config_files.exporter import ExportSelection, export
from agents.console.system.config_files.importer import ImportState, apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.models import Agent, GuardrailPattern, LanguageModel, McpServer, Schedule
from tests.review.conftest import may
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)

MANY = "ashiato: 1\nagents:\n" + "".join(f"  a{n}: {{}}\n" for n in range(1_001))
SCHEDULES = "ashiato: 1\nworkflows:\n  w:\n    schedules:\n" + "    - {}\n" * 1_000
BOMB = "ashiato: 1\nagents: &a\n  b: {}\nmodels: *a\n"


def refusals(text, user=None):
    found = preview_file(text, user or TerminalUser())
    all_of = [*found.problems, *(p for thing in found.items for p in thing.problems)]
    assert found.is_refused
    return [(problem.line, problem.message) for problem in all_of]


def only_problem(text, user=None):
    (only,) = refusals(text, user)
    return only


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "ashiato: 1"),
        ("- a\n", 1, "ashiato: 1"),
        ("agents: {}\n", 1, "ashiato: 1"),
        ("ashiato: 2\n", 1, "ashiato: 1"),
        ("ashiato: 1\nagnets: {}\n", 2, "Unknown section: agnets"),
        ("ashiato: 1\nagents: [a]\n", 2, "Must map names"),
        (BOMB, 4, "YAML aliases"),
        ("ashiato: 1\nagents: !!python/none {}\n", 2, "YAML tags"),
        ("ashiato: 1\nagents: {a: {}, b: {\n", 3, "Syntax error"),
        ("#" * 900_000, 0, "larger than 800,000 bytes"),
        (MANY, 0, "up to 1,000 entries"),
        (SCHEDULES, 0, "up to 1,000 entries"),
    ],
)
def test_an_invalid_file_is_rejected_with_a_message(db, text, line, words):
    assert (found := refusals(text)[0])[0] == line
    assert words in found[1]


@pytest.mark.parametrize(
    ("said", "words"),
    one_in(
        4,
        [
            ("max_stepps: 3", "Unknown setting: max_stepps."),
            ("max_steps: many", "Must be a number."),
            ("max_steps: 900", "less than or equal to 50"),
            ("enabled: maybe", "Must be true or false."),
            ("description: 12", "Must be text. Put quotes around"),
            ("handoffs: nobody", "Must be a list of names."),
            ("handoffs: [nobody]", "There's no agent named nobody."),
            ("groups: [Nobody]", "There's no group named Nobody."),
            ("tools: {hammer: {}}", "There's no tool named hammer."),
            ("tools: {calculator: {timeout: 0}}", "Check the settings of calculator."),
            ("tools: {calculator: {color: red}}", "Unknown setting: color."),
            ("mode: chaos", "Select a valid choice."),
            ("output_schema: {type: 7}", "schema"),
            (
                "api_key: sk-1",
                ("Secrets can't be imported from a file. Enter this one in the console."),
            ),
        ],
    ),
)
def test_invalid_agent_settings_are_rejected_at_their_line(agent, said, words):
    line, message = only_problem(f"ashiato: 1\nagents:\n  new:\n    model: demo\n    {said}\n")

    assert line == 5
    assert words in message
    assert Agent.objects.count() == 1


@pytest.mark.parametrize(
    ("kind", "said", "words"),
    [
        ("connections", "a: {api_key: sk-1}", "Secrets can't be imported"),
        ("connections", "a: {has_key: sk-1}", "Secrets can't be imported"),
        ("connections", "a: {options: {api_token: sk-1}}", "which are encrypted"),
        ("models", "a: {model: gpt}", "A model needs a connection"),
        ("models", "a b: {model: gpt}", "no spaces or slashes"),
        ("models", f"{'a' * 65}: {{model: gpt}}", "at most 64 characters"),
        ("tools", "a: {endpoint: 'https://a.example', headers: {K: sk-1}}", "Secrets can't be"),
        ("tools", "a: {source: own}", "no built-in tool with this name"),
        ("tools", "a: {source: elsewhere}", "own, http, mcp or database"),
        ("tools", "a: {source: mcp, server: x, definition: {name: a}}", "no MCP server"),
        ("tools", "a: {source: mcp, definition: 7}", "a valid MCP tool definition"),
        ("servers", "a: {url: 'http://a.example', headers: {K: sk-1}}", "Secrets can't be"),
        ("patterns", "a: {pattern: '(?=a)'}", "RE2"),
        ("patterns", "'a': [b]", "per line"),
        ("workflows", "a: {text: 'name: a'}", "Workflow line 1:"),
        ("workflows", "a: {schedules: [{user: a}]}", "A schedule needs user and cron"),
    ],
)
def test_each_kind_is_validated_as_on_its_page(db, kind, said, words):
    line, message = refusals(f"ashiato: 1\n{kind}:\n  {said}\n")[0]

    assert line == 3
    assert words in message
    assert "sk-1" not in message


def test_all_errors_of_an_object_are_reported(agent):
    said = "max_steps: 900\n    tools: {hammer: {}}\n    groups: [Nobody]"
    found = refusals(f"ashiato: 1\nagents:\n  new:\n    {said}\n")

    assert sorted(line for line, _ in found) == [4, 5, 6]


def test_a_duplicate_name_is_rejected(db):
    text = "ashiato: 1\nagents:\n  a: {}\n  a: {}\n"

    assert only_problem(text) == (4, "'a' is defined twice.")


def test_one_error_prevents_the_whole_import(agent):
    text = "ashiato: 1\nagents:\n  good: {}\n  bad: {max_steps: 0}\n"

    assert not apply_file(text, TerminalUser()).is_done
    assert [*Agent.objects.values_list("name", flat=True)] == ["helper"]
    assert agent.versions.count() == 0


def test_each_kind_needs_its_change_permission(agent, person):
    clerk = may(person, "change_agent", "add_agent", "view_agent")
    text = "ashiato: 1\nagents:\n  new: {}\npatterns:\n  p: {pattern: a}\n"

    assert only_problem(text, clerk) == (
        4,
        "You don't have permission to change guardrails.",
    )
    person = may(person, "change_guardrailpattern")
    assert only_problem(text, person) == (5, "You don't have permission to add this.")
    assert apply_file("ashiato: 1\nagents:\n  new: {}\n", person).is_done


def test_programs_need_their_own_permission(installation, person):
    user = may(person, *(f"{verb}_mcpserver" for verb in ("view", "add", "change")))
    new = "ashiato: 1\nservers:\n  shell:\n    transport: stdio\n    command: python3\n"
    moved = "ashiato: 1\nservers:\n  files:\n    transport: http\n"
    no = "You don't have permission to set up servers that run programs on this machine."

    assert (4, no) in refusals(new, user)
    assert only_problem(moved, user) == (4, no)
    assert preview_file("ashiato: 1\nservers:\n", user, remove=True).is_refused
    assert McpServer.objects.get().enabled


def test_a_file_cannot_send_a_key_to_another_url(installation):
    text = "ashiato: 1\nconnections:\n  fast: {base_url: 'https://evil.example/v1'}\n"

    assert "set for a different URL" in only_problem(text)[1]


def test_a_workflow_has_the_name_in_its_definition(installation):
    text = export(TerminalUser(), ExportSelection(kinds=["workflows"]))
    text = text.replace("  greeting:", "  farewell:")

    assert "The name in the workflow text is different: greeting." in only_problem(text)[1]


def test_a_schedule_needs_an_existing_user_and_a_future_time(installation):
    text = export(TerminalUser(), ExportSelection(kinds=["workflows"]))

    at = 1 + text.splitlines().index("    - user: ada")
    assert only_problem(text.replace("ada", "nobody")) == (at, "There's no user named nobody.")
    line, message = only_problem(text.replace("0 9 * * 1-5", "99 9 * * *"))
    assert (line, "Invalid cron expression" in message) == (at + 1, True)
    assert Schedule.objects.get().cron == "0 9 * * 1-5"


def test_objects_missing_from_the_file_are_kept_or_disabled_as_chosen(installation):
    text = "ashiato: 1\npatterns: {}\nmodels:\n"

    left = apply_file(text, TerminalUser())
    assert not left.is_done
    assert {thing.state for thing in left.items} == {ImportState.LEFT}
    off = apply_file(text, TerminalUser(), remove=True)
    assert off.is_done
    assert not LanguageModel.objects.filter(enabled=True).exists()
    assert not GuardrailPattern.objects.filter(enabled=True).exists()
    assert Agent.objects.filter(enabled=True).count() == 2


def test_another_agent_can_be_made_the_default(agent):
    text = "ashiato: 1\nagents:\n  a: {is_default: true}\n  helper: {is_default: false}\n"

    assert apply_file(text, TerminalUser()).is_done
    assert Agent.objects.get(is_default=True).name == "a"


def test_agents_of_a_file_can_hand_off_to_each_other(agent):
    text = "ashiato: 1\nagents:\n  a: {handoffs: [b]}\n  b: {handoffs: [a, helper]}\n"

    assert apply_file(text, TerminalUser()).is_done
    assert Agent.objects.get(name="a").handoffs.get().name == "b"


def test_settings_that_a_file_leaves_out_are_compared_with_those_it_has(agent):
    agent.merge = Agent.Merge.SYNTHESIS
    agent.output_schema = {"type": "object"}
    agent.save()
    Agent.objects.create(name="other").handoffs.add(agent)
    agent.handoffs.add(Agent.objects.get(name="other"))

    _line, message = only_problem(
        f"ashiato: 1\nagents:\n  {agent.name}:\n    mode: panel\n    merge: vote\n"
    )

    assert "synthesis" in message
