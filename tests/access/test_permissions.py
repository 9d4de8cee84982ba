"""Restrictions of agents and tools apply to everything done for a user."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.utils import timezone

from agents import runs
from agents.access import permissions
from agents.catalog import agent_factory
from agents.models import Agent, Run, Schedule, ToolRegistration, Workflow
from agents.review.replays import reruns
from agents.web.workflows import acceptance, schedules, start
from chat import messages
from chat.errors import MessageRejected
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

STEPS = """\
name: sum
steps:
  - name: Sum
    tool: calculator
    arguments: {expression: 6 * 7}
"""


@pytest.fixture
def finance(person):
    """A group with Ada in it, but not Eve."""
    group = Group.objects.create(name="finance")
    group.user_set.add(person)
    return group


@pytest.fixture
def ledger(finance):
    agent = Agent.objects.create(name="ledger", model="demo")
    agent.groups.add(finance)
    return agent


@pytest.fixture
def workflow():
    workflow = Workflow.objects.create(name="sum")
    workflow.versions.create(number=1, text=STEPS)
    return workflow


def restrict_tool(tool, group):
    row = ToolRegistration.objects.get(name=tool)
    row.groups.add(group)
    return row


def offered_tools(run):
    return {t["function"]["name"] for t in run.events.get(type="run_started").data["tools"]}


def test_agents_of_a_group_are_hidden_from_others(person, stranger, administrator, ledger):
    usable = Agent.objects.usable_by

    assert ledger in usable(person)
    assert ledger not in usable(stranger)
    assert ledger in usable(administrator)
    assert ledger in usable(None)
    assert permissions.restrictions_for(stranger.pk).agents == {ledger.pk}
    assert permissions.restrictions_for(person.pk) == permissions.restrictions_for(
        administrator.pk
    )


def test_a_forbidden_agent_is_not_on_the_page(client, person, stranger, ledger):
    pages = {}
    for user in (person, stranger):
        client.force_login(user)
        pages[user] = client.get("/").text

    assert 'value="ledger"' in pages[person]
    assert "ledger" not in pages[stranger]


@pytest.mark.parametrize("name", ["ledger", "no-such-agent"])
def test_a_forbidden_agent_looks_like_a_missing_one(stranger, ledger, name):
    with pytest.raises(MessageRejected, match="This agent is no longer available"):
        messages.save(None, stranger, "hello", "1", name)

    assert not Run.objects.exists()


def test_the_default_agent_is_the_first_allowed_one(agent, person, stranger, finance):
    agent.groups.add(finance)
    other = Agent.objects.create(name="other", model="demo")

    assert agent_factory.default_agent(person.pk) == agent
    assert agent_factory.default_agent(stranger.pk) == other
    assert agent_factory.default_agent() == agent


async def test_a_run_whose_agent_became_forbidden_ends_with_a_message(stranger, ledger):
    run = await run_question("6 * 7", user=stranger, agent=ledger)

    assert run.status == "failed"
    assert run.detail == "You no longer have access to this agent."


async def test_a_forbidden_tool_is_not_offered(person, stranger, finance):
    await sync_to_async(restrict_tool)("calculator", finance)

    theirs = await run_question("hello", user=person)
    others = await run_question("hello", user=stranger, topic="chat.2")

    assert "calculator" in await sync_to_async(offered_tools)(theirs)
    assert "calculator" not in await sync_to_async(offered_tools)(others)
    assert "search" in await sync_to_async(offered_tools)(others)


async def test_a_forbidden_sub_agent_is_not_offered(agent, person, stranger, ledger):
    await agent.handoffs.aadd(ledger)

    theirs = await run_question("hello", user=person)
    others = await run_question("hello", user=stranger, topic="chat.2")

    assert "ask_ledger" in await sync_to_async(offered_tools)(theirs)
    assert "ask_ledger" not in await sync_to_async(offered_tools)(others)


def test_a_workflow_with_a_forbidden_step_does_not_start(person, stranger, finance, workflow):
    restrict_tool("calculator", finance)

    assert start.parse_command("/workflow sum", person) is not None
    with pytest.raises(start.WorkflowNotStarted, match="calculator"):
        start.parse_command("/workflow sum", stranger)


async def test_a_workflow_does_not_resume_with_a_forbidden_agent(
    agent, stranger, finance, workflow
):
    wish = await sync_to_async(start.parse_command)("/workflow sum", stranger)
    run = await sync_to_async(start.prepare_run)(wish, stranger, "chat.1")
    await agent.groups.aadd(finance)

    runs.launch(run)
    await runs.wait(run)

    await run.arefresh_from_db()
    assert (run.status, run.detail) == ("failed", "You no longer have access to this agent.")
    assert not await run.steps.aexists()


def test_a_schedule_has_its_users_permissions_when_due(person, finance, workflow):
    restrict_tool("calculator", finance)
    due = {"cron": "* * * * *", "next_at": timezone.now()}
    schedule = Schedule.objects.create(workflow=workflow, user=person, **due)
    acceptance.update_acceptance(schedule, person)
    finance.user_set.remove(person)

    assert schedules.start_due(timezone.now()) == []

    schedule.refresh_from_db()
    assert "calculator" in schedule.trouble


async def test_a_rerun_with_a_forbidden_agent_is_rejected(person, ledger, finance):
    run = await run_question("6 * 7", user=person, agent=ledger)
    await finance.user_set.aremove(person)

    with pytest.raises(reruns.RerunRejected, match="have access to the agent of this run"):
        await sync_to_async(reruns.RerunSetup)(run, person.pk)


async def test_forbidden_tools_cannot_be_chosen_for_a_rerun(person, finance):
    run = await run_question("6 * 7", user=person)
    await sync_to_async(restrict_tool)("calculator", finance)
    await finance.user_set.aremove(person)

    setup = await sync_to_async(reruns.RerunSetup)(run, person.pk)

    assert "calculator" not in await sync_to_async(lambda: setup.tools)()
