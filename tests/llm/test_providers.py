"""Each provider's own format becomes the same turns and errors, on both routes."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from agents.engine.errors import (
    AgentConnectionError,
    AgentError,
    EmptyReply,
    ModelError,
    PlanParseError,
    ProviderFailed,
    RateLimited,
    TruncatedReply,
)
from agents.engine.planner import reply_readers
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState
from agents.engine.turn.assembly import PlanResult
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.wire import provider_errors
from tests.llm import anthropic_wire as anthropic
from tests.llm import gemini_wire as gemini
from tests.llm import ollama_wire as ollama
from tests.wire import CUT, LINES, Reply, WireServer, chunk, fail, flood, say, serve_in_thread

pytestmark = [
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]


@dataclass(frozen=True)
class OpenAI:
    """OpenAI's format, which many providers use."""

    MODEL: str

    def address(self, server: WireServer) -> str:
        return server.url


HALF, REST = '{"sum": ', '"1+1"}'
WHOLE = {"sum": "1+1"}


async def plan(wire: Any, reply: Reply) -> PlanResult:
    """Return the plan from one reply in this format."""
    async with WireServer([reply]) as server:
        return await planner(wire, server).plan("?", AgentState(), ["calculator"])


Client: Any = DirectModel  # of the route that is tested


@pytest.fixture(params=[DirectModel, LiteLLMModel], ids=["direct", "litellm"], autouse=True)
def client(request, monkeypatch):
    monkeypatch.setitem(globals(), "Client", request.param)


def planner(wire: Any, server: WireServer) -> ReActPlanner:
    llm = Client(api_key="sk-secret-0123456789", base_url=wire.address(server))
    return ReActPlanner(llm, wire.MODEL)


async def failure(wire: Any, reply: Reply) -> AgentError:
    with pytest.raises(AgentError) as caught:
        await plan(wire, reply)
    return caught.value


def calls(made: PlanResult) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.input) for call in made.calls]


ANSWERS = {
    anthropic: anthropic.reply(
        anthropic.thinking_block("Let me", " see."),
        anthropic.text("He", "llo"),
        stop="end_turn",
    ),
    gemini: gemini.reply(
        [gemini.thought("Let me")], [gemini.thought(" see.")], [gemini.text("Hello")]
    ),
    ollama: ollama.reply({"thinking": "Let me see."}, {"content": "He"}, {"content": "llo"}),
}


@pytest.mark.parametrize("wire", ANSWERS)
async def test_text_and_reasoning_are_separated(wire):
    made = await plan(wire, ANSWERS[wire])

    assert (made.final_answer, made.thought) == ("Hello", "Let me see.")
    assert (made.turn.usage or {})["total_tokens"] == 18
    assert made.turn.caveat == ""


CALLED = {
    anthropic: anthropic.reply(
        anthropic.text("I look."),
        anthropic.call("toolu_1", "calculator", HALF, REST),
        anthropic.call("toolu_2", "clock"),
    ),
    gemini: gemini.reply(
        [gemini.text("I look.")], [gemini.call("calculator", sum="1+1"), gemini.call("clock")]
    ),
    ollama: ollama.reply(
        {"content": "I look."},
        {"tool_calls": [ollama.call("calculator", sum="1+1")]},
        {"tool_calls": [ollama.call("clock")]},
    ),
}


@pytest.mark.parametrize("wire", CALLED)
async def test_parallel_calls_are_assembled_separately(wire):
    made = await plan(wire, CALLED[wire])

    assert calls(made) == [("calculator", WHOLE), ("clock", {})]
    assert len({call.id for call in made.calls}) == 2
    assert made.thought == "I look."


async def second_request(wire: Any, reply: Reply) -> dict[str, Any]:
    """Return what the model is sent after its call was made."""
    state = AgentState()
    async with WireServer([reply, ANSWERS.get(wire) or say("ok")]) as server:
        asking = planner(wire, server)
        made = await asking.plan("?", state, ["calculator"])
        state.add_message("user", "?")
        state.add_message(**json.loads(json.dumps(asking.message(made, made.calls))))
        for call in made.calls:
            state.add_message("tool", "2", tool_call_id=call.id)
        await asking.plan("?", state, ["calculator"])
    return server.requests[-1].body


async def test_anthropic_gets_its_signed_thinking_back():
    body = await second_request(
        anthropic,
        anthropic.reply(
            anthropic.thinking_block("Let me", " see.", signature="s1"),
            anthropic.redacted_block("secret"),
            anthropic.call("toolu_1", "calculator", HALF, REST),
        ),
    )

    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "s1"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "tool_use", "id": "toolu_1", "name": "calculator", "input": WHOLE},
    ]


async def test_gemini_gets_its_signatures_back_where_they_were():
    body = await second_request(
        gemini,
        gemini.reply(
            [gemini.thought("Hm.")],
            [gemini.call("calculator", signature="c1", sum="1+1"), gemini.call("clock")],
        ),
    )

    signed, unsigned = body["contents"][1]["parts"]
    assert signed["thoughtSignature"] == "c1"
    assert "thoughtSignature" not in unsigned
    assert "__thought__" not in json.dumps(body)


