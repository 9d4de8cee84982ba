"""Anything a provider streams becomes one complete turn."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.turn.assembly import Assembler, ToolCall, Turn, assemble
from tests.examples import many

PARIS = '{"city": "Paris"}'
OSLO = '{"city": "Oslo"}'
MADE_UP = "(made up)"


def say(**delta: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def end(reason: str = "tool_calls", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}


def call(name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def calls(*fragments: Any) -> dict[str, Any]:
    return say(tool_calls=list(fragments))


TEXTS: dict[str, tuple[list[Any], str, str]] = {
    "plain": (
        [say(role="assistant", content=""), say(content="Hel"), say(content="lo")],
        "",
        "Hello",
    ),
    "null content": ([say(content=None), say(content="Hi"), end("stop")], "", "Hi"),
    "no choices": (
        [{"id": "c1"}, {"choices": None}, {"choices": []}, say(content="Hi")],
        "",
        "Hi",
    ),
    "no delta": ([{"choices": [{"index": 0, "delta": None}]}, say(content="Hi")], "", "Hi"),
    "not mappings": (
        [None, "data", 7, [], {"choices": ["x", None]}, say(content="Hi")],
        "",
        "Hi",
    ),
    "a choice without index": ([{"choices": [{"delta": {"content": "Hi"}}]}], "", "Hi"),
    "a second choice": (
        [{"choices": [{"index": 1, "delta": {"content": "no"}}]}, say(content="Hi")],
        "",
        "Hi",
    ),
    "choices in the wrong order": (
        [
            {
                "choices": [
                    {"index": 1, "delta": {"content": "no"}},
                    {"index": 0, "delta": {"content": "Hi"}},
                ]
            }
        ],
        "",
        "Hi",
    ),
    "parts": ([say(content=[{"type": "text", "text": "Hi"}, " you"])], "", "Hi you"),
    "one part": ([say(content={"type": "text", "text": "Hi"})], "", "Hi"),
    "an image part": ([say(content=[{"type": "image_url", "image_url": {}}])], "", ""),
    "a number": ([say(content=7)], "", ""),
    "a refusal": ([say(content=None, refusal="I can"), say(refusal="not")], "", "I cannot"),
    "not streamed": ([{"choices": [{"message": {"content": "Hi"}}]}], "", "Hi"),
    "text after the end": ([end("stop"), say(content="Hi")], "", "Hi"),
    "deepseek": ([say(reasoning_content="hm", content=None), say(content="Hi")], "hm", "Hi"),
    "vllm": ([say(reasoning="hm", reasoning_content="hm"), say(content="Hi")], "hm", "Hi"),
    "ollama": ([say(thinking="hm", content=""), say(content="Hi")], "hm", "Hi"),
    "anthropic": (
        [
            say(
                reasoning_content="hm",
                thinking_blocks=[{"type": "thinking", "thinking": "hm"}],
                content="",
            ),
            say(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "s"}]),
            say(content="Hi"),
        ],
        "hm",
        "Hi",
    ),
    "thinking blocks alone": ([say(thinking_blocks=[{"thinking": "hm"}])], "hm", ""),
    "mistral": (
        [
            say(
                content=[
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "Hi"},
                ]
            )
        ],
        "hm",
        "Hi",
    ),
    "japanese": (
        [say(reasoning_content="考え中"), say(content="東京は晴れ")],
        "考え中",
        "東京は晴れ",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_and_reasoning_are_read_from_every_format(name: str) -> None:
    chunks, reasoning, content = TEXTS[name]

    turn = assemble(chunks)

    assert (turn.reasoning, turn.content) == (reasoning, content)
    assert turn.tool_calls == ()


CALLS: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    "openai": (
        [
            calls(call("weather", "", index=0, id="a", type="function")),
            calls(call(None, '{"city"', index=0)),
            calls(call(None, ': "Paris"}', index=0)),
            end(),
        ],
        [("a", "weather", PARIS)],
    ),
    "two, one after the other": (
        [
            calls(call("weather", "", index=0, id="a")),
            calls(call(None, PARIS, index=0)),
            calls(call("weather", "", index=1, id="b")),
            calls(call(None, OSLO, index=1)),
        ],
        [("a", "weather", PARIS), ("b", "weather", OSLO)],
    ),
    "two, interleaved": (
        [
            calls(call("weather", "", index=0, id="a"), call("time", "", index=1, id="b")),
            calls(call(None, PARIS[:5], index=0), call(None, OSLO[:7], index=1)),
            calls(call(None, OSLO[7:], index=1), call(None, PARIS[5:], index=0)),
        ],
        [("a", "weather", PARIS), ("b", "time", OSLO)],
    ),
    "an index that begins at one": (
        [calls(call("weather", "", index=1, id="a")), calls(call(None, PARIS, index=1))],
        [("a", "weather", PARIS)],
    ),
    "one index, two ids": (
        [
            calls(call("weather", PARIS, index=0, id="a")),
            calls(call("time", OSLO, index=0, id="b")),
        ],
        [("a", "weather", PARIS), ("b", "time", OSLO)],
    ),
    "one index, two ids, fragments": (
        [
            calls(call("weather", "", index=0, id="a")),
            calls(call(None, PARIS, index=0)),
            calls(call("time", "", index=0, id="b")),
            calls(call(None, OSLO, index=0)),
        ],
        [("a", "weather", PARIS), ("b", "time", OSLO)],
    ),
    "the id in every fragment": (
        [
            calls(call("weather", PARIS[:4], index=0, id="a")),
            calls(call(None, PARIS[4:], id="a")),
        ],
        [("a", "weather", PARIS)],
    ),
    "id and name in every fragment": (
        [
            calls(call("weather", PARIS[:4], index=0, id="a")),
            calls(call("weather", PARIS[4:], index=0, id="a")),
            calls(call("weather", "", index=0, id="a")),
        ],
        [("a", "weather", PARIS)],
    ),
    "the name in every fragment, no id": (
        [
            calls(call("weather", PARIS[:4], index=0)),
            calls(call("weather", PARIS[4:], index=0)),
        ],
        [(MADE_UP, "weather", PARIS)],
    ),
    "a known id at another index": (
        [
            calls(call("weather", PARIS[:4], index=0, id="a")),
            calls(call(None, PARIS[4:], index=3, id="a")),
        ],
        [("a", "weather", PARIS)],
    ),
    "the id after the name": (
        [
            calls(call("weather", None, index=0)),
            calls({"index": 0, "id": "a"}),
            calls(call(None, PARIS, index=0)),
        ],
        [("a", "weather", PARIS)],
    ),
    "an empty id on later fragments": (
        [
            calls(call("weather", "", index=0, id="a")),
            calls(call("", PARIS, index=0, id="")),
        ],
        [("a", "weather", PARIS)],
    ),
    "no index": (
        [calls(call("weather", PARIS[:4], id="a")), calls(call(None, PARIS[4:]))],
        [("a", "weather", PARIS)],
    ),
    "no index, a second call": (
        [
            calls(call("weather", PARIS, id="a")),
            calls(call("time", OSLO[:4], id="b")),
            calls(call(None, OSLO[4:])),
        ],
        [("a", "weather", PARIS), ("b", "time", OSLO)],
    ),
    "a fragment that lost its index": (
        [calls(call("weather", PARIS[:4], index=2, id="a")), calls(call(None, PARIS[4:]))],
        [("a", "weather", PARIS)],
    ),
    "places in the array": (
        [
            calls(call("weather", PARIS[:4]), call("time", OSLO[:4])),
            calls(call(None, PARIS[4:]), call(None, OSLO[4:])),
        ],
        [(MADE_UP, "weather", PARIS), (MADE_UP, "time", OSLO)],
    ),
    "ollama: whole calls at one index, no ids, objects": (
        [
            calls(call("weather", {"city": "Paris"}, index=0)),
            calls(call("weather", {"city": "Oslo"}, index=0)),
        ],
        [(MADE_UP, "weather", PARIS), (MADE_UP, "weather", OSLO)],
    ),
    "ollama: the index in the function": (
        [
            calls(
                {"function": {"index": 0, "name": "weather", "arguments": {"city": "Paris"}}},
                {"function": {"index": 1, "name": "time", "arguments": {}}},
            )
        ],
        [(MADE_UP, "weather", PARIS), (MADE_UP, "time", "{}")],
    ),
    "gemini: all at once, index 0": (
        [
            calls(
                call("weather", PARIS, index=0, id="a"),
                call("weather", OSLO, index=0, id="b"),
            ),
            end("stop"),
        ],
        [("a", "weather", PARIS), ("b", "weather", OSLO)],
    ),
    "anthropic: text before the call": (
        [
            say(content="I will look."),
            calls(call("weather", "", index=1, id="toolu_1")),
            calls(call(None, "", index=1)),
            calls(call(None, PARIS, index=1)),
        ],
        [("toolu_1", "weather", PARIS)],
    ),
    "no arguments": ([calls(call("time", "", index=0, id="a"))], [("a", "time", "{}")]),
    "null arguments": ([calls(call("time", None, index=0, id="a"))], [("a", "time", "{}")]),
    "blank arguments": ([calls(call("time", " \n", index=0, id="a"))], [("a", "time", "{}")]),
    "the arguments as an object": (
        [calls(call("weather", {"city": "東京"}, index=0, id="a"))],
        [("a", "weather", '{"city": "東京"}')],
    ),
    "several objects stay as they came": (
        [calls(call("weather", PARIS, index=0, id="a")), calls(call(None, OSLO, index=0))],
        [("a", "weather", PARIS + OSLO)],
    ),
    "broken arguments stay as they came": (
        [calls(call("weather", '{"city": ', index=0, id="a")), end("length")],
        [("a", "weather", '{"city":')],
    ),
    "a name in fragments": (
        [calls(call("wea", None, index=0, id="a")), calls(call("ther", PARIS, index=0))],
        [("a", "weather", PARIS)],
    ),
    "a name that grows": (
        [calls(call("wea", None, index=0, id="a")), calls(call("weather", PARIS, index=0))],
        [("a", "weather", PARIS)],
    ),
    "the old function_call": (
        [
            say(function_call={"name": "weather", "arguments": ""}),
            say(function_call={"arguments": PARIS[:4]}),
            say(function_call={"arguments": PARIS[4:]}),
            end("function_call"),
        ],
        [(MADE_UP, "weather", PARIS)],
    ),
    "not streamed": (
        [{"choices": [{"message": {"tool_calls": [call("weather", PARIS, id="a")]}}]}],
        [("a", "weather", PARIS)],
    ),
    "not in a list": (
        [say(tool_calls=call("weather", PARIS, id="a"))],
        [("a", "weather", PARIS)],
    ),
    "without the function": (
        [calls({"id": "a", "name": "weather", "arguments": PARIS})],
        [("a", "weather", PARIS)],
    ),
    "an end before the end": (
        [
            calls(call("weather", PARIS[:4], index=0, id="a")),
            end(),
            calls(call(None, PARIS[4:], index=0)),
        ],
        [("a", "weather", PARIS)],
    ),
    "an end that says stop": (
        [calls(call("weather", PARIS, index=0, id="a")), end("stop")],
        [("a", "weather", PARIS)],
    ),
    "nonsense among the calls": (
        [calls(None, "x", 3), calls(call("weather", PARIS, index=0, id="a"))],
        [("a", "weather", PARIS)],
    ),
    "an empty fragment": ([calls({"index": 0, "function": {}})], []),
    "calls of another choice": (
        [
            {"choices": [{"index": 1, "delta": {"tool_calls": [call("no", "{}", id="z")]}}]},
            calls(call("weather", PARIS, index=0, id="a")),
        ],
        [("a", "weather", PARIS)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_assembled_from_every_format(name: str) -> None:
    chunks, expected = CALLS[name]

    made = assemble(chunks).tool_calls

    assert [(call.name, call.arguments) for call in made] == [call[1:] for call in expected]
    for given_id, made_call in zip([id for id, *_ in expected], made, strict=True):
        assert made_call.id == given_id or (given_id == MADE_UP and made_call.id.isalnum())


def test_generated_ids_are_unique_and_stable() -> None:
    chunks = [calls(call("weather", {}, index=0)) for _ in range(40)]

    turn = assemble(chunks)

    assert len({made.id for made in turn.tool_calls}) == 40
    assert turn == assemble(chunks)


def test_two_replies_do_not_share_generated_ids() -> None:
    first = assemble([{**calls(call("time", {})), "id": "reply-1"}])
    second = assemble([{**calls(call("time", {})), "id": "reply-2"}])

    assert first.tool_calls[0].id != second.tool_calls[0].id


@pytest.mark.parametrize(
    "chunks",
    [
        [say(content="Hi"), {"choices": [], "usage": {"total_tokens": 9}}],
        [say(content="Hi"), end("stop", usage={"total_tokens": 9}), {"usage": None}],
        [{"usage": {"total_tokens": 1}, "choices": []}, end("stop", usage={"total_tokens": 9})],
        [{"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"total_tokens": 9}}]}],
    ],
)
def test_the_last_usage_counts_in_any_position(chunks: list[Any]) -> None:
    assert assemble(chunks).usage == {"total_tokens": 9}


@pytest.mark.parametrize("later", [{"prompt_tokens": 7}, {"completion_tokens": -1}])
def test_a_whole_report_of_usage_is_not_replaced_by_a_part_of_one(later: Any) -> None:
    whole = {"prompt_tokens": 5, "completion_tokens": 2}

    assert assemble([end("stop", usage=whole), {"usage": later}]).usage == whole


def test_the_finish_reason_is_kept_when_more_chunks_follow() -> None:
    assert (
        assemble([say(content="Hi"), end("length"), say(content="!")]).finish_reason == "length"
    )
    assert assemble([say(content="Hi")]).finish_reason is None


def test_an_empty_stream_is_an_empty_turn() -> None:
    assert assemble([]) == Turn()


def test_each_chunk_returns_its_text_and_kind() -> None:
    assembler = Assembler()

    assert assembler.feed(say(reasoning_content="hm", content="Hi")) == [
        ("thought", "hm"),
        ("answer", "Hi"),
    ]
    assert assembler.feed(calls(call("weather", PARIS, id="a"))) == []
    assert assembler.feed(end()) == []
    assert assembler.turn().content == "Hi"


def test_arguments_that_are_not_an_object_are_marked_invalid() -> None:
    assert ToolCall(id="a", name="weather", arguments=PARIS).input == {"city": "Paris"}
    with pytest.raises(ValueError, match="expected an object"):
        _ = ToolCall(id="a", name="weather", arguments="[1]").input


names = st.sampled_from(["weather", "time", "検索"])
inputs = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=8), max_size=3)


@many(150)
@given(st.lists(st.tuples(names, inputs), max_size=4), st.text(max_size=30), st.data())
def test_any_chunking_gives_the_same_turn(
    wanted: list[tuple[str, dict[str, Any]]], content: str, data: st.DataObject
) -> None:
    chunks = [say(content=piece) for piece in cut(content, data)]
    for at, (name, input) in enumerate(wanted):
        chunks.append(calls(call(name, "", index=at, id=f"id{at}")))
        chunks += [calls(call(None, part, index=at)) for part in cut(json.dumps(input), data)]

    turn = assemble(chunks)

    assert turn.content == content
    assert [(made.name, made.input) for made in turn.tool_calls] == wanted


def cut(text: str, data: st.DataObject) -> list[str]:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


FIELDS = ["choices", "delta", "message", "index", "id", "name", "arguments", "function"]
FIELDS += ["tool_calls", "function_call", "content", "reasoning", "thinking_blocks", "thinking"]
FIELDS += ["reasoning_content", "reasoning_details", "type", "text", "data", "signature"]
FIELDS += ["provider_specific_fields", "extra_content", "thought_signatures", "refusal"]
json_like = st.recursive(
    st.sampled_from([None, True, 0, 1, 2.5, "", "a", "{}", [], {}]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=6,
)
deltas = st.dictionaries(st.sampled_from(FIELDS), json_like, max_size=4)
odd_chunks = json_like | st.builds(lambda delta: say(**delta), deltas)


@many(150)
@given(st.lists(odd_chunks, max_size=3))
def test_malformed_chunks_do_not_raise(chunks: list[Any]) -> None:
    turn = assemble(chunks)

    ids = [made.id for made in turn.tool_calls]
    assert len(ids) == len(set(ids))
    assert all(isinstance(made.arguments, str) for made in turn.tool_calls)
    assert json.loads(json.dumps(turn.message(turn.tool_calls)))["role"] == "assistant"


def test_deeply_nested_arguments_do_not_raise() -> None:
    deep = "[" * 100_000 + "]" * 100_000

    turn = assemble(
        [calls(call("weather", deep, index=0)), calls(call("weather", "", index=0))]
    )

    assert [made.arguments for made in turn.tool_calls] == [deep]


@pytest.mark.slow
def test_long_arguments_whose_name_is_repeated_are_read_in_linear_time() -> None:
    chunks = [calls(call("write", '{"text": "', index=0))]
    chunks += [calls(call("write", "}]{[", index=0)) for _ in range(50_000)]
    chunks.append(calls(call("write", '"}', index=0)))

    began = time.process_time()
    turn = assemble(chunks)

    assert time.process_time() - began < 5
    assert turn.tool_calls[0].input == {"text": "}]{[" * 50_000}
