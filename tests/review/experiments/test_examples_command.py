"""The examples command."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents.models import Agent, Run
from agents.review.annotations import examples
from agents.review.models import Example

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]


def manage(*arguments):
    out = StringIO()
    call_command("examples", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def create_example(tester, name, question, expected=None):
    """Save an example from the command line, where a run has no user."""
    call_command("ask", question, stdout=StringIO(), stderr=StringIO())
    run = Run.objects.latest("pk")
    return examples.save(tester, run, name, run.answer if expected is None else expected)


def test_the_command_prints_scores_and_saves_them(tester):
    create_example(tester, "Percent", "What is 12.5% of 3480?")
    create_example(tester, "計算", "6 * 7", expected="まったく別の答え")

    lines = manage("run").splitlines()

    assert lines[0].split() == ["passed", "1.00", "Percent"]
    assert lines[1].split() == ["failed", "0.00", "計算"]
    assert lines[-1] == "Mean of 2: 0.50"
    assert [row.score for row in Example.objects.order_by("pk")] == [1.0, 0.0]
    assert "0.00" in manage("list")


def test_below_the_threshold_the_command_fails_and_names_the_examples(tester):
    create_example(tester, "Off", "6 * 7", expected="Nothing of the kind")
    create_example(tester, "Fine", "6 * 7")

    with pytest.raises(CommandError, match=r"Scores below 0.8: Off\."):
        manage("run", "--fail-under", "0.8")
    manage("run", "Fine", "--fail-under", "0.8")


def test_results_are_printed_as_json_and_not_saved_for_another_model(tester):
    create_example(tester, "Sum", "6 * 7")
    Agent.objects.update(model="nobody/nothing")

    out = manage("run", "--json", "--model", "demo")

    [row] = [json.loads(line) for line in out.splitlines()]
    assert (row["model"], row["score"], row["divergence"]) == ("demo", 1.0, None)
    assert Example.objects.get().score is None


def test_an_example_without_an_agent_has_advice(tester):
    create_example(tester, "Sum", "6 * 7")
    Agent.objects.all().delete()
    Agent.objects.create(name="other")

    assert "The agent helper was deleted. Choose one with --agent." in manage("run")
    assert Example.objects.get().score is None
    assert "Mean of 1" in manage("run", "--agent", "other")


def test_examples_are_removed_by_name(tester):
    create_example(tester, "Sum", "6 * 7")

    with pytest.raises(CommandError, match="There is no example named 'x'"):
        manage("remove", "x")
    manage("remove", "Sum")

    assert not Example.objects.exists()
    with pytest.raises(CommandError, match="There are no examples yet"):
        manage("run")
