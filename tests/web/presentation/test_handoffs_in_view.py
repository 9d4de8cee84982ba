"""Handoffs as displayed: who works for whom, and how deep."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.engine.testing import Says
from agents.models import Agent, AgentStep, Run
from agents.web.presentation import RunView, StepView
from agents.web.presentation.run_fragments import run_header
from agents.web.presentation.step_fragments import step_row
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
async def circle(agent, scripted):
    """Two agents that hand off to each other in a cycle."""
    lead = await Agent.objects.acreate(name="lead")
    await lead.handoffs.aadd(agent)
    await agent.handoffs.aadd(lead)
    scripted(
        Says.call("ask_helper", "Helper knows.", task="6 * 7"),
        Says.call("ask_lead", "Lead knows.", task="6 * 7"),
        Says(answer="42."),
        Says(answer="Helper says 42."),
    )
    return await run_question("6 * 7?", agent=lead)


def rows(run):
    return RunView(Run.objects.get(pk=run.pk), "trace").steps


async def test_steps_of_a_sub_agent_show_its_name_and_path(circle):
    views = await sync_to_async(rows)(circle)

    spoken = [(view.agent_name, view.speaker, view.full_path) for view in views]
    assert {("lead", "", ""), ("helper", "helper", "lead → helper")} == set(spoken)


async def test_a_handoff_loop_is_rejected_with_a_message(circle):
    views = {view.action: view for view in await sync_to_async(rows)(circle)}

    assert circle.answer == "Helper says 42."
    assert views["ask_helper"].intent == "Handoff to helper: 6 * 7"
    assert views["ask_lead"].status == "failed"
    refused = "lead failed: This handoff would loop: lead → helper → lead."
    assert views["ask_lead"].intent.startswith(refused)


def create_nested_steps(run, *agents, status="running"):
    """Create a step per agent, each inside the previous one."""
    for number, name in enumerate(agents, start=1):
        AgentStep.objects.create(
            run=run,
            number=number,
            parent=number - 1 or None,
            depth=number - 1,
            agent_name=name,
            kind="tool",
            status=status,
            started_at=timezone.now(),
        )


@pytest.fixture
def run(person):
    return Run.objects.create(user=person, topic="t", agent_name="lead", query="?")


def test_the_path_is_shown_for_any_depth(run):
    create_nested_steps(run, "lead", "helper", "helper", "careful")

    *_, last = RunView(run).steps

    assert last.speaker == "helper → careful"
    assert last.full_path == "lead → helper → careful"
    html = step_row(last)
    assert 'title="lead → helper → careful">helper → careful</span>' in html


def test_the_run_header_shows_the_active_sub_agent(run):
    create_nested_steps(run, "lead", "helper")

    def head(**about):
        return run_header(RunView(run, **about))

    assert '<span class="agent">lead → helper</span>' in head()
    assert '<span class="agent">lead → helper</span>' in head(speaker="helper")
    assert '<span class="agent">lead</span>' in head(speaker="lead")
    run.status = "completed"
    assert '<span class="agent">lead</span>' in head()


def test_a_question_to_a_user_is_not_shown_as_a_handoff(run):
    step = AgentStep(run=run, number=1, kind="tool", action="ask_person", agent_name="lead")
    step.action_input = {"question": "May we?"}

    assert StepView(step, run).handoff_agent == ""
    assert StepView(step, run).intent == "Question for the user: May we?"
