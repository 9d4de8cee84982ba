"""A call made by another tool counts for that tool's limit, and ends at it."""

import pytest

from agents.engine import ReActPlanner
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.run_state import rebuild
from agents.engine.loop.termination import standard_policy
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel
from agents.engine.turn.assembly import ToolCall
from tests.engine.conftest import make_runtime
from tests.engine.loop.test_tool_runner import archive, broken_tool


def preferring(**options):
    """Return a tool whose fallback is called first."""
    tool = broken_tool(**options)
    tool.prefers_fallback = "30 of 40 recent calls failed."
    return tool


async def reply(_):
    return "from the search"


async def fail(_):
    raise ConnectionError("It is down.")


async def run(tools, *script, most=1):
    planner = ReActPlanner(ScriptedModel(*script), "scripted")
    policy = standard_policy(tool_limits={"archive": most})
    agent = make_runtime(planner, tools, policy=policy)
    return [event async for event in agent.stream("?")]


def responses(events):
    found = [event.data for event in events if event.type is EventType.TOOL_RESPONSE]
    return [(data["name"], data.get("stand_in"), data["is_error"]) for data in found]


def asks(*texts, tool="search"):
    return [Says.call(tool, text=text) for text in texts]


async def test_a_preferred_tool_is_called_up_to_its_limit_then_the_tool_itself():
    other = archive()
    tools = [preferring(does=reply), other]

    events = await run(tools, *asks("a", "b"), Says(answer="Done."))

    assert responses(events) == [("search", "archive", False), ("search", None, False)]
    assert len(other.inputs) == 1


@pytest.mark.parametrize(
    ("tool", "backup", "failed_tool"),
    [
        (broken_tool(), archive(), "search"),
        (preferring(does=reply), archive(), None),
        (preferring(does=reply), archive(does=fail), "archive"),
    ],
)
async def test_the_tool_that_failed_first_is_recorded(tool, backup, failed_tool):
    events = await run([tool, backup], *asks("a"), Says(answer="Done."), most=9)

    (response,) = [event.data for event in events if event.type is EventType.TOOL_RESPONSE]
    assert (response["is_error"], response.get("failed_tool")) == (False, failed_tool)


async def test_a_failed_tool_is_not_replaced_by_one_at_its_limit():
    other = archive()

    events = await run([broken_tool(), other], *asks("a", "b"), Says(answer="Done."))

    assert responses(events) == [("search", "archive", False), ("search", None, True)]
    assert len(other.inputs) == 1


async def test_a_direct_call_after_the_limit_ends_the_run():
    tools = [preferring(does=reply), archive()]

    events = await run(tools, *asks("a"), *asks("b", tool="archive"))

    assert events[-1].data["stopped_reason"] == "tool_call_limit"


async def test_calls_of_one_turn_share_the_limit():
    other = archive()
    turn = [
        ToolCall(id=text, name="search", arguments=f'{{"text": "{text}"}}') for text in "ab"
    ]
    turn.append(ToolCall(id="c", name="archive", arguments='{"text": "c"}'))

    tools = [preferring(does=reply), other]
    events = await run(tools, Says(calls=tuple(turn)), Says(answer="Done."), most=2)

    assert sorted(found[1] or "" for found in responses(events)) == ["", "", "archive"]
    assert len(other.inputs) == 2


async def test_a_preferred_tool_that_failed_is_on_record_and_counts_after_a_restart():
    async def fail(_):
        raise ValueError("wrong")

    tools = [preferring(does=reply), archive()]
    vars(tools[1])["execute"] = fail
    events = await run(tools, *asks("a"), Says(answer="Done."), most=2)

    found = next(event for event in events if event.type is EventType.TOOL_RESPONSE)
    assert (found.data["tried"], found.data["content"]) == ("archive", "from the search")
    state = rebuild(events, EventFactory("agent"), AgentState())
    assert state.progress.stand_ins == {"archive": 1}


@pytest.mark.parametrize(("most", "may"), [(1, False), (2, True)])
def test_a_claim_counts_calls_that_are_about_to_be_made(most, may):
    state = rebuild(
        [], EventFactory("agent"), AgentState(), (ToolCall(id="c", name="archive"),)
    )

    assert state.claim_stand_in({"archive": most}, "archive") is may
