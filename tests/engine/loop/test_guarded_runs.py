"""Guardrails in a run: question, answer, tool input and output."""

import json

import pytest

from agents.engine import GuardrailAction, Guardrails, ModelError, RetryPolicy, ToolResult
from agents.engine.errors import ProviderFailed
from agents.engine.events import EventType
from agents.engine.guardrails.checks import STAGES, Pattern
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.testing import Call, Says
from tests.engine.conftest import Echo
from tests.sampling import one_in

MASK, BLOCK = GuardrailAction.MASK, GuardrailAction.BLOCK


def rules(pattern="swordfish", stage="both", action=MASK, **more):
    rule = Pattern(pattern=pattern, name="word", stage=stage, action=action, **more)
    return Guardrails(blocked_patterns=[rule])


async def events_of(runtime, query="Go"):
    return [event async for event in runtime.stream(query)]


def found(events):
    return [event.data for event in events if event.type is EventType.GUARDRAIL]


def everything(events):
    return json.dumps([event.to_dict() for event in events], ensure_ascii=False)


async def test_masked_input_is_not_sent_to_the_model(agent):
    runtime = agent(Says(answer="Fine."), guardrails=rules(stage="input"))

    events = await events_of(runtime, "Is it swordfish?")

    assert "swordfish" not in json.dumps(runtime.planner.llm.requests)
    assert runtime.planner.llm.requests[0]["messages"][-1]["content"] == "Is it ‹word›?"
    [finding] = found(events)
    assert (finding["action"], finding["details"]["matches"]) == ("mask", 1)


async def test_masked_text_is_neither_streamed_nor_saved(agent):
    says = Says(thought="It is swordfish.", answer="The word is swordfish, friend.")
    events = await events_of(agent(says, guardrails=rules(stage="output")))

    shown = "".join(e.data["content"] for e in events if e.type is EventType.DELTA)
    assert shown == events[-1].data["answer"] == "The word is ‹word›, friend."
    assert "swordfish" not in everything(events)
    assert len(found(events)) == 1


async def test_tool_arguments_are_masked_before_the_call(agent):
    tool, call = Echo(), Says.call("echo", text="say swordfish")
    runtime = agent(
        call, Says(answer="Done."), tools=[tool], guardrails=rules(stage="tool_input")
    )

    events = await events_of(runtime)

    assert tool.inputs == [{"text": "say ‹word›"}]
    [finding] = found(events)
    assert (finding["details"]["tool"], finding["details"]["stage"]) == ("echo", "tool_input")
    assert events[-1].data["answer"] == "Done."


async def test_a_blocked_call_is_not_made_and_the_run_continues(agent):
    tool, call = Echo(), Says.call("echo", text="swordfish")
    guardrails = rules(stage="tool_input", action=BLOCK, message="Not that word.")
    runtime = agent(call, Says(answer="Without it."), tools=[tool], guardrails=guardrails)

    events = await events_of(runtime)

    assert tool.inputs == []
    response = next(e.data for e in events if e.type is EventType.TOOL_RESPONSE)
    assert response["is_error"]
    assert "wasn't called. Not that word." in response["content"]
    steps = [e.data["status"] for e in events if e.type is EventType.STEP]
    assert steps == ["done", "blocked", "done"]
    assert (events[-1].data["answer"], len(found(events))) == ("Without it.", 1)


async def test_only_the_blocked_one_of_several_calls_is_skipped(agent, dialect):
    if dialect == "react":
        pytest.skip("it makes one call at a time")
    tool = Echo()
    tool.effect = "read"
    calls = (Call("echo", {"text": "swordfish"}), Call("echo", {"text": "trout"}))
    guardrails = rules(stage="tool_input", action=BLOCK)
    runtime = agent(Says("", calls), Says(answer="."), tools=[tool], guardrails=guardrails)

    await events_of(runtime)

    assert tool.inputs == [{"text": "trout"}]


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        (MASK, "it is ‹word›"),
        (BLOCK, "Error: The result was blocked: This text isn't allowed here."),
    ],
)
async def test_masked_and_blocked_tool_results_are_not_sent_to_the_model(agent, action, seen):
    async def tells(input):
        return ToolResult("it is swordfish")

    guardrails = rules(stage="tool_output", action=action)
    runtime = agent(
        Says.call("echo", text="?"),
        Says(answer="Done."),
        tools=[Echo(does=tells)],
        guardrails=guardrails,
    )

    events = await events_of(runtime)

    assert seen in json.dumps(runtime.planner.llm.requests[1]["messages"], ensure_ascii=False)
    assert "swordfish" not in everything(events)
    assert found(events)[0]["details"]["stage"] == "tool_output"


