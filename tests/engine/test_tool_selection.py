"""Tool selection: which of many tools are sent, and how the others are reached."""

import json
from dataclasses import replace

import pytest

from agents.engine import ToolResult
from agents.engine.events import EventType
from agents.engine.loop import ToolSelection
from agents.engine.testing import Call, Says
from agents.engine.tool_selection import (
    CONSTANT_TOOLS,
    SelectionLimits,
    Situation,
    ToolSelector,
    evaluation,
    mentioned,
)
from agents.engine.tool_selection.selection import index_of

TOOLS = evaluation.read_tools()
QUESTION = "Will it rain in Kyoto tomorrow?"
HIDDEN = "stripe__refund_charge"
ARGUMENTS = {"charge_id": "ch_1"}


class Counting(evaluation.DescribedTool):
    """A tool of the set that notes its calls."""

    made: list = []

    async def execute(self, input, /):
        self.made.append((self.name, input))
        return ToolResult(f"{self.name} is done.")


@pytest.fixture
def tools():
    Counting.made.clear()
    fields = ("name", "description", "parameters")
    return [Counting(**{name: getattr(tool, name) for name in fields}) for tool in TOOLS]


async def run(runtime, question=QUESTION):
    return [event async for event in runtime.stream(question)]


def found(events, type, **facts):
    return [e for e in events if e.type is type and facts.items() <= e.data.items()]


def names_sent(request, dialect):
    if dialect == "native":
        return [tool["function"]["name"] for tool in request["tools"]]
    lines = request["messages"][0]["content"].splitlines()
    return [line[2:].partition(":")[0] for line in lines if line.startswith("- ")]


async def test_up_to_the_limit_all_tools_are_sent_and_nothing_is_added(agent, dialect, tools):
    runtime = agent(
        Says(answer="Yes."), tools=tools[:30], capabilities=[ToolSelection(ToolSelector())]
    )

    events = await run(runtime)

    assert names_sent(runtime.planner.llm.requests[0], dialect) == sorted(
        tool.name for tool in tools[:30]
    )
    assert "unsent_tools" not in events[0].data
    assert not found(events, EventType.STATUS)


async def test_of_300_tools_at_most_25_are_sent_with_the_reasons(agent, dialect, tools):
    runtime = agent(
        Says(answer="Yes."), tools=tools, capabilities=[ToolSelection(ToolSelector())]
    )

    events = await run(runtime)

    sent = names_sent(runtime.planner.llm.requests[0], dialect)
    assert len(sent) <= 25
    assert {"weather__get_forecast", *CONSTANT_TOOLS} <= set(sent)
    assert [tool["function"]["name"] for tool in events[0].data["tools"]] == sent
    assert len(events[0].data["unsent_tools"]) + len(sent) == len(tools) + 2
    (note,) = found(events, EventType.STATUS, kind="tools_selected")
    reasons = {tool["name"]: tool["why"] for tool in note.data["sent"]}
    assert reasons["weather__get_forecast"] == "search"
    assert HIDDEN in note.data["left_out"]


async def test_a_tool_that_was_not_sent_is_found_and_called_directly(agent, dialect, tools):
    runtime = agent(
        Says.call("find_tools", query="give a customer the money back"),
        Says.call(HIDDEN, **ARGUMENTS),
        Says(answer="Done."),
        tools=tools,
        capabilities=[ToolSelection(ToolSelector())],
    )

    events = await run(runtime)

    (searched,) = found(events, EventType.TOOL_RESPONSE, name="find_tools")
    hits = [hit["name"] for hit in json.loads(searched.data["content"])]
    assert len(hits) <= 8
    assert HIDDEN in hits
    assert Counting.made == [(HIDDEN, ARGUMENTS)]
    (miss,) = found(events, EventType.STATUS, kind="unsent_tool")
    assert (miss.data["tool"], miss.data["is_known"]) == (HIDDEN, True)
    requests = runtime.planner.llm.requests
    assert len({str(names_sent(request, dialect)) for request in requests}) == 1


async def test_a_call_through_the_bridge_is_the_call_of_the_tool(agent, tools):
    bridged = {"name": HIDDEN, "arguments": ARGUMENTS}
    runtime = agent(
        Says(calls=(Call("call_tool", bridged),)),
        Says(answer="Done."),
        tools=tools,
        capabilities=[ToolSelection(ToolSelector())],
    )

    events = await run(runtime)

    (call,) = found(events, EventType.TOOL_CALL)
    assert call.data["function"]["name"] == HIDDEN
    assert json.loads(call.data["function"]["arguments"]) == ARGUMENTS
    assert [e.data["action"] for e in found(events, EventType.STEP, kind="tool")] == [HIDDEN]
    assert found(events, EventType.STATUS, how="bridge", tool=HIDDEN)
    # The model reads its own words, so that it doesn't call what its provider rejects.
    assert "call_tool" in str(runtime.planner.llm.requests[1]["messages"])


@pytest.fixture
def guarded(tools):
    """Tools of which the hidden one needs approval."""
    tool = next(tool for tool in tools if tool.name == HIDDEN)
    tool.needs_approval = True
    tool.effect = "at_most_once"
    return tools


def approved(request):
    facts = {"id": request.data["id"], "step": request.data["step"], "by": 1, "by_name": "Mia"}
    verdict = {"is_approved": True, "arguments": None, "reason": "", **facts}
    return replace(request, type=EventType.APPROVAL_RESOLVED, data=verdict, seq=request.seq + 2)


