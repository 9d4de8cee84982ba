"""Panels and roles as the rows describe them: from the question to what is kept."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents import assembly
from agents.management.commands import seed_demo
from agents.models import Agent
from tests.conftest import asked, checked
from tests.scripted import Says

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("workshop"),
]

REVIEW = {
    "description": "Have it reviewed",
    "steps": [{"name": "look", "role": "Lawyer", "arguments": {"task": "Is it legal?"}}],
}


@pytest.fixture
def panel(samples):
    seed_demo.make_agents()
    return Agent.objects.get(name="panel")


async def test_the_panel_of_a_first_visit_shows_where_its_members_differ(panel):
    run = await checked(await asked("How many orders were refunded?", agent=panel))

    rows = [(s.kind, s.action) async for s in run.steps.filter(parent=None)]
    assert rows == [
        ("task", "helper"),
        ("task", "librarian"),
        ("evaluation", "agreement"),
        ("answer", ""),
    ]
    assert "(helper)" in run.answer
    assert "**Where they differed**\n\n- helper: “There are 23" in run.answer
    check = await run.steps.aget(kind="evaluation")
    assert check.action_input["groups"] == [["helper"], ["librarian"]]
    assert [head["name"] for head in check.action_input["heads"]] == ["helper", "librarian"]


async def test_members_that_say_the_same_need_nobody_to_compare_them(panel):
    run = await checked(await asked("How do I approve a tool call?", agent=panel))

    check = await run.steps.aget(kind="evaluation")
    assert check.observation == "They all agree."
    assert not await run.steps.filter(parent=check.number).aexists()


@pytest.mark.parametrize(
    ("merge", "chosen", "words"),
    [("vote", "", "### helper"), ("judge", "helper", "> **helper**: It gives a figure.")],
)
async def test_a_panel_can_vote_or_have_a_judge(panel, merge, chosen, words):
    panel.merge = merge
    await panel.asave()

    run = await checked(await asked("How many orders were refunded?", agent=panel))

    check = await run.steps.aget(kind="evaluation")
    assert check.action_input["chosen"] == chosen
    assert words in run.answer


async def test_a_panel_is_told_what_was_said_before(panel):
    before = [
        {"role": "user", "content": "How many orders were refunded in 2024?"},
        {"role": "assistant", "content": "None.\n\nNot one."},
    ]
    run = await asked("How many orders were refunded?", agent=panel, history=before)

    assert "orders that were refunded" in run.answer


async def test_a_step_for_a_role_goes_to_the_agent_that_has_it(agent, scripted):
    lawyer = await Agent.objects.acreate(name="counsel", roles="lawyer, notary")
    planner = await _planner(lawyer)
    model = scripted(Says(answer=json.dumps(REVIEW)), Says(answer="Yes."), Says(answer="Good."))

    run = await checked(await asked("May we?", agent=planner))

    model.assert_used_up()
    task = await run.steps.aget(kind="task")
    call = await run.steps.aget(kind="tool")
    assert (task.action, task.observation) == ("look", "Yes.")
    assert (call.action, call.action_input) == ("ask_counsel", {"task": "Is it legal?"})
    assert "lawyer, notary" in model.requests[0]["messages"][0]["content"]


async def test_a_step_for_a_role_that_only_people_have_waits_for_one_of_them(agent, scripted):
    await Group.objects.acreate(name="Lawyer")
    planner = await _planner()
    scripted(Says(answer=json.dumps(REVIEW)))

    run = await asked("May we?", agent=planner)

    question = await run.approvals.aget()
    assert run.status == "waiting"
    assert (question.role, question.tool) == ("Lawyer", "ask_person")


async def test_a_plan_with_a_role_that_nobody_has_is_not_carried_out(agent, scripted):
    planner = await _planner()
    model = scripted(*[Says(answer=json.dumps(REVIEW))] * 3)

    run = await asked("May we?", agent=planner)

    model.assert_used_up()
    assert run.status == "failed"
    assert run.detail.endswith("'look' needs the role 'Lawyer', which is not there.")
    assert not await run.steps.filter(kind="task").aexists()


async def test_a_plan_without_steps_is_no_problem():
    assert assembly._wrong(assembly.ExecutionPlan(), assembly.ToolRegistry(), frozenset()) == []


async def _planner(*colleagues):
    planner = await Agent.objects.acreate(name="planner", mode="plan")
    await sync_to_async(planner.handoffs.set)(colleagues)
    return planner
