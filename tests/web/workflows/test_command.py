import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.engine.suggestions import suggest
from agents.models import Run
from tests.web.workflows import pipeline

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]


def test_a_workflow_is_run_on_the_command_line(workflow, capsys):
    call_command("workflow", "run", "アンケート集計レポート")

    assert "平均は 2 です。" in capsys.readouterr().out
    assert Run.objects.get().status == "completed"


def test_events_can_be_printed_as_json(workflow, capsys):
    call_command("workflow", "run", "アンケート集計レポート", "--json")

    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[0]["type"] == "run_started"
    assert events[-1]["data"]["answer"] == "平均は 2 です。"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "アンケート集計レポート"),
        (["アンケート集計レポート", "--param", "x"], "--param must be KEY=VALUE"),
        (["アンケート集計レポート", "--param", "x=1"], "no parameter x"),
    ],
)
def test_a_workflow_that_cannot_start_has_a_reason(workflow, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        call_command("workflow", "run", *arguments)


def test_a_definition_is_checked_before_it_is_used(tmp_path, pipeline_tools, capsys):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(pipeline.TEXT)
    bad.write_text("name: w\nsteps:\n  - {name: a, tol: x}\n")

    call_command("workflow", "check", str(good))
    with pytest.raises(CommandError):
        call_command("workflow", "check", str(bad))

    said = capsys.readouterr()
    assert "4 steps, no errors." in said.out
    assert f"{bad}:3:15: " + suggest("Unknown field: 'tol'.", "tool") in said.out


NEEDS = """\
name: w
steps:
  - {name: a, tool: nowhere}
  - {name: b, agent: nobody, arguments: {task: x}}
  - {name: c, plan: {steps: [{name: d, tool: elsewhere}]}}
"""


def test_a_check_fails_and_names_what_is_missing(tmp_path, db, capsys):
    file = tmp_path / "needs.yaml"
    file.write_text(NEEDS)

    with pytest.raises(
        CommandError, match="the tools elsewhere, nowhere and the agent nobody"
    ) as e:
        call_command("workflow", "check", str(file))

    assert e.value.returncode == 1
    assert f"{file}:3:" in capsys.readouterr().out


def test_a_check_fails_when_arguments_do_not_match_a_tool(tmp_path, db):
    file = tmp_path / "odd.yaml"
    file.write_text("name: w\nsteps:\n  - {name: a, tool: calculator}\n")

    with pytest.raises(CommandError, match="arguments don't match"):
        call_command("workflow", "check", str(file))