@pytest.mark.parametrize("name", [HIDDEN, "call_tool"])
async def test_an_unsent_tool_that_needs_approval_waits_and_resumes(
    agent, guarded, name, dialect
):
    given = ARGUMENTS if name == HIDDEN else {"name": HIDDEN, "arguments": ARGUMENTS}
    more = {"tools": guarded, "capabilities": [ToolSelection(ToolSelector())]}
    before = agent(Says(calls=(Call(name, given),)), **more)
    events = await run(before)
    (request,) = found(events, EventType.APPROVAL_REQUESTED)
    assert request.data["function"]["name"] == HIDDEN
    assert request.data["effect"] == "at_most_once"

    later = agent(Says(answer="Done."), **more)
    resumed = [event async for event in later.resume([*events, approved(request)])]

    assert Counting.made == [(HIDDEN, ARGUMENTS)]
    assert resumed[-1].data["answer"] == "Done."
    requests = [*before.planner.llm.requests, *later.planner.llm.requests]
    assert len({str(names_sent(request, dialect)) for request in requests}) == 1


async def test_guessed_arguments_are_checked_before_a_person_is_asked(agent, guarded):
    runtime = agent(
        Says.call(HIDDEN, amount="40"),
        Says(answer="I need the charge."),
        tools=guarded,
        capabilities=[ToolSelection(ToolSelector())],
    )

    events = await run(runtime)

    assert not found(events, EventType.APPROVAL_REQUESTED)
    (response,) = found(events, EventType.TOOL_RESPONSE, is_error=True)
    assert "charge_id" in response.data["content"]
    assert not Counting.made


async def test_an_unknown_tool_is_recorded_and_similar_names_are_suggested(agent, tools):
    runtime = agent(
        Says.call("stripe__refund_charges"),
        Says(answer="Sorry."),
        tools=tools,
        capabilities=[ToolSelection(ToolSelector())],
    )

    events = await run(runtime)

    (miss,) = found(events, EventType.STATUS, kind="unsent_tool")
    assert miss.data["is_known"] is False
    (response,) = found(events, EventType.TOOL_RESPONSE)
    assert HIDDEN in response.data["content"]
    assert len(response.data["content"]) < 400


async def test_a_chat_keeps_its_tools_while_they_fit():
    selector = ToolSelector()
    first = await selector.select(TOOLS, Situation(question=QUESTION))
    names = [tool.name for tool in first.sent]

    again = await selector.select(
        TOOLS, Situation(question="And the weather in Osaka?", previous=names)
    )
    other = await selector.select(TOOLS, Situation(question="請求書を出して", previous=names))

    assert again.names == first.names
    assert "stripe__create_invoice" in other.names


async def test_pinned_tools_are_sent_but_leave_room_for_others():
    pinned = sorted(tool.name for tool in TOOLS)[:40]

    chosen = await ToolSelector(pinned=pinned).select(TOOLS, Situation(question=QUESTION))

    reasons = [tool.why for tool in chosen.sent]
    assert len(chosen.names) <= 25
    assert reasons.count("search") >= 10
    assert "weather__get_forecast" in chosen.names


async def test_definitions_are_limited_in_tokens():
    limits = SelectionLimits(tokens=700)

    chosen = await ToolSelector(limits).select(TOOLS, Situation(question=QUESTION))

    assert 8 <= len(chosen.sent) < 20


async def test_past_success_decides_between_equal_tools():
    rates = {"gmail__search_emails": 0.1, "slack__search_messages": 0.9}

    plain = index_of(TOOLS).scores("search")
    rated = index_of(TOOLS).scores("search", success=rates)

    for name, rate in rates.items():
        assert rated[name] / plain[name] == pytest.approx(1 + 0.15 * (2 * rate - 1))


@pytest.mark.parametrize(
    "question",
    [
        "Use stripe__refund_charge",
        "refundCharge please",
        "refund-chargeを使って",
        "refund charge",
    ],
)
def test_a_tool_named_in_the_question_is_recognized_in_any_notation(question):
    assert mentioned(question, index_of(TOOLS)) == [HIDDEN]


@pytest.mark.parametrize(("language", "least"), [("en", 0.94), ("ja", 0.96)])
async def test_the_right_tool_is_sent_by_words_alone(language, least):
    assert await _share_sent(language) >= least


async def _share_sent(language, **options):
    selector, right = ToolSelector(**options), list[bool]()
    for question in evaluation.read_questions():
        if question.language == language:
            chosen = await selector.select(TOOLS, Situation(question=question.text))
            assert len(chosen.names) <= 25
            right.append(not chosen.names.isdisjoint(question.tools))
    return sum(right) / len(right)


async def test_a_call_with_wrong_arguments_isnt_made_by_another_tool_without_a_person(
    agent, guarded
):
    tool = next(tool for tool in guarded if tool.name == HIDDEN)
    other = Counting(
        name="refund_again",
        description="Refunds.",
        parameters={"type": "object", "properties": {"amount": {"type": "string"}}},
    )
    tool.effect = other.effect = "idempotent"
    tool.fallback_tool, tool.prefers_fallback = other.name, "40 of 50 recent calls failed."
    runtime = agent(
        Says.call(HIDDEN, amount="40"),
        Says(answer="I need the charge."),
        tools=[*guarded, other],
        capabilities=[ToolSelection(ToolSelector())],
    )

    events = await run(runtime)

    assert found(events, EventType.TOOL_RESPONSE, is_error=True)
    assert not Counting.made
