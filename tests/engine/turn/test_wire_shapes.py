"""A corpus of real provider streams, with their expected results."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from agents.engine.errors import (
    EmptyReply,
    ModelError,
    PlanParseError,
    ProviderFailed,
    TruncatedReply,
)
from agents.engine.planner import reply_readers
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState
from agents.engine.testing import delta, finish
from agents.engine.turn.assembly import PlanResult

PARIS = '{"city": "Paris"}'
OSLO = '{"city": "Oslo"}'
HALF, REST = PARIS[:7], PARIS[7:]
CUT_OFF = "The answer was cut off at the model's output limit."
FILTERED = "The model provider's content filter cut off the answer."
REFUSED = "The model declined to answer."


@dataclass(frozen=True, kw_only=True)
class Answer:
    text: str
    thought: str = ""
    caveat: str = ""


@dataclass(frozen=True, kw_only=True)
class Calls:
    made: list[tuple[str, Any]]
    ids: list[str] | None = None
    thought: str = ""


@dataclass(frozen=True, kw_only=True)
class Fails:
    kind: type[ModelError]
    words: str = ""


@dataclass
class Wire:
    """A provider that streams exactly this."""

    chunks: list[Any]

    async def stream(self, **request: Any) -> AsyncIterator[Any]:
        for chunk in self.chunks:
            yield chunk


def calls(*fragments: Any) -> dict[str, Any]:
    return delta(tool_calls=list(fragments))


def call(name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def weather(*cities: str) -> list[tuple[str, Any]]:
    return [("weather", {"city": city}) for city in cities]


DONE = finish("tool_calls")
STOP = finish("stop")
USAGE = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

SHAPES: dict[str, tuple[list[Any], Answer | Calls | Fails]] = {
    # Text
    "openai: words, then usage alone": (
        [delta(role="assistant", content=""), delta(content="Hi"), STOP, USAGE],
        Answer(text="Hi"),
    ),
    "openai: choices that are null": (
        [{"choices": None}, delta(content="Hi"), {"choices": None}, STOP],
        Answer(text="Hi"),
    ),
    "azure: a first chunk of filter results": (
        [{"choices": [], "prompt_filter_results": [{}]}, delta(content="Hi"), STOP],
        Answer(text="Hi"),
    ),
    "an end that is told twice": ([delta(content="Hi"), STOP, STOP, USAGE], Answer(text="Hi")),
    "no end at all": ([delta(content="Hi")], Answer(text="Hi")),
    "an end nobody knows": ([delta(content="Hi"), finish("tired")], Answer(text="Hi")),
    "perplexity: the whole message again at the end": (
        [
            delta(content="H"),
            delta(content="i"),
            {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]},
        ],
        Answer(text="Hi"),
    ),
    "mistral: parts": (
        [
            delta(
                content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
            ),
            delta(content=[{"type": "text", "text": "Hi"}]),
            STOP,
        ],
        Answer(text="Hi", thought="Hm."),
    ),
    "an answer at the output limit": (
        [delta(content="Half an"), finish("length")],
        Answer(text="Half an", caveat=CUT_OFF),
    ),
    # Thoughts
    "deepseek: reasoning_content": (
        [delta(reasoning_content="Hm.", content=None), delta(content="Hi"), STOP],
        Answer(text="Hi", thought="Hm."),
    ),
    "vllm: reasoning under both names": (
        [delta(reasoning="Hm.", reasoning_content="Hm."), delta(content="Hi"), STOP],
        Answer(text="Hi", thought="Hm."),
    ),
    "openrouter: reasoning and its details": (
        [
            delta(
                reasoning="Hm.", reasoning_details=[{"type": "reasoning.text", "text": "Hm."}]
            ),
            delta(content="Hi"),
            STOP,
        ],
        Answer(text="Hi", thought="Hm."),
    ),
    "openrouter: details alone": (
        [
            delta(reasoning_details=[{"type": "reasoning.summary", "summary": "Hm."}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "xx"}]),
            delta(content="Hi"),
            STOP,
        ],
        Answer(text="Hi", thought="Hm."),
    ),
    "anthropic: blocks, one of them redacted": (
        [
            delta(reasoning_content="Hm.", thinking_blocks=[{"thinking": "Hm."}]),
            delta(thinking_blocks=[{"type": "redacted_thinking", "data": "xx"}]),
            delta(content="Hi"),
            STOP,
        ],
        Answer(text="Hi", thought="Hm."),
    ),
    "a local model: thinking as a tag in the text": (
        [delta(content=piece) for piece in ("\n<th", "ink>\nHm", ".</thi", "nk>\n\nH", "i")],
        Answer(text="Hi", thought="Hm."),
    ),
    "a local model: an empty tag": (
        [delta(content="<think>\n\n</think>\n\nHi"), STOP],
        Answer(text="Hi"),
    ),
    "a text that only begins like a tag": (
        [delta(content="<thin"), delta(content="g>"), STOP],
        Answer(text="<thing>"),
    ),
    "a text that is the beginning of a tag": ([delta(content="<"), STOP], Answer(text="<")),
    "a tag in the middle of an answer": (
        [delta(content="Write <think>x</think>."), STOP],
        Answer(text="Write <think>x</think>."),
    ),
    # Refusals and filters
    "openai: a refusal": (
        [delta(content=None, refusal="I can"), delta(refusal="not."), STOP],
        Answer(text="I cannot.", caveat=REFUSED),
    ),
    "a refusal as a part": (
        [delta(content=[{"type": "refusal", "refusal": "No."}]), STOP],
        Answer(text="No.", caveat=REFUSED),
    ),
    "a filter after words": (
        [delta(content="I would"), finish("content_filter")],
        Answer(text="I would", caveat=FILTERED),
    ),
    "a filter before any word": (
        [delta(content=""), finish("content_filter")],
        Fails(kind=ModelError, words=reply_readers.WITHHELD),
    ),
    "a filter in the middle of a call": (
        [calls(call("weather", PARIS, index=0, id="a")), finish("content_filter")],
        Fails(kind=TruncatedReply),
    ),
    # Empty replies and failures
    "nothing": ([], Fails(kind=EmptyReply)),
    "a stop without a word": ([delta(content=""), STOP], Fails(kind=EmptyReply)),
    "blanks alone": ([delta(content=" \n"), STOP], Fails(kind=EmptyReply)),
    "thoughts alone": ([delta(reasoning_content="Hm."), STOP], Fails(kind=EmptyReply)),
    "usage alone": ([USAGE], Fails(kind=EmptyReply)),
    "an end of calls without a call": ([DONE], Fails(kind=EmptyReply)),
    "thoughts up to the output limit": (
        [delta(reasoning_content="Hm."), finish("length")],
        Fails(kind=TruncatedReply, words="before it answered"),
    ),
    "openrouter: a provider that broke off": (
        [delta(content="Half an"), finish("error")],
        Fails(kind=ProviderFailed),
    ),
    "deepseek: out of resources": (
        [delta(content="Half an"), finish("insufficient_system_resource")],
        Fails(kind=ProviderFailed),
    ),
    "gemini: a call that it cannot read itself": (
        [delta(content="I look."), finish("malformed_function_call")],
        Fails(kind=PlanParseError, words="Call the tool again"),
    ),
    # One call
    "openai: the arguments in fragments": (
        [
            calls(call("weather", "", index=0, id="a", type="function")),
            calls(call(None, HALF, index=0)),
            calls(call(None, REST, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "openai: the old function_call": (
        [
            delta(function_call={"name": "weather", "arguments": HALF}),
            delta(function_call={"arguments": REST}),
            finish("function_call"),
        ],
        Calls(made=weather("Paris")),
    ),
    "gemini: STOP with a call": (
        [calls(call("weather", PARIS, index=0, id="a")), STOP],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "vllm: null names after the first": (
        [
            calls(call("weather", None, index=0, id="a")),
            calls({"index": 0, "id": None, "function": {"name": None, "arguments": PARIS}}),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "sglang: another id with every fragment": (
        [
            calls(call("weather", "", index=0, id="a")),
            calls(call(None, HALF, index=0, id="b")),
            calls(call(None, REST, index=0, id="c")),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "an id and a name that come anew with every fragment": (
        [
            calls(call("weather", HALF, index=0, id="a")),
            calls(call("weather", REST, index=0, id="b")),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "an id that comes late": (
        [calls(call("weather", PARIS, index=0)), calls({"index": 0, "id": "a"}), DONE],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "an id that comes late, with the name once more": (
        [
            calls(call("weather", None, index=0)),
            calls(call("weather", PARIS, index=0, id="a")),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "a name in fragments": (
        [
            calls(call("wea", None, index=0, id="a")),
            calls(call("ther", None, index=0)),
            calls(call(None, PARIS, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "the name with every fragment, and once more at the end": (
        [
            calls(call("weather", HALF, index=0)),
            calls(call("weather", REST, index=0)),
            calls(call("weather", "", index=0)),
            DONE,
        ],
        Calls(made=weather("Paris")),
    ),
    "the whole call again at the end": (
        [
            calls(call("weather", HALF, index=0, id="a")),
            calls(call(None, REST, index=0)),
            calls(call("weather", PARIS, index=0, id="a")),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "one id that moves to another index": (
        [
            calls(call("weather", HALF, index=0, id="a")),
            calls(call(None, REST, index=1, id="a")),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "an index as text": (
        [
            calls(call("weather", HALF, index="0", id="a")),
            calls(call(None, REST, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "ollama: an object for arguments, no index, no id": (
        [calls(call("weather", {"city": "Paris"})), STOP],
        Calls(made=weather("Paris")),
    ),
    "arguments that are null": (
        [calls(call("now", None, index=0, id="a")), DONE],
        Calls(made=[("now", {})], ids=["a"]),
    ),
    "arguments that say null": (
        [calls(call("now", "null", index=0, id="a")), DONE],
        Calls(made=[("now", {})], ids=["a"]),
    ),
    "arguments that are an empty list": (
        [calls(call("now", [], index=0, id="a")), DONE],
        Calls(made=[("now", {})], ids=["a"]),
    ),
    "arguments that are JSON in JSON": (
        [calls(call("weather", '"{\\"city\\": \\"Paris\\"}"', index=0, id="a")), DONE],
        Calls(made=weather("Paris"), ids=["a"]),
    ),
    "an id of a thousand characters": (
        [calls(call("weather", PARIS, index=0, id="a" * 1000)), DONE],
        Calls(made=weather("Paris")),
    ),
    "words and thoughts before a call": (
        [
            delta(reasoning_content="Hm."),
            delta(content="I look."),
            calls(call("weather", PARIS, index=0, id="a")),
            DONE,
        ],
        Calls(made=weather("Paris"), ids=["a"], thought="Hm.\n\nI look."),
    ),
    "half a call at the output limit": (
        [calls(call("weather", HALF, index=0, id="a")), finish("length")],
        Fails(kind=TruncatedReply),
    ),
    "a whole call at the output limit": (
        [calls(call("weather", PARIS, index=0, id="a")), finish("length")],
        Fails(kind=TruncatedReply),
    ),
    "half a call and a clean end": (
        [calls(call("weather", HALF, index=0, id="a")), DONE],
        Calls(made=[("weather", HALF.strip())], ids=["a"]),
    ),
    # Several calls
    "openai: two calls, interleaved": (
        [
            calls(call("weather", "", index=0, id="a"), call("weather", "", index=1, id="b")),
            calls(call(None, OSLO, index=1), call(None, PARIS, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo"), ids=["a", "b"]),
    ),
    "ollama: whole calls in chunks of their own, no index, no id": (
        [
            calls(call("weather", {"city": "Paris"})),
            calls(call("weather", {"city": "Oslo"})),
            STOP,
        ],
        Calls(made=weather("Paris", "Oslo")),
    ),
    "ollama: the same whole call twice": (
        [calls(call("now", {}, index=0)), calls(call("now", {}, index=0)), STOP],
        Calls(made=[("now", {}), ("now", {})]),
    ),
    "two ids at one index": (
        [
            calls(call("weather", PARIS, index=0, id="a")),
            calls(call("weather", OSLO, index=0, id="b")),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo"), ids=["a", "b"]),
    ),
    "two ids at one index, the arguments in fragments": (
        [
            calls(call("weather", "", index=0, id="a")),
            calls(call(None, PARIS, index=0)),
            calls(call("weather", "", index=0, id="b")),
            calls(call(None, OSLO, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo"), ids=["a", "b"]),
    ),
    "two calls of one name without ids, the arguments in fragments": (
        [
            calls(call("weather", "", index=0)),
            calls(call(None, PARIS, index=0)),
            calls(call("weather", "", index=0)),
            calls(call(None, OSLO, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo")),
    ),
    "an id that comes before its name, at the place of a whole call": (
        [
            calls(call("weather", PARIS, index=0, id="a")),
            calls({"index": 0, "id": "b"}),
            calls(call("weather", OSLO, index=0)),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo"), ids=["a", "b"]),
    ),
    "one id for two calls": (
        [
            calls(
                call("weather", PARIS, index=0, id="a"), call("weather", OSLO, index=1, id="a")
            ),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo")),
    ),
    "one id and one index for two calls": (
        [
            calls(call("weather", PARIS, index=0, id="a")),
            calls(call("now", "{}", index=0, id="a")),
            DONE,
        ],
        Calls(made=[*weather("Paris"), ("now", {})]),
    ),
    "the last of two calls goes on without an index": (
        [
            calls(call("weather", PARIS, id="a"), call("weather", OSLO[:7], id="b")),
            calls(call(None, OSLO[7:])),
            DONE,
        ],
        Calls(made=weather("Paris", "Oslo"), ids=["a", "b"]),
    ),
}


async def plan_from_chunks(chunks: list[Any]) -> PlanResult:
    return await ReActPlanner(Wire(chunks), "wire").plan("?", AgentState(), ["weather", "now"])


def shapes(kind: type) -> list[str]:
    return [name for name, (_, expected) in SHAPES.items() if isinstance(expected, kind)]


@pytest.mark.parametrize("name", shapes(Answer))
async def test_text_becomes_the_answer_with_its_caveat(name: str) -> None:
    chunks, expected = SHAPES[name]

    made = await plan_from_chunks(chunks)

    assert expected == Answer(
        text=made.final_answer or "", thought=made.thought, caveat=made.turn.caveat
    )
    assert made.calls == ()


@pytest.mark.parametrize("name", shapes(Calls))
async def test_fragments_are_assembled_to_calls(name: str) -> None:
    chunks, expected = SHAPES[name]
    assert isinstance(expected, Calls)

    made = await plan_from_chunks(chunks)

    ids = [call.id for call in made.calls]
    assert [(call.name, call.readable) for call in made.calls] == expected.made
    assert ids == (expected.ids or ids)
    assert len(set(ids)) == len(ids)
    assert all(len(id) <= 100 for id in ids)
    assert made.thought == expected.thought


@pytest.mark.parametrize("name", shapes(Fails))
async def test_a_failure_is_never_an_answer(name: str) -> None:
    chunks, expected = SHAPES[name]
    assert isinstance(expected, Fails)

    with pytest.raises(ModelError) as caught:
        await plan_from_chunks(chunks)

    assert type(caught.value) is expected.kind
    assert expected.words in str(caught.value)
    assert caught.value.advice


async def test_an_endless_call_is_rejected() -> None:
    start = calls(call("weather", '{"city": "', index=0, id="a"))
    endless = [calls(call(None, "x" * 100_000, index=0))] * 21

    with pytest.raises(ModelError, match="longer than 2,000,000 characters"):
        await plan_from_chunks([start, *endless])
