"""Versions of agents, and the one a run used."""

from io import StringIO

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.management import call_command

from agents import runs
from agents.catalog import agent_spec, agent_versions
from agents.console.language_models.model_page import use_in_agent
from agents.engine.testing import Says
from agents.models import Agent, AgentTool, Run
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def change(agent, **columns):
    Agent.objects.filter(pk=agent.pk).update(**columns)
    return agent_versions.save(agent, None)


def test_a_version_is_plain_data_with_names_instead_of_ids(agent):
    agent.handoffs.add(Agent.objects.create(name="other"))
    agent.groups.add(Group.objects.create(name="Sales"))
    AgentTool.objects.filter(tool__name="search").update(timeout=5, approval="always")

    told = agent_spec.describe(agent)

    search = {"approval": "always", "timeout": 5}
    assert told["tools"] == {"calculator": {}, "database": {}, "search": search}
    assert (told["handoffs"], told["groups"]) == (["other"], ["Sales"])
    assert told["name"] == "helper"
    assert not {"id", "version"} & told.keys()


def test_a_version_is_saved_only_when_something_changed(agent, administrator):
    first = agent_versions.save(agent, administrator, "Begun.")
    again = agent_versions.save(agent, administrator)
    second = change(agent, instructions="Be brief.")

    assert (first.number, first.author, first.note) == (1, administrator, "Begun.")
    assert again is None
    assert second.snapshot["instructions"] == "Be brief."
    assert agent.version == Agent.objects.get().version == 2


def test_the_state_before_the_first_change_is_a_version(agent, administrator):
    before = agent.model
    use_in_agent(administrator, "demo", agent)
    agent.refresh_from_db()

    first = agent.versions.get(number=1)
    assert (first.snapshot["model"], agent.version) == (before, 2)


def test_the_sample_agents_have_a_version_from_the_start():
    Agent.objects.all().delete()
    call_command("seed_demo", stdout=StringIO())

    assert {agent.versions.count() for agent in Agent.objects.all()} == {1}


def test_an_old_version_is_restored_with_its_tools_as_they_were(agent):
    AgentTool.objects.filter(tool__name="search").update(max_calls=3)
    agent_versions.save(agent, None)
    agent.tools.clear()
    change(agent, instructions="Be brief.", max_steps=3)

    assert agent_versions.restore(agent, 1, None) == []

    agent = Agent.objects.get()
    assert (agent.instructions, agent.max_steps, agent.version) == ("", 10, 3)
    assert agent.links.get(tool__name="search").max_calls == 3
    assert agent.versions.first().note == "Restored version 1."


def test_restoring_reports_what_no_longer_exists(agent):
    other = Agent.objects.create(name="other")
    group = Group.objects.create(name="Sales")
    agent.handoffs.add(other)
    agent.groups.add(group)
    agent_versions.save(agent, None)
    change(agent, name="renamed")
    Agent.objects.create(name="helper")
    agent.tools.get(name="search").delete()
    agent.groups.clear()
    group.delete()
    other.delete()

    troubles = agent_versions.restore(agent, 1, None)

    assert troubles == [
        "Another agent is now named helper, so this one keeps the name renamed.",
        "The tool search no longer exists, so it wasn't included.",
        "The group Sales no longer exists, so it wasn't included.",
        "The agent other no longer exists, so it wasn't included.",
    ]
    assert [tool.name for tool in agent.tools.all()] == ["calculator", "database"]


def test_restoring_a_deleted_group_does_not_open_the_agent_to_everyone(agent):
    sales, finance = (Group.objects.create(name=name) for name in ("Sales", "Finance"))
    agent.groups.set([sales])
    agent_versions.save(agent, None)
    agent.groups.set([finance])
    sales.delete()

    agent_versions.restore(agent, 1, None)

    assert list(agent.groups.all()) == [finance]


def test_restoring_keeps_the_current_enabled_and_default_state(agent):
    agent_versions.save(agent, None)
    Agent.objects.filter(pk=agent.pk).update(enabled=False, is_default=False)
    Agent.objects.create(name="other", is_default=True)

    agent_versions.restore(agent, 1, None)

    assert not Agent.objects.get(name="helper").enabled
    assert not Agent.objects.get(name="helper").is_default


def test_a_copy_has_another_name_and_is_disabled(agent):
    AgentTool.objects.filter(tool__name="search").update(timeout=5)

    names = [agent_versions.clone(agent, None).name for _ in range(2)]
    copy = Agent.objects.get(name="helper-copy")

    assert names == ["helper-copy", "helper-copy-2"]
    assert (copy.enabled, copy.is_default, copy.version) == (False, False, 1)
    assert agent_spec.describe(copy)["tools"] == agent_spec.describe(agent)["tools"]


def test_copies_of_long_names_and_of_copies_get_a_valid_name(agent):
    long = Agent.objects.create(name="x" * 59)
    copy = agent_versions.clone(long, None)

    agent_versions.clone(copy, None).full_clean()
    assert copy.name == "x" * 54 + "-copy"


async def test_a_run_has_the_version_it_started_with(agent, scripted):
    scripted(Says(answer="42"), Says(answer="43"))
    first = await run_question("6 * 7", agent=agent)
    await sync_to_async(change)(agent, instructions="Be brief.")

    second = await run_question("6 * 7 + 1", agent=await Agent.objects.aget())

    assert (first.agent_version, second.agent_version) == (1, 2)


async def test_a_queued_run_has_the_version_of_its_start(agent, scripted):
    scripted(Says(answer="42"))
    await sync_to_async(agent_versions.save)(agent, None)
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1", agent=agent)
    await sync_to_async(change)(agent, instructions="Be brief.")
    run = await Run.objects.select_related("agent").aget(pk=run.pk)

    runs.launch(run)
    await runs.wait(run)

    assert (await Run.objects.aget()).agent_version == 2


async def test_a_resumed_run_keeps_its_version(agent, scripted):
    await sync_to_async(agent_versions.save)(agent, None)
    run = await Run.objects.acreate(
        query="6 * 7", topic="chat.1", agent=agent, agent_version=1, version="3fa2b1c0"
    )
    scripted(Says(answer="42"))
    await sync_to_async(change)(agent, instructions="Be brief.")
    run = await Run.objects.select_related("agent").aget(pk=run.pk)

    runs.resume(run)
    await runs.wait(run)

    assert (await Run.objects.aget()).agent_version == 1


def test_a_run_of_a_known_version_needs_no_extra_query(agent, django_assert_num_queries):
    agent_versions.save(agent, None)
    run = Run.objects.create(query="6 * 7", agent=agent, agent_version=1)

    with django_assert_num_queries(0):
        agent_versions.record(run)

    assert run.agent_version == 1
