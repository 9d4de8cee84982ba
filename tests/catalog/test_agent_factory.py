"""Rows become engine values."""

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from agents import runs
from agents.catalog import agent_factory
from agents.catalog.tools import tool_factory
from agents.console.tool_admin import tool_settings
from agents.engine.errors import BadPattern
from agents.engine.loop import FigureCheck
from agents.engine.testing import Says
from agents.models import Agent, GuardrailPattern, Run, ToolRegistration
from tests.conftest import run_question, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def build_agent():
    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1")
    return await agent_factory.build(run)


async def test_an_agent_is_built_from_its_row():
    await Agent.objects.aupdate(
        dialect="react", instructions="Be brief.", max_steps=3, max_output_tokens=77
    )
    await ToolRegistration.objects.filter(name="calculator").aupdate(
        timeout=7, description="Sums."
    )

    runtime = await build_agent()

    assert (runtime.max_steps, runtime.name) == (3, "helper")
    assert (runtime.planner.dialect, runtime.planner.instructions) == ("react", "Be brief.")
    assert runtime.guardrails.max_output_tokens == 77
    tool = runtime.tools.get("calculator")
    assert (tool.timeout, tool.description) == (7, "Sums.")
    assert runtime.tools.list_tools() == ["calculator", "database", "search"]


async def test_an_unknown_tool_is_left_out(agent):
    await sync_to_async(agent.tools.create)(name="of-the-future")

    runtime = await build_agent()

    assert "of-the-future" not in runtime.tools.list_tools()


@pytest.mark.parametrize("is_on", [True, False])
async def test_an_agent_checks_figures_only_if_it_is_set_up_to(is_on):
    await Agent.objects.aupdate(checks_figures=is_on)

    runtime = await build_agent()

    assert any(isinstance(each, FigureCheck) for each in runtime.capabilities) is is_on


async def test_only_enabled_patterns_count():
    await GuardrailPattern.objects.aupdate(enabled=False)
    await GuardrailPattern.objects.acreate(name="A", pattern="abc", action="warn")

    runtime = await build_agent()

    assert [pattern.name for pattern in runtime.guardrails.patterns] == ["A"]


async def test_an_invalid_pattern_fails_the_run():
    await GuardrailPattern.objects.acreate(name="Bad", pattern="(")

    with pytest.raises(BadPattern):
        await build_agent()
    await Run.objects.all().adelete()
    run = await run_question("6 * 7")
    assert run.status == "failed"
    assert "RE2" in run.detail


async def test_a_run_gets_the_conversation(scripted):
    model = scripted(Says(answer="Ada."))
    history = [
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello, Ada."},
    ]

    await run_question("Who am I?", history=history)

    assert model.requests[0]["messages"][1:] == [
        *history,
        {"role": "user", "content": "Who am I?"},
    ]


async def test_the_marked_agent_is_the_default():
    await Agent.objects.acreate(name="aaa")

    assert (await sync_to_async(agent_factory.default_agent)()).name == "helper"


async def test_without_a_marked_agent_the_first_one_is_the_default():
    await Agent.objects.aupdate(is_default=False)
    await Agent.objects.acreate(name="aaa")

    assert (await sync_to_async(agent_factory.default_agent)()).name == "helper"


async def test_an_agent_uses_its_own_model():
    await Agent.objects.aupdate(model="openai/gpt-none")

    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1")

    assert run.model == "openai/gpt-none"


@pytest.fixture
def own_tools(settings):
    """Use these modules for tools, with the cache cleared."""

    def use(*modules):
        settings.TOOL_MODULES = list(modules)
        tool_factory.code_tools.cache_clear()

    yield use
    tool_factory.code_tools.cache_clear()


async def test_a_custom_function_becomes_a_tool(own_tools, scripted, agent):
    own_tools("tests.own_tools")
    await sync_to_async(call_command)("seed_demo", verbosity=0)
    await ToolRegistration.objects.filter(name="shout").aupdate(approval="never")
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="shout"))
    scripted(Says.call("shout", text="hello"), Says(answer="HELLO"))

    run = await run_question("Louder!")

    step = await run.steps.aget(kind="tool")
    assert (step.action, step.observation) == ("shout", "HELLO")