async def test_ollama_gets_its_reasoning_back():
    thoughtful = ollama.reply(
        {"thinking": "Hm."}, {"tool_calls": [ollama.call("calculator", sum="1+1")]}
    )

    body = await second_request(ollama, thoughtful)

    assert body["messages"][1]["thinking"] == "Hm."


async def test_openrouter_gets_its_details_back_whole():
    detail = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    pieces = [{**detail, "text": "Let me"}, {**detail, "text": " see.", "signature": "s1"}]
    parts = [
        chunk({"reasoning": piece["text"], "reasoning_details": [piece]}) for piece in pieces
    ]
    call = {"index": 0, "id": "a", "function": {"name": "calculator", "arguments": "{}"}}
    reply = Reply(parts=(*parts, chunk({"tool_calls": [call]}, "tool_calls")))

    message = (await second_request(OpenAI("openrouter/x/y"), reply))["messages"][1]

    assert message["reasoning_details"] == [
        {**detail, "text": "Let me see.", "signature": "s1"}
    ]
    assert "reasoning_content" not in message


@pytest.mark.parametrize(
    ("name", "field", "kept"),
    [
        ("deepseek/deepseek-reasoner", "reasoning_content", "Hm."),
        ("openai/kimi", "reasoning_content", "Hm."),
        ("openai/strict", "reasoning", None),
        ("groq/strict", "reasoning", None),
    ],
)
async def test_reasoning_is_returned_only_to_providers_that_accept_it(name, field, kept):
    call = {"index": 0, "id": "a", "function": {"name": "calculator", "arguments": "{}"}}
    thoughtful = Reply(parts=(chunk({field: "Hm."}), chunk({"tool_calls": [call]}, "stop")))

    message = (await second_request(OpenAI(name), thoughtful))["messages"][1]

    assert message.get("reasoning_content") == kept
    assert {"reasoning", "model"}.isdisjoint(message)


WITHHELD = {
    "anthropic": (anthropic, anthropic.reply(stop="refusal")),
    "gemini, the answer": (gemini, gemini.reply(stop="SAFETY")),
    "gemini, the question": (
        gemini,
        Reply(parts=({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}},)),
    ),
}


@pytest.mark.parametrize("name", WITHHELD)
async def test_a_withheld_answer_is_reported_as_withheld(name):
    error = await failure(*WITHHELD[name])

    assert str(error) == reply_readers.WITHHELD
    assert (error.advice, error.is_passing) == (
        reply_readers.REPHRASE_ADVICE,
        False,
    )


@pytest.mark.parametrize(
    ("wire", "reply"),
    [
        (anthropic, anthropic.reply(anthropic.text("I would"), stop="refusal")),
        (gemini, gemini.reply([gemini.text("I would")], stop="SAFETY")),
    ],
)
async def test_an_answer_stopped_by_a_content_filter_has_a_caveat(wire, reply):
    made = await plan(wire, reply)

    assert made.final_answer == "I would"
    assert "filter" in made.turn.caveat


async def test_an_openai_refusal_is_an_answer_with_a_caveat():
    refusal = Reply(parts=(chunk({"refusal": "I can"}), chunk({"refusal": "not."}, "stop")))

    made = await plan(OpenAI("openai/wire"), refusal)

    assert (made.final_answer, made.turn.is_refusal) == ("I cannot.", True)
    assert made.turn.caveat == "The model declined to answer."


CUT_CALLS = {
    "anthropic": (
        anthropic,
        anthropic.reply(anthropic.call("t", "calculator", HALF), stop="max_tokens"),
    ),
    "gemini": (gemini, gemini.reply([gemini.call("calculator")], [], stop="MAX_TOKENS")),
}


@pytest.mark.parametrize("name", CUT_CALLS)
async def test_a_call_that_was_cut_off_is_not_made(name):
    assert type(await failure(*CUT_CALLS[name])) is TruncatedReply


@pytest.mark.parametrize("wire", ANSWERS)
@pytest.mark.parametrize("end", [(CUT,), ()], ids=["reset", "polite"])
async def test_an_answer_without_its_end_was_cut_off(wire, end):
    whole = ANSWERS[wire]
    parts = whole.parts[: -2 if wire is anthropic else -1]
    error = await failure(wire, Reply(parts=(*parts, *end), headers=whole.headers))

    assert type(error) is AgentConnectionError
    assert str(error) == provider_errors.ANSWER_CUT_OFF.fill(model=repr(wire.MODEL))


@pytest.mark.parametrize("end", [(CUT,), ()], ids=["reset", "polite"])
async def test_half_a_call_without_its_end_was_cut_off(end):
    call = anthropic.reply(anthropic.call("toolu_1", "calculator", HALF, REST))

    error = await failure(anthropic, Reply(parts=(*call.parts[:3], *end)))

    assert type(error) is AgentConnectionError


