"""Of a tool and its fallback, the more reliable one is called first, for agents that learn."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.catalog.tools import tool_reliability
from agents.catalog.tools.tool_reliability import Reliability
from agents.engine.testing import Says
from agents.models import AgentStep, Run, RunEvent, ToolRegistration
from tests.conftest import run_question

pytestmark = pytest.mark.django_db


def make_calls(tool, count, failures, user=None, *, topic="chat.9", failed_tool=""):
    now = timezone.now()
    run = Run.objects.create(query="?", topic=topic, status="completed", user=user)
    AgentStep.objects.bulk_create(
        AgentStep(
            run=run, number=AgentStep.objects.count() + number, kind="tool", action=tool,
            status="failed" if number < failures else "done", started_at=now, ended_at=now,
            failed_tool=failed_tool,
        )
        for number in range(count)
    )  # fmt: skip


def test_tools_with_enough_calls_are_counted():
    make_calls("database", 30, 12)
    make_calls("search", 19, 0)

    found = tool_reliability.count()
    assert {name: one[:2] for name, one in found.items()} == {"database": (30, 12)}


def test_a_call_rescued_by_the_fallback_is_a_failure_of_the_tool(person):
    make_calls("database", 21, 0, person)
    make_calls("backup", 63, 0, person, failed_tool="database")

    assert tool_reliability.count()["database"][:2] == (84, 63)
    assert is_preferred()


def test_calls_of_experiments_and_tests_are_not_counted(person):
    for topic in ("trial.1", "trial.experiment.1.a"):
        make_calls("database", 30, 30, person, topic=topic)

    assert tool_reliability.count() == {}


def test_one_run_from_the_command_line_changes_nothing_for_a_single_user(person):
    make_calls("database", 40, 30, person)
    make_calls("backup", 40, 0, person)
    make_calls("database", 1, 0)

    assert is_preferred()


def is_preferred():
    found = tool_reliability.count()
    return found["backup"].is_better_than(found["database"])


def test_one_person_cannot_make_a_tool_look_unreliable(person, stranger, administrator):
    for user in (stranger, administrator):
        make_calls("database", 20, 0, user)
        make_calls("backup", 50, 0, user)
    make_calls("database", 500, 500, person)
    assert not is_preferred()

    make_calls("database", 30, 30, stranger)  # now it fails for two
    assert is_preferred()


def test_one_person_cannot_make_a_tool_look_reliable(person, stranger):
    make_calls("database", 40, 30, stranger)
    make_calls("database", 40, 30, person)
    make_calls("backup", 500, 0, person)

    assert not is_preferred()


def test_with_a_single_user_their_calls_count(person):
    make_calls("database", 40, 30, person)
    make_calls("backup", 40, 0, person)

    assert is_preferred()


@pytest.fixture
def known(monkeypatch):
    def use(**figures):
        found = {
            name: tool_reliability.Reliability.of([pair] * 2) for name, pair in figures.items()
        }
        monkeypatch.setattr(tool_reliability, "known", lambda: found)

    return use


@pytest.fixture
def equivalent(agent):
    """Let the search be the fallback of the calculator, which takes the same input."""
    rows = ToolRegistration.objects
    rows.filter(name="search").update(fallback=rows.get(name="calculator"))
    return agent


async def notes_of(run):
    events = RunEvent.objects.filter(run=run, type="status", data__kind="tool_fallback")
    return [event.data async for event in events]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("run_executor")
@pytest.mark.parametrize("learns", [True, False])
async def test_a_clearly_more_reliable_fallback_is_called_first(
    scripted, equivalent, known, learns, monkeypatch
):
    known(search=(40, 30), calculator=(40, 0))
    monkeypatch.setattr(
        "agents.engine.loop.tool_calls.tool_runner._accepts", lambda tool, call: True
    )
    equivalent.learns = learns
    await equivalent.asave()
    scripted(Says.call("search", query="1", expression="6 * 7"), Says(answer="Done."))

    run = await run_question("?", agent=equivalent)

    noted = await notes_of(run)
    step = await sync_to_async(run.steps.get)(kind="tool")
    assert bool(noted) is learns
    if learns:
        assert noted[0]["is_preferred"] is True
        assert noted[0]["message"] == "60 of 80 recent calls failed."
        assert (step.action, "42" in step.observation) == ("calculator", True)


@pytest.mark.parametrize("figures", [(40, 2), (20, 4)])
async def test_a_small_difference_changes_nothing(known, figures):
    known(search=figures, calculator=(40, 0))
    tool = type("Search", (), {"name": "search", "fallback_tool": "calculator"})()
    registry = type("Tools", (), {"list_tools": lambda _: ["search"], "get": lambda *_: tool})()

    await tool_reliability.PreferredTools().tools(None, registry)

    assert not hasattr(tool, "prefers_fallback")


def test_one_person_cannot_hide_a_tool_from_others(monkeypatch):
    fine, bullied = Reliability.of([(20, 0), (30, 0)]), Reliability.of([(20, 0), (30, 30)])
    broken = Reliability.of([(20, 20), (30, 30)])
    known = {"fine": fine, "bullied": bullied, "broken": broken}
    monkeypatch.setattr(tool_reliability, "known", lambda: known)

    rates = tool_reliability.success_rates()

    assert rates["fine"] == rates["bullied"] == 1
    assert rates["broken"] < 0.2
