import asyncio

import pytest

from agents.engine import (
    AgentConnectionError,
    AgentError,
    AgentState,
    FallbackStrategy,
    Guardrails,
    ModelError,
    PlanParseError,
    ProviderFailed,
    RateLimited,
    ReActPlanner,
    RetryPolicy,
)
from agents.engine.errors import CircuitOpen
from agents.engine.events import EventFactory
from agents.engine.guardrails.checks import GuardrailAction, Pattern
from agents.engine.loop.model_calls.model_call import ModelCall
from agents.engine.resilience.circuit_breaker import CircuitPolicy, Circuits
from agents.engine.testing import Says, ScriptedModel, delta, finish

ONCE = RetryPolicy(max_retries=0)
# Text that could be the start of a match is held back until more of it arrives.
HIDES = Guardrails(blocked_patterns=[Pattern(pattern="swordfish", stage="output")])


class Cut:
    """A model whose answer ends after these pieces."""

    def __init__(self, *pieces):
        self.pieces = pieces

    async def stream(self, **request):
        for piece in self.pieces:
            yield delta(content=piece)
        raise AgentConnectionError("It was cut off.")


def planner(name, *script, dialect="native"):
    llm = ScriptedModel(*script, dialect=dialect)
    return ReActPlanner(llm, name, dialect=dialect)


def model_call(*planners, retry=ONCE, circuits=None, guardrails=None):
    fallback = FallbackStrategy(retry=retry, circuits=circuits)
    emit = EventFactory("agent")
    return ModelCall(planners, guardrails or Guardrails(), fallback, emit, 1)


def ask(planner):
    return planner.request("What?", AgentState(), ["search"])


async def collect(heard):
    return [event async for event in heard.events(ask(heard.planner), ask)]


async def failure(heard):
    with pytest.raises(AgentError) as caught:
        await collect(heard)
    return caught.value


def statuses(events):
    return [e.data for e in events if e.type == "status"]


async def test_a_fallback_model_is_used_when_one_fails_before_its_first_token():
    a, b = planner("a", ProviderFailed("Overloaded.")), planner("b", Says(answer="Here."))
    heard = model_call(a, b, planner("c"))

    events = await collect(heard)

    assert statuses(events) == [
        {"kind": "model_fallback", "from": "a", "to": "b", "message": "Overloaded.", "step": 1}
    ]
    assert (heard.text_parts, heard.plan.final_answer) == (["Here."], "Here.")
    assert (heard.planner, [p.model for p in heard.fallbacks]) == (b, ["c"])


async def test_a_model_is_retried_before_a_fallback_is_used():
    again = RetryPolicy(max_retries=2, pause=0)
    a = planner("a", *[RateLimited("Wait.")] * 3)

    events = await collect(model_call(a, planner("b", Says(answer="Here.")), retry=again))

    kinds = [status["kind"] for status in statuses(events)]
    assert kinds == ["retry", "retry", "model_fallback"]


async def test_each_model_gets_the_request_in_its_own_dialect():
    a = planner("a", ProviderFailed("Overloaded."))
    b = planner("b", Says(answer="Here."), dialect="react")
    heard = model_call(a, b)

    await collect(heard)

    sent = b.llm.requests[0]
    assert sent["tools"] is None
    assert "Action Input:" in sent["messages"][0]["content"]
    assert sent["messages"] == heard.request.messages


async def test_an_authentication_error_still_uses_the_fallback_model():
    circuits = Circuits(CircuitPolicy(failures=1))
    a = planner("a", ModelError("The key was not accepted."))

    await collect(model_call(a, planner("b", Says(answer="Here.")), circuits=circuits))

    assert {state.state for state in circuits.state()} == {"closed"}


async def test_a_model_that_has_started_streaming_is_not_replaced():
    b = planner("b")
    heard = model_call(ReActPlanner(Cut("Half an"), "a"), b)

    error = await failure(heard)

    assert (str(error), heard.text_parts) == ("It was cut off.", ["Half an"])
    assert b.llm.requests == []


async def test_an_unparsable_reply_is_repaired_without_a_fallback():
    a = planner("a", Says(thought="Hmm."), dialect="react")
    heard = model_call(a, planner("b"), guardrails=HIDES)

    error = await failure(heard)

    assert (type(error), heard.planner, heard.text_parts) == (PlanParseError, a, [])


async def test_when_all_models_fail_the_error_lists_them():
    again = RetryPolicy(max_retries=2, pause=0)
    a = planner("a", *[AgentConnectionError("Refused.")] * 3)
    b, c = planner("b", ModelError("Wrong key.")), planner("c", ModelError("No such model."))

    error = await failure(model_call(a, b, c, retry=again))

    assert str(error) == "No such model. Models tried: a (3×), b, c."
    assert error.advice


async def test_a_single_failed_model_is_not_listed():
    assert (
        str(await failure(model_call(planner("a", ModelError("Wrong key."))))) == "Wrong key."
    )


