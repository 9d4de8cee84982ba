"""An agent's own tool settings."""

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from agents.catalog import agent_factory
from agents.engine.testing import Says
from agents.models import Agent, AgentTool, AuditEntry, McpServer, Run, ToolRegistration
from tests.conftest import run_question
from tests.console.forms import agent_form
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def link(name, **settings):
    AgentTool.objects.filter(tool__name=name).update(**settings)


async def tool(name):
    agent = await Agent.objects.aget()
    topic = f"chat.{name}"
    run = await Run.objects.acreate(query="6 * 7", topic=topic, agent=agent)
    return (await agent_factory.build(run)).tools.get(name)


def tool_fields(name, **settings):
    pk = ToolRegistration.objects.get(name=name).pk
    given = {"is_given": "on"} | settings
    return {f"tool-{pk}-{setting}": value for setting, value in given.items()}


async def test_an_agent_setting_overrides_the_tools():
    await sync_to_async(link)("calculator", approval="always", effect="at_most_once", timeout=7)

    calculator, search = await tool("calculator"), await tool("search")

    assert (calculator.needs_approval, calculator.effect) == (True, "at_most_once")
    assert calculator.timeout == 7
    assert (search.effect, search.timeout) == ("read", 30)


async def test_an_agent_describes_a_tool_and_limits_its_retries():
    settings = {"description": "Only for sums.", "retries": 0}
    await sync_to_async(link)("calculator", **settings)

    calculator, search = await tool("calculator"), await tool("search")

    assert (calculator.description, calculator.max_retries) == ("Only for sums.", 0)
    assert search.max_retries is None


async def test_an_agent_can_use_a_tool_without_its_usual_approval():
    await ToolRegistration.objects.aupdate(approval="always")
    await sync_to_async(link)("calculator", approval="never")

    assert not (await tool("calculator")).needs_approval
    assert (await tool("search")).needs_approval


async def test_an_agent_has_its_own_call_limit_for_a_tool(scripted):
    await sync_to_async(link)("calculator", max_calls=1)
    scripted(Says.call("calculator", expression="1"), Says.call("calculator", expression="2"))

    run = await run_question("Add up.")

    assert run.stopped_reason == "tool_call_limit"
    assert run.detail == "The agent can call 'calculator' up to 1 times per run."


async def test_an_agents_call_limit_can_exceed_the_default(scripted):
    await Agent.objects.aupdate(max_tool_calls_per_tool=1)
    await sync_to_async(link)("calculator", max_calls=2)
    twice = [Says.call("calculator", expression=str(number)) for number in (1, 2)]
    scripted(*twice, Says(answer="3"))

    assert (await run_question("Add up.")).status == Run.Status.COMPLETED


def test_the_agent_form_saves_tools_with_their_settings(admin_client):
    search = {"approval": "always", "effect": "read", "timeout": 9, "max_calls": 3}
    search |= {"retries": 0, "sending": "always", "description": "Searches."}
    chosen = tool_fields("search", **search)
    admin_client.post(
        reverse("admin:agents_agent_add"), agent_form(**chosen, **tool_fields("calculator"))
    )

    writer = Agent.objects.get(name="writer")
    assert writer.links.get(tool__name="search").settings == search
    assert {*writer.tools.values_list("name", flat=True)} == {"search", "calculator"}


def test_unchecking_a_tool_removes_it_and_keeps_the_others(admin_client, agent):
    link("search", timeout=5)
    kept = agent_form(name="helper", is_default="on") | tool_fields("search", timeout="5")
    admin_client.post(reverse("admin:agents_agent_change", args=[agent.pk]), kept)

    assert [(each.tool.name, each.timeout) for each in agent.links.all()] == [("search", 5)]


def test_the_history_lists_changes_of_tool_settings(admin_client, agent):
    kept = agent_form(name="helper", is_default="on") | tool_fields("search", timeout="5")
    admin_client.post(reverse("admin:agents_agent_change", args=[agent.pk]), kept)

    changes = AuditEntry.objects.latest("pk").detail["changes"]
    assert changes["given"] == [["calculator", "database", "search"], ["search (timeout 5)"]]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    one_in(
        4,
        [
            ("timeout", "601", "less than or equal to 600"),
            ("timeout", "soon", "whole number"),
            ("max_calls", "0", "greater than or equal to 1"),
            ("approval", "perhaps\0", "valid choice"),
        ],
    ),
)
def test_an_invalid_setting_is_reported_on_its_row(admin_client, setting, value, words):
    typed = agent_form(**tool_fields("search", **{setting: value}))
    response = admin_client.post(reverse("admin:agents_agent_add"), typed)

    form = response.context["adminform"].form
    assert form.errors["given"] == ["Check the settings of search."]
    assert words in response.text
    assert not Agent.objects.filter(name="writer").exists()


def test_empty_settings_show_their_default(admin_client, agent):
    ToolRegistration.objects.filter(name="database").update(approval="always", timeout=44)

    page = admin_client.get(reverse("admin:agents_agent_change", args=[agent.pk])).text

    assert "Default (always)" in page
    assert 'placeholder="44"' in page
    assert "Default (read-only)" in page


def test_tool_settings_changed_by_another_user_are_not_overwritten(admin_client, agent):
    change = reverse("admin:agents_agent_change", args=[agent.pk])
    seen = admin_client.get(change).context["seen"]
    link("search", timeout=5)

    response = admin_client.post(change, agent_form(name="helper", _seen=seen))

    assert "changed" in response.context["adminform"].form.non_field_errors()[0]
    assert AgentTool.objects.get(tool__name="search").timeout == 5


def test_tools_are_grouped_by_source_and_can_be_searched(admin_client, agent):
    server = McpServer.objects.create(name="mail", state="failed", last_error="Timed out.")
    ToolRegistration.objects.create(name="mail__send", source="mcp", server=server)

    html = admin_client.get(reverse("admin:agents_agent_change", args=[agent.pk])).text
    own, mail = html.split("data-group>")[1:]

    assert "data-look-for" in html
    assert "arithmetic" in own.lower()  # a tool says what it does
    assert ("Built-in" in own, "mail__send" in own, "mail__send" in mail) == (True, False, True)
    assert ('data-tone="red"' in mail, "Timed out." in mail) == (True, True)
