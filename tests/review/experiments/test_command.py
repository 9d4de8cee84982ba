"""`manage.py run_examples`: its exit codes and what it prints."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents.catalog import agent_versions
from agents.engine.testing import Says
from agents.models import Agent
from agents.review.experiments.models import Experiment

from .conftest import SUM

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]


def run(*args):
    """Return the exit code and what was printed."""
    printed = StringIO()
    try:
        call_command("run_examples", *args, stdout=printed)
    except CommandError as error:
        return error.returncode, f"{printed.getvalue()}{error}"
    return 0, printed.getvalue()


def test_a_set_that_passes_exits_with_0(scripted, example):
    scripted(SUM, Says(answer="It is 42."))

    code, said = run("Sums", "--agent", "helper")

    assert (code, said.splitlines()[-1]) == (0, "1 of 1 passed, mean score 1.00")


def test_a_failed_check_exits_with_1_and_says_which(scripted, example):
    example.checks = [{"kind": "contains", "value": "42"}, {"kind": "contains", "value": "xx"}]
    example.save()
    scripted(SUM, Says(answer="It is 42."))

    code, said = run("Sums", "--agent", "helper")

    assert code == 1
    assert "Answer contains: xx" in said
    assert "1 of 1 didn't pass." in said


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.9", 1)])
def test_the_lowest_score_decides(scripted, example, least, code):
    example.checks = [{"kind": "contains", "value": "42"}, {"kind": "contains", "value": "xx"}]
    example.save()
    scripted(SUM, Says(answer="It is 42."))

    assert run("Sums", "--agent", "helper", "--min-score", least)[0] == code


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["Nothing"], "no example set named 'Nothing'. Available: Sums."),
        (["Sums"], "Choose an agent with --agent."),
        (["Sums", "--agent", "nobody"], "no agent named 'nobody'"),
        (["Sums", "--agent", "helper", "--version", "99"], "helper has no version 99."),
        (["Sums", "--agent", "helper"], "There is nothing to run."),
    ],
)
def test_what_cant_be_run_exits_with_2(example_set, args, reason):
    code, said = run(*args)

    assert code == 2
    assert reason in said


def test_an_earlier_version_answers_with_its_own_instructions(scripted, example):
    agent = Agent.objects.get(name="helper")
    agent.instructions = "The old ones."
    agent.save()
    old = agent_versions.save(agent, None)
    Agent.objects.update(instructions="The new ones.")
    model = scripted(SUM, Says(answer="It is 42."))

    code, _said = run("Sums", "--agent", "helper", "--version", str(old.number))

    assert code == 0
    assert "The old ones." in str(model.requests[0]["messages"][0])
    assert Experiment.objects.get().version == old.number


def test_the_result_is_one_json_document(scripted, example):
    scripted(SUM, Says(answer="It is 42."))

    _code, said = run("Sums", "--agent", "helper", "--json")

    report = json.loads(said)
    assert (report["score"], report["results"][0]["answer"]) == (1.0, "It is 42.")