@pytest.mark.parametrize("stage", ["both", "tool_input", "tool_output"])
async def test_an_observe_only_guardrail_reports_without_changing_text(agent, stage):
    tool = Echo()
    guardrails = rules(stage=stage, action=BLOCK, is_observed=True)
    script = (Says.call("echo", text="swordfish"), Says(answer="It is swordfish."))
    runtime = agent(*script, tools=[tool], guardrails=guardrails)

    events = await events_of(runtime, "swordfish?")

    assert tool.inputs == [{"text": "swordfish"}]
    assert events[-1].data["answer"] == "It is swordfish."
    assert found(events)
    assert all(finding["details"]["observed"] for finding in found(events))


async def test_a_structured_answer_is_masked_per_field(agent):
    form = OutputSchema({"type": "object", "properties": {"word": {"type": "string"}}})
    says = Says(answer='{"word": "sword\\u0066ish"}')
    runtime = agent(says, guardrails=rules(stage="output"), output=form)

    events = await events_of(runtime)

    assert events[-1].data["output"] == {"word": "‹word›"}
    assert "swordfish" not in everything(events)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("action", one_in(2, [MASK, BLOCK]))
async def test_a_guarded_run_interrupted_anywhere_has_the_same_result(agent, stage, action):
    def made():
        script = (Says.call("echo", text="swordfish"), Says(answer="It is swordfish."))
        return agent(*script, tools=[Echo()], guardrails=rules(stage=stage, action=action))

    first = made()
    whole = await events_of(first, "swordfish?")
    first.planner.llm.script.clear()
    for cut in range(1, len(whole)):
        runtime = made()
        ended = [
            e.data for e in whole[:cut] if e.type is EventType.STEP and e.data["kind"] != "tool"
        ]
        del runtime.planner.llm.script[: sum(step["status"] == "done" for step in ended)]
        events = [*whole[:cut], *[e async for e in runtime.resume(whole[:cut])]]

        runtime.planner.llm.script.clear()
        assert events[-1].data["answer"] == whole[-1].data["answer"]
        assert events[-1].data["stopped_reason"] == whole[-1].data["stopped_reason"]
        if stage == "input" and action is MASK:
            sent = [m for r in runtime.planner.llm.requests for m in r["messages"]]
            asked = [m["content"] for m in sent if m["role"] == "user"]
            assert not [words for words in asked if words == "swordfish?"]


@pytest.mark.parametrize("action", [MASK, BLOCK])
async def test_provider_error_messages_are_checked_like_answers(agent, action):
    failures = [ProviderFailed("You asked: what is swordfish?"), ModelError("No swordfish.")]
    retry = RetryPolicy(max_retries=1, pause=0)
    runtime = agent(*failures, guardrails=rules(stage="output", action=action), retry=retry)

    events = await events_of(runtime)

    assert "swordfish" not in everything(events)
    assert events[-1].data["stopped_reason"] == "error"
    assert ("‹word›" if action is MASK else "is hidden") in events[-1].data["detail"]


async def test_schema_error_messages_are_checked_like_answers(agent):
    schema = {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}
    runtime = agent(
        *[Says(answer='{"a": "sword\\u0066ish"}')] * 3,
        guardrails=rules(stage="output"),
        output=OutputSchema(schema),
    )

    events = await events_of(runtime)

    assert "swordfish" not in everything(events)


async def test_the_message_of_a_blocking_guardrail_is_not_blocked_itself(agent):
    guardrails = rules(pattern="word", stage="output", action=BLOCK, message="No such word.")

    events = await events_of(agent(Says(answer="A word."), guardrails=guardrails))

    assert events[-1].data["detail"] == "No such word."


async def test_a_streamed_answer_ends_at_the_limit_and_is_never_taken_away(agent):
    says = Says(thought="Long.", answer="word " * 400)
    limits = Guardrails(max_output_tokens=100)
    events = await events_of(agent(says, guardrails=limits))

    shown = "".join(e.data["content"] for e in events if e.type is EventType.DELTA)
    last = events[-1].data
    assert (last["stopped_reason"], last["answer"].strip()) == ("completed", shown.strip())
    assert 60 <= limits.count_tokens(shown) <= 100
    assert "output limit" in last["detail"]
    assert not found(events)


async def test_without_limits_a_long_question_gets_a_long_answer(agent):
    says, none = Says(answer="word " * 20_000), Guardrails(None, None)
    events = await events_of(agent(says, guardrails=none), "word " * 20_000)

    assert events[-1].data["stopped_reason"] == "completed"
    assert len(events[-1].data["answer"].split()) == 20_000