@pytest.mark.parametrize(
    ("wire", "reply"),
    [
        (anthropic, anthropic.reply(stop="end_turn")),
        (anthropic, anthropic.reply(stop="pause_turn")),
        (gemini, gemini.reply([])),
        (ollama, ollama.reply(stop="load")),
        (ollama, Reply(headers=LINES)),
        (anthropic, Reply()),
    ],
)
async def test_an_empty_turn_is_never_an_answer(wire, reply):
    assert type(await failure(wire, reply)) is EmptyReply


async def test_a_malformed_gemini_call_is_sent_back_to_be_fixed():
    malformed = gemini.reply([gemini.text("I look.")], [], stop="MALFORMED_FUNCTION_CALL")

    error = await failure(gemini, malformed)

    assert type(error) is PlanParseError
    assert "Call the tool again" in str(error)


async def test_gemini_finish_reason_is_kept_when_usage_follows():
    told = gemini.reply([gemini.text("Hello")], [], stop="STOP")

    made = await plan(gemini, Reply(parts=(*told.parts, {"usageMetadata": gemini.USED})))

    assert made.final_answer == "Hello"


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "network_error"])
@pytest.mark.parametrize("name", ["deepseek/deepseek-chat", "openai/wire"])
async def test_an_answer_aborted_by_the_provider_is_a_failure(name, reason):
    error = await failure(OpenAI(name), say("Half an", finish=reason))

    assert type(error) is ProviderFailed


BROKEN = {
    "anthropic": (anthropic, anthropic.error("overloaded_error", "Overloaded")),
    "gemini": (gemini, gemini.error(503, "Overloaded")),
    "ollama": (ollama, {"error": "Overloaded"}),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_an_error_in_mid_answer_has_the_providers_message(name):
    wire, event = BROKEN[name]
    whole = ANSWERS[wire]
    error = await failure(wire, Reply(parts=(*whole.parts[:2], event), headers=whole.headers))

    assert isinstance(error, ModelError)
    assert "Overloaded" in str(error)
    assert "{" not in str(error)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "Oh no", "code": 502}}, ProviderFailed),
        ({"error": {"message": "Oh no", "code": "rate_limit_exceeded"}}, RateLimited),
        ({"error": {"message": "Oh no", "type": "rate_limit_error"}}, RateLimited),
        ({"error": "Oh no"}, ProviderFailed),
        ({"object": "error", "message": "Oh no", "code": 400}, ModelError),
        (b'{"error": {"message": "Oh no", "code": 503}}', ProviderFailed),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
async def test_an_error_after_a_good_start_is_reported(event, kind, before):
    parts = (*say("Half an").parts[:before], event)

    error = await failure(OpenAI("openai/wire"), Reply(parts=parts))

    assert type(error) is kind
    assert str(error).endswith(": Oh no")


async def test_an_unstreamed_answer_is_read():
    whole = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}

    made = await plan(OpenAI("openai/wire"), Reply(parts=(json.dumps(whole).encode(),)))

    assert made.final_answer == "Hello"


@pytest.mark.parametrize("wire", ANSWERS)
async def test_rate_limits_say_how_long_to_wait_for_every_provider(wire):
    error = await failure(wire, fail(429, "Slow down", Retry_After="7"))

    assert isinstance(error, RateLimited)
    assert (error.retry_after, "Slow down" in str(error)) == (7, True)


@pytest.mark.parametrize("wire", ANSWERS)
async def test_a_rejected_request_has_the_providers_message(wire):
    error = await failure(wire, fail(400, "Bad tools"))

    assert str(error) == provider_errors.REQUEST_REJECTED.fill(wire.MODEL, "Bad tools")


@pytest.mark.parametrize("wire", [anthropic, gemini])
async def test_garbage_is_never_an_answer(wire):
    whole = ANSWERS[wire]
    parts = (*whole.parts[:2], b"data: {oops\n\n", *whole.parts[2:])

    assert isinstance(await failure(wire, Reply(parts=parts)), AgentError)


@pytest.mark.thorough
async def test_fifty_thousand_chunks_are_one_answer():
    made = await plan(OpenAI("openai/wire"), flood(50_000))

    assert len(made.final_answer or "") == 50_000


async def test_an_incomplete_call_without_a_finish_reason_is_not_made():
    half = {"index": 0, "id": "a", "function": {"name": "calculator", "arguments": HALF}}

    error = await failure(OpenAI("openai/wire"), Reply(parts=(chunk({"tool_calls": [half]}),)))

    assert type(error) is AgentConnectionError


async def test_ollama_gets_one_request_per_question():
    with serve_in_thread([ANSWERS[ollama]]) as server:
        await planner(ollama, server).plan("?", AgentState(), [])
        await asyncio.sleep(0.1)

    assert [request.path for request in server.requests] == ["/api/chat"]