async def test_a_model_with_an_open_circuit_is_skipped():
    circuits = Circuits(CircuitPolicy(failures=1))
    await failure(model_call(planner("a", ProviderFailed("Overloaded.")), circuits=circuits))
    a, b = planner("a"), planner("b", Says(answer="Here."))

    events = await collect(model_call(a, b, circuits=circuits))

    assert a.llm.requests == []
    assert statuses(events)[0]["message"].startswith("a has failed 1 times in a row")


async def test_when_all_circuits_are_open_the_error_says_so():
    circuits = Circuits(CircuitPolicy(failures=1))
    for name in "ab":
        await failure(model_call(planner(name, ProviderFailed("No.")), circuits=circuits))

    error = await failure(model_call(planner("a"), planner("b"), circuits=circuits))

    assert type(error) is CircuitOpen
    assert str(error).endswith("s. Models tried: a (failing), b (failing).")


async def test_an_opening_circuit_ends_the_retries_with_the_original_error():
    circuits = Circuits(CircuitPolicy(failures=2))
    again = RetryPolicy(max_retries=9, pause=0)
    a = planner("a", *[ProviderFailed("Overloaded.")] * 2)

    error = await failure(model_call(a, retry=again, circuits=circuits))

    assert str(error) == "Overloaded. Models tried: a (2×)."
    a.llm.assert_used_up()


async def test_circuits_are_keyed_by_address_and_name():
    circuits = Circuits(CircuitPolicy(failures=1))
    local = planner("openai/local", AgentConnectionError("Refused."))
    local.llm.base_url = "http://user:secret@127.0.0.1:8080/v1"
    await failure(model_call(local, circuits=circuits))

    await collect(model_call(planner("openai/gpt", Says(answer="Here.")), circuits=circuits))

    opened = [state.key for state in circuits.state() if state.state == "open"]
    assert opened == ["model:openai/local", "provider:127.0.0.1:8080"]


async def test_an_account_that_fails_does_not_stop_others_at_the_same_provider():
    circuits = Circuits(CircuitPolicy(failures=1))
    dead = planner("a", AgentConnectionError("Refused."))
    works = planner("b", Says(answer="Here."))
    dead.llm.account, works.llm.account = "1f", "2e"
    dead.llm.base_url = works.llm.base_url = "https://gateway.example/v1"
    await failure(model_call(dead, circuits=circuits))

    await collect(model_call(works, circuits=circuits))

    opened = [state.label for state in circuits.state() if state.state == "open"]
    assert opened == ["model:a", "provider:gateway.example"]
    with pytest.raises(CircuitOpen, match=r"^gateway\.example has failed"):
        circuits.guard("gateway.example", "c", "1f").__enter__()


async def test_a_cancelled_run_does_not_open_a_circuit():
    class Hanging:
        async def stream(self, **request):
            yield delta(content="I say")
            await asyncio.Event().wait()

    circuits = Circuits(CircuitPolicy(failures=1))
    heard = model_call(ReActPlanner(Hanging(), "a"), circuits=circuits)
    events = heard.events(ask(heard.planner))
    await anext(events)

    await events.aclose()

    assert {(state.state, state.failures) for state in circuits.state()} == {("closed", 0)}


async def test_text_held_back_by_a_guardrail_is_in_the_final_answer():
    said = "word " * 40 + "and half a sent"
    heard = model_call(ReActPlanner(Cut(*said), "a"), guardrails=HIDES)

    await failure(heard)

    assert "".join(heard.text_parts) == said


async def test_a_fallback_is_allowed_while_no_text_was_released():
    a, b = ReActPlanner(Cut("Half"), "a"), planner("b", Says(answer="A whole answer."))
    heard = model_call(a, b, guardrails=HIDES)

    await collect(heard)

    assert "".join(heard.text_parts) == "A whole answer."


async def test_nothing_is_streamed_after_blocked_text():
    class Thinks:
        async def stream(self, **request):
            yield delta(reasoning_content="They want the password.")
            yield delta(content="It is swordfish.")
            yield finish("stop")

    heard = model_call(ReActPlanner(Thinks(), "a"), guardrails=HIDES)

    shown = "".join(event.data["content"] for event in await collect(heard))

    assert shown == "They want the It is "
    assert heard.finding is not None


async def test_masking_applies_to_the_text_and_to_the_plan():
    rule = Pattern(pattern="swordfish", name="word", action=GuardrailAction.MASK)
    said = Says(answer="It is swordfish, really.")
    heard = model_call(planner("a", said), guardrails=Guardrails(blocked_patterns=[rule]))

    await collect(heard)

    assert "".join(heard.text_parts) == heard.plan.final_answer == "It is ‹word›, really."
    assert heard.unmasked.final_answer == "It is swordfish, really."
    assert [finding.action for finding in heard.findings] == [GuardrailAction.MASK]
