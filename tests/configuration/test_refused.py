"""Invalid files: a message and line for each problem, and nothing is imported."""

import pytest

from agents.console.config_files.exporter import ExportSelection, export
from agents.console.config_files.importer import ImportState, apply_file, preview_file
from agents.console.config_files.permissions import TerminalUser
from agents.models import Agent, GuardrailPattern, LanguageModel, McpServer, Schedule
from tests.review.conftest import may

pytestmark = pytest.mark.django_db(transaction=True)

MANY = "ashiato: 1\nagents:\n" + "".join(f"  a{n}: {{}}\n" for n in range(1_001))
BOMB = "ashiato: 1\nagents: &a\n  b: {}\nmodels: *a\n"


def refusals(text, user=None):
    found = preview_file(text, user or TerminalUser())
    all_of = [*found.problems, *(p for thing in found.things for p in thing.problems)]
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
    ],
)
def test_what_is_no_such_file_is_refused_in_words(db, text, line, words):
    assert (found := refusals(text)[0])[0] == line
    assert words in found[1]


@pytest.mark.parametrize(
    ("said", "words"),
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
)
def test_what_an_agent_cannot_be_is_refused_at_its_line(agent, said, words):
    line, message = only_problem(f"ashiato: 1\nagents:\n  new:\n    model: demo\n    {said}\n")

    assert line == 5
    assert words in message
    assert Agent.objects.count() == 1


@pytest.mark.parametrize(
    ("kind", "said", "words"),
    [
        ("models", "a: {model: gpt, api_key: sk-1}", "Secrets can't be imported"),
        ("models", "a: {model: gpt, has_key: sk-1}", "Secrets can't be imported"),
        ("models", "a: {model: gpt, options: {api_token: sk-1}}", "which are encrypted"),
        ("models", "a b: {model: gpt}", "no spaces or slashes"),
        ("models", f"{'a' * 65}: {{model: gpt}}", "at most 64 characters"),
        ("tools", "a: {endpoint: 'https://a.example', headers: {K: sk-1}}", "Secrets can't be"),
        ("tools", "a: {source: own}", "no built-in tool with this name"),
        ("tools", "a: {source: elsewhere}", "own, http or mcp"),
        ("tools", "a: {source: mcp, server: x, definition: {name: a}}", "no MCP server"),
        ("tools", "a: {source: mcp, definition: 7}", "a valid MCP tool definition"),
        ("servers", "a: {url: 'http://a.example', headers: {K: sk-1}}", "Secrets can't be"),
        ("patterns", "a: {pattern: '(?=a)'}", "RE2"),
        ("patterns", "'a': [b]", "per line"),
        ("workflows", "a: {text: 'name: a'}", "Workflow line 1:"),
        ("workflows", "a: {schedules: [{person: a}]}", "A schedule needs person and cron"),
    ],
)
def test_each_kind_is_judged_as_on_its_page(db, kind, said, words):
    line, message = refusals(f"ashiato: 1\n{kind}:\n  {said}\n")[0]

    assert line == 3
    assert words in message
    assert "sk-1" not in message


def test_all_that_is_wrong_with_a_thing_is_told_at_once(agent):
    said = "max_steps: 900\n    tools: {hammer: {}}\n    groups: [Nobody]"
    found = refusals(f"ashiato: 1\nagents:\n  new:\n    {said}\n")

    assert sorted(line for line, _ in found) == [4, 5, 6]


def test_a_name_that_is_there_twice_is_refused(db):
    text = "ashiato: 1\nagents:\n  a: {}\n  a: {}\n"

    assert only_problem(text) == (4, "'a' is defined twice.")


def test_where_one_thing_is_refused_nothing_is_done(agent):
    text = "ashiato: 1\nagents:\n  good: {}\n  bad: {max_steps: 0}\n"

    assert not apply_file(text, TerminalUser()).is_done
    assert [*Agent.objects.values_list("name", flat=True)] == ["helper"]
    assert agent.versions.count() == 0


def test_each_kind_needs_the_right_to_change_it(agent, person):
    clerk = may(person, "change_agent", "add_agent", "view_agent")
    text = "ashiato: 1\nagents:\n  new: {}\npatterns:\n  p: {pattern: a}\n"

    assert only_problem(text, clerk) == (
        4,
        "You don't have permission to change guardrail patterns.",
    )
    person = may(person, "change_guardrailpattern")
    assert only_problem(text, person) == (5, "You don't have permission to add this.")
    assert apply_file("ashiato: 1\nagents:\n  new: {}\n", person).is_done


def test_programs_on_this_machine_need_a_right_of_their_own(installation, person):
    user = may(person, *(f"{verb}_mcpserver" for verb in ("view", "add", "change")))
    new = "ashiato: 1\nservers:\n  shell:\n    transport: stdio\n    command: python3\n"
    moved = "ashiato: 1\nservers:\n  files:\n    transport: http\n"
    no = "You don't have permission to set up servers that run programs on this machine."

    assert (4, no) in refusals(new, user)
    assert only_problem(moved, user) == (4, no)
    assert preview_file("ashiato: 1\nservers:\n", user, remove=True).is_refused
    assert McpServer.objects.get().enabled


def test_a_key_does_not_go_where_a_file_sends_it(installation):
    text = "ashiato: 1\nmodels:\n  fast: {base_url: 'https://evil.example/v1'}\n"

    assert "set for a different URL" in only_problem(text)[1]


def test_a_workflow_goes_by_the_name_in_its_text(installation):
    text = export(TerminalUser(), ExportSelection(kinds=["workflows"]))
    text = text.replace("  greeting:", "  farewell:")

    assert "The name in the workflow text is different: greeting." in only_problem(text)[1]


def test_a_schedule_is_for_somebody_who_is_there_at_a_time_that_comes(installation):
    text = export(TerminalUser(), ExportSelection(kinds=["workflows"]))

    at = 1 + text.splitlines().index("    - person: ada")
    assert only_problem(text.replace("ada", "nobody")) == (at, "There's no user named nobody.")
    line, message = only_problem(text.replace("0 9 * * 1-5", "99 9 * * *"))
    assert (line, "Invalid cron expression" in message) == (at + 1, True)
    assert Schedule.objects.get().cron == "0 9 * * 1-5"


def test_what_is_not_in_the_file_is_left_alone_or_switched_off_as_was_asked(installation):
    text = "ashiato: 1\npatterns: {}\nmodels:\n"

    left = apply_file(text, TerminalUser())
    assert not left.is_done
    assert {thing.state for thing in left.things} == {ImportState.LEFT}
    off = apply_file(text, TerminalUser(), remove=True)
    assert off.is_done
    assert not LanguageModel.objects.filter(enabled=True).exists()
    assert not GuardrailPattern.objects.filter(enabled=True).exists()
    assert Agent.objects.filter(enabled=True).count() == 2


def test_another_agent_can_be_made_the_default(agent):
    text = "ashiato: 1\nagents:\n  a: {is_default: true}\n  helper: {is_default: false}\n"

    assert apply_file(text, TerminalUser()).is_done
    assert Agent.objects.get(is_default=True).name == "a"


def test_agents_of_a_file_may_ask_each_other(agent):
    text = "ashiato: 1\nagents:\n  a: {handoffs: [b]}\n  b: {handoffs: [a, helper]}\n"

    assert apply_file(text, TerminalUser()).is_done
    assert Agent.objects.get(name="a").handoffs.get().name == "b"
