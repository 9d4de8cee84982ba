"""What plans, panels and other agents get: the first search, and the chat's files."""

import json

import pytest

from agents.engine import (
    AgentRuntime,
    Guardrails,
    Orchestrator,
    Panel,
    ReActPlanner,
)
from agents.engine.events import EventType
from agents.engine.guardrails import GuardrailAction, Pattern
from agents.engine.loop.first_retrieval import FirstRetrieval
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.shared_context import fit_files
from agents.engine.material.file_parts import file_part
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel
from agents.tools.search import SearchTool
from tests.engine.conftest import make_runtime
from tests.engine.loop.test_approval import collect_events
from tests.engine.material.test_material import find, numbers, reload
from tests.engine.plans.plans import of

PLAN = Says(answer=json.dumps({"description": "Nothing to do", "steps": []}))
SEARCHES = [FirstRetrieval("search")]
FILE = file_part("plan.txt", "The code word is heron. Mail: ann@example.org")


@pytest.fixture(params=["native", "react"])
def dialect(request):
    return request.param


def build(kind, dialect, *script, tools=(), rules=(), **options):
    planner = ReActPlanner(ScriptedModel(*script, dialect=dialect), "scripted", dialect=dialect)
    guardrails = Guardrails(blocked_patterns=rules)
    return make_runtime(planner, tools, guardrails, kind=kind, **options)


def prompts(runtime):
    return [str(request["messages"]) for request in runtime.planner.llm.requests]


def with_file(text=FILE):
    state = AgentState()
    state.question = {"material": text}
    return state


async def test_a_plan_is_written_from_what_was_searched_first(dialect):
    search = {"tools": [SearchTool(find)], "capabilities": SEARCHES}
    boss = build(Orchestrator, dialect, PLAN, Says(answer="Ants [1], [7]."), **search)

    events = await collect_events(boss.stream("ants work"))

    assert numbers(events) == [[1, 2]]
    assert all("About ants." in prompt for prompt in prompts(boss))
    assert events[-1].data["answer"] == "Ants [1]."


async def test_an_interrupted_plan_searches_first_once(dialect):
    def boss(*script):
        search = {"tools": [SearchTool(find)], "capabilities": SEARCHES}
        return build(Orchestrator, dialect, *script, **search)

    whole = await collect_events(boss(PLAN, Says(answer="Ants [1].")).stream("ants work"))
    at = next(n for n, e in enumerate(whole) if e.type is EventType.TOOL_RESPONSE) + 2
    again = boss(PLAN, Says(answer="Ants [1]."))

    resumed = await collect_events(again.resume(reload(whole[:at])))

    assert numbers([*whole[:at], *resumed]) == [[1, 2]]
    assert "About ants." in prompts(again)[0]


async def test_the_members_of_a_panel_get_what_was_searched_first(dialect):
    member = build(AgentRuntime, dialect, Says(answer="Ants [2]."), name="a")
    tools = [SearchTool(find), Handoff("a", lambda: member)]
    panel = build(Panel, dialect, tools=tools, capabilities=SEARCHES, merge="vote")

    events = await collect_events(panel.stream("ants work"))

    [found, *_] = of(events, EventType.TOOL_RESPONSE)
    assert len(found["sources"]) == 2
    assert "About ants." in prompts(member)[0]
    assert events[-1].data["answer"] == "Ants [2]."


async def test_an_agent_that_is_handed_a_task_searches_first(dialect):
    search = {"tools": [SearchTool(find)], "capabilities": SEARCHES}
    reader = build(AgentRuntime, dialect, Says(answer="Bees [1]."), name="reader", **search)
    boss = build(
        AgentRuntime,
        dialect,
        Says.call("ask_reader", task="bees"),
        Says(answer="Bees [1]."),
        tools=[Handoff("reader", lambda: reader)],
    )

    events = await collect_events(boss.stream("Who?"))

    assert "About bees." in prompts(reader)[0]
    assert events[-1].data["answer"] == "Bees [1]."


async def test_an_agent_that_is_handed_a_task_sees_the_files_of_the_chat(dialect):
    reader = build(AgentRuntime, dialect, Says(answer="heron"), name="reader")
    boss = build(
        AgentRuntime,
        dialect,
        Says.call("ask_reader", task="Find the code word."),
        Says(answer="heron"),
        tools=[Handoff("reader", lambda: reader)],
    )

    await collect_events(boss.stream("What is the code word?", with_file()))

    assert "code word is heron" in prompts(reader)[0]


async def test_a_plan_is_written_with_the_files_of_the_chat(dialect):
    boss = build(Orchestrator, dialect, PLAN, Says(answer="heron"))

    await collect_events(boss.stream("What is the code word?", with_file()))

    assert "code word is heron" in prompts(boss)[0]


def test_files_take_at_most_half_of_a_small_window():
    files = fit_files({"material": "word " * 1_000}, 500, lambda text: len(text) // 5)

    assert len(files["material"]) < 1_500
    assert files["material"].endswith("Search for it if you can.]")


async def test_a_rule_that_masks_is_applied_to_files(dialect):
    rules = [Pattern(pattern=r"\w+@example\.org", action=GuardrailAction.MASK, name="mail")]
    agent = build(AgentRuntime, dialect, Says(answer="Ok."), rules=rules)

    events = await collect_events(agent.stream("Who?", with_file()))

    [found] = of(events, EventType.GUARDRAIL)
    assert found["details"]["file"] == "plan.txt"
    assert "ann@example.org" not in prompts(agent)[0]
    assert "code word is heron" in prompts(agent)[0]


async def test_a_blocked_file_ends_the_run_and_is_named(dialect):
    agent = build(AgentRuntime, dialect, rules=["heron"])

    events = await collect_events(agent.stream("Who?", with_file()))

    assert events[-1].data["stopped_reason"] == "blocked"
    assert events[-1].data["detail"].startswith("The file “plan.txt” was blocked: ")
    assert prompts(agent) == []


async def test_a_blocked_file_stays_blocked_after_an_interruption(dialect):
    agent = build(
        AgentRuntime,
        dialect,
        rules=["heron", Pattern(pattern="Who", action=GuardrailAction.WARN)],
    )
    events = await collect_events(agent.stream("Who?", with_file()))

    resumed = await collect_events(agent.resume(reload(events[:2]), with_file()))

    assert resumed[-1].data["stopped_reason"] == "blocked"
    assert prompts(agent) == []


async def test_a_blocked_file_of_an_earlier_message_is_left_out(dialect):
    history = AgentState()
    history.add_message("user", "Read this.", material=FILE)
    history.add_message("assistant", "(No answer: blocked)")
    agent = build(AgentRuntime, dialect, Says(answer="Hi."), rules=["heron"])

    events = await collect_events(agent.stream("Hello", history))

    assert events[-1].data["answer"] == "Hi."
    assert "heron" not in prompts(agent)[0]
    assert "left out because a guardrail blocks it" in prompts(agent)[0]
