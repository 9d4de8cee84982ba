"""The examples command."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents.models import Agent, Run
from agents.review import examples
from agents.review.models import Example

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]


def manage(*arguments):
    out = StringIO()
    call_command("examples", *arguments, stdout=out)
    return out.getvalue()


def create_example(reviewer, name, question, expected=None):
    """Save an example from the command line, where a run has no user."""
    call_command("ask", question, stdout=StringIO(), stderr=StringIO())
    run = Run.objects.latest("pk")
    return examples.save(reviewer, run, name, run.answer if expected is None else expected)


def test_the_command_prints_a_table_and_saves_the_score(reviewer):
    create_example(reviewer, "Percent", "What is 12.5% of 3480?")
    create_example(reviewer, "計算", "6 * 7", expected="まったく別の答え")

    table = manage("run")

    lines = table.splitlines()
    assert lines[0].split() == ["example", "agent", "model", "calls", "answer", "score"]
    assert lines[1].split() == ["Percent", "helper", "demo", "1.00", "1.00", "1.00"]
    assert lines[2].split() == ["計算", "helper", "demo", "1.00", "0.00", "0.50"]
    assert "Mean of 2: 0.75" in table
    assert [row.score for row in Example.objects.order_by("pk")] == [1.0, 0.5]
    assert "0.50" in manage("list")


def test_below_the_threshold_the_command_fails_and_names_the_examples(reviewer):
    create_example(reviewer, "Off", "6 * 7", expected="Nothing of the kind")
    create_example(reviewer, "Fine", "6 * 7")

    with pytest.raises(CommandError, match=r"Scores below 0.8: Off\."):
        manage("run", "--fail-under", "0.8")
    manage("run", "Fine", "--fail-under", "0.8")


def test_results_are_printed_as_json_and_not_saved_for_another_model(reviewer):
    create_example(reviewer, "Sum", "6 * 7")
    Agent.objects.update(model="nobody/nothing")

    out = manage("run", "--json", "--model", "demo")

    [row] = [json.loads(line) for line in out.splitlines()]
    assert (row["model"], row["score"], row["not_recorded"]) == ("demo", 1.0, [])
    assert Example.objects.get().score is None


def test_an_example_without_an_agent_has_advice(reviewer):
    create_example(reviewer, "Sum", "6 * 7")
    Agent.objects.all().delete()
    Agent.objects.create(name="other")

    assert "The agent helper was deleted. Choose one with --agent." in manage("run")
    assert Example.objects.get().score is None
    assert "other" in manage("run", "--agent", "other")


def test_examples_are_removed_by_name(reviewer):
    create_example(reviewer, "Sum", "6 * 7")

    with pytest.raises(CommandError, match="There is no example named 'x'"):
        manage("remove", "x")
    manage("remove", "Sum")

    assert not Example.objects.exists()
    with pytest.raises(CommandError, match="There are no examples yet"):
        manage("run")