def test_own_tools_are_in_no_shipped_agent_and_need_approval_unless_they_read(own_tools):
    own_tools("tests.own_tools")
    Agent.objects.all().delete()

    call_command("seed_demo", verbosity=0)

    row = ToolRegistration.objects.get(name="shout")
    assert not Agent.objects.filter(tools=row).exists()
    assert tool_factory.build_tools([row])[0].needs_approval
    assert tool_settings.requires_approval(row)
    row.effect = "read"
    assert not tool_factory.build_tools([row])[0].needs_approval
    assert not tool_settings.requires_approval(row)


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        (["no.such.module"], "can't import the module 'no.such.module'"),
        (["tests.own_tools", "tests.own_tools"], "two tools are named 'shout'"),
    ],
)
def test_an_unusable_tool_module_is_named_in_the_error(own_tools, modules, reason):
    own_tools(*modules)

    with pytest.raises(ImproperlyConfigured, match=reason):
        tool_factory.installed_names()


@pytest.mark.parametrize("name", sorted(tool_factory.BUILT_IN_TOOLS))
async def test_a_tool_has_the_description_of_its_row(name, agent):
    await agent.tools.aadd(await ToolRegistration.objects.aget(name=name))
    rows = ToolRegistration.objects.filter(name=name)
    await rows.aupdate(description="In our words.", search_service="brave")

    runtime = await build_agent()

    assert runtime.tools.get(name).description == "In our words."


async def test_an_agent_can_hand_off_to_its_sub_agents(scripted):
    helper = await Agent.objects.aget()
    lead = await Agent.objects.acreate(name="lead", model="lead-model")
    await lead.handoffs.aadd(helper)
    await helper.handoffs.aadd(lead)
    script = Says.call("ask_helper", task="6 * 7"), Says(answer="42"), Says(answer="It is 42.")
    scripted(*script)

    run = await sync_to_async(runs.prepare)(query="6 * 7", topic="chat.1", agent=lead)
    runs.launch(run)
    await runs.wait(run)

    run = await verify_run(run)
    steps = [(s.agent_name, s.kind, s.parent, s.depth) async for s in run.steps.all()]
    assert run.answer == "It is 42."
    assert steps == [
        ("lead", "thought", None, 0),
        ("lead", "tool", None, 0),
        ("helper", "answer", 2, 1),
        ("lead", "answer", None, 0),
    ]


async def test_a_disabled_sub_agent_is_not_offered():
    agent = await Agent.objects.aget()
    other = await Agent.objects.acreate(name="other", enabled=False)
    await agent.handoffs.aadd(other)

    assert "ask_other" not in (await build_agent()).tools.list_tools()


async def test_fallback_models_are_used_in_order():
    await Agent.objects.aupdate(model="a/b", fallback_models="c/d\n demo \na/b\n")

    runtime = await build_agent()

    assert runtime.planner.model == "a/b"
    assert [planner.model for planner in runtime.planners[1:]] == ["c/d", "demo"]


async def test_a_tool_has_its_configured_fallback():
    search = await ToolRegistration.objects.aget(name="search")
    await ToolRegistration.objects.filter(name="database").aupdate(fallback=search)

    runtime = await build_agent()

    assert runtime.tools.get("database").fallback_tool == "search"
    assert runtime.tools.get("search").fallback_tool is None


async def test_an_http_tool_without_a_definition_is_left_out():
    agent = await Agent.objects.aget()
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    rows = [
        await ToolRegistration.objects.acreate(
            name=name,
            source="http",
            endpoint="https://weather.example/now",
            definition={"description": "Weather.", "parameters": parameters},
        )
        for name, parameters in [("weather", schema), ("broken", {"type": 7})]
    ]
    await agent.tools.aadd(*rows)

    tools = (await build_agent()).tools

    assert tools.get("weather").parameters["properties"] == schema["properties"]
    assert not tools.has("broken")


async def test_a_tool_named_like_a_sub_agent_does_not_break_runs():
    agent = await Agent.objects.aget()
    other = await Agent.objects.acreate(name="other")
    row = await ToolRegistration.objects.acreate(
        name="ask_other", source="http", endpoint="https://other.example/"
    )
    await agent.handoffs.aadd(other)
    await agent.tools.aadd(row)

    assert (await build_agent()).tools.get("ask_other").agent == "other"
