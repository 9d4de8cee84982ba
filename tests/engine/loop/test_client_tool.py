"""Functions of the program that asks: the run waits while the program calls them."""

from agents.engine import AgentState
from agents.engine.events import EventType
from agents.engine.guardrails import Guardrails
from agents.engine.guardrails.patterns import GuardrailAction, Pattern
from agents.engine.loop import Approvals, ClientTool
from agents.engine.testing import Call, Says
from tests.engine.loop.test_approval import collect_events, types, with_decision

WEATHER = ClientTool(name="weather", description="The weather in a city")
ASKS = Says("", (Call("weather", {"city": "Oslo"}),))


async def test_the_run_waits_and_goes_on_with_the_result(agent):
    runtime = agent(ASKS, Says(answer="4 °C."), tools=[WEATHER])

    events = await collect_events(runtime.stream("Weather?"))
    asked = events[-2]
    decided = with_decision(events, reason="4 °C")
    resumed = await collect_events(runtime.resume(decided, AgentState()))

    assert types(events)[-2:] == ["approval_requested", "run_paused"]
    assert asked.data["why"] == "client"
    response = next(event for event in resumed if event.type is EventType.TOOL_RESPONSE)
    assert response.data["content"] == "4 °C"
    assert response.data["is_untrusted"]
    assert resumed[-1].data["answer"] == "4 °C."


async def test_an_error_of_the_program_is_an_error_for_the_model(agent):
    runtime = agent(ASKS, Says(answer="Sorry."), tools=[WEATHER])

    events = await collect_events(runtime.stream("Weather?"))
    decided = with_decision(events, is_approved=False, reason="no network")
    resumed = await collect_events(runtime.resume(decided, AgentState()))

    response = next(event for event in resumed if event.type is EventType.TOOL_RESPONSE)
    assert response.data["is_error"]
    assert "no network" in response.data["content"]


async def test_a_guardrail_reads_the_result(agent):
    secret = Pattern(
        pattern="sesame", name="words", stage="tool_output", action=GuardrailAction.BLOCK
    )
    runtime = agent(
        ASKS,
        Says(answer="Nothing."),
        tools=[WEATHER],
        guardrails=Guardrails(blocked_patterns=[secret]),
    )

    events = await collect_events(runtime.stream("Weather?"))
    decided = with_decision(events, reason="open sesame")
    resumed = await collect_events(runtime.resume(decided, AgentState()))

    response = next(event for event in resumed if event.type is EventType.TOOL_RESPONSE)
    assert "sesame" not in response.data["content"]


async def test_an_agent_that_asks_before_each_call_doesnt_ask_a_person_too(agent):
    runtime = agent(ASKS, tools=[WEATHER], capabilities=[Approvals(auto_execute=False)])

    events = await collect_events(runtime.stream("Weather?"))

    [asked] = [event for event in events if event.type is EventType.APPROVAL_REQUESTED]
    assert asked.data["why"] == "client"
