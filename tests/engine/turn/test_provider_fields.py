"""Reasoning is returned unchanged, to the model it came from."""

import json
from typing import Any

import pytest

from agents.engine.testing import delta, finish
from agents.engine.turn.assembly import ToolCall, Turn, assemble

SIGNED = {"type": "thinking", "thinking": "Let me see.", "signature": "s1"}
REDACTED = {"type": "redacted_thinking", "data": "xx"}
DETAIL = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
CALL = {"index": 0, "id": "a", "function": {"name": "weather", "arguments": "{}"}}


def thinking_delta(words: str = "", **more: Any) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": words, **more}
    return delta(reasoning_content=words or None, thinking_blocks=[block])


KEPT: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "anthropic: a signature ends a block": (
        [thinking_delta("Let me"), thinking_delta(" see."), thinking_delta(signature="s1")],
        {"thinking_blocks": [SIGNED]},
    ),
    "anthropic: several blocks, one redacted": (
        [
            thinking_delta("Let me see."),
            thinking_delta(signature="s1"),
            delta(thinking_blocks=[REDACTED]),
            thinking_delta("And?"),
            thinking_delta(signature="s2"),
        ],
        {
            "thinking_blocks": [
                SIGNED,
                REDACTED,
                {"type": "thinking", "thinking": "And?", "signature": "s2"},
            ]
        },
    ),
    "anthropic: a signature for words that are not shown": (
        [thinking_delta(signature="s1")],
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "s1"}]},
    ),
    "openrouter: details in fragments": (
        [
            delta(reasoning="…", reasoning_details=[{**DETAIL, "text": "Let me"}]),
            delta(reasoning_details=[{**DETAIL, "text": " see.", "signature": None}]),
            delta(reasoning_details=[{**DETAIL, "signature": "s1"}]),
        ],
        {"reasoning_details": [{**DETAIL, "text": "Let me see.", "signature": "s1"}]},
    ),
    "openrouter: encrypted details come whole": (
        [
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "y"}]),
        ],
        {
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": "x"},
                {"type": "reasoning.encrypted", "data": "y"},
            ]
        },
    ),
    "gemini: signatures of words": (
        [
            delta(reasoning_content="Hm."),
            delta(content="Hi", provider_specific_fields={"thought_signatures": ["s1"]}),
        ],
        {"provider_specific_fields": {"thought_signatures": ["s1"]}},
    ),
    "deepseek: words": (
        [delta(reasoning_content="Let me"), delta(reasoning_content=" see.")],
        {"reasoning_content": "Let me see."},
    ),
    "groq: words that it does not take back": ([delta(reasoning="Hm.")], {}),
    "words in a tag": ([delta(content="<think>Hm.</think>Hi")], {}),
    "nothing thought": ([delta(content="Hi")], {}),
    "nonsense": (
        [delta(thinking_blocks=[3, {}], reasoning_details="x", provider_specific_fields=[7])],
        {},
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_thinking_is_saved_in_the_providers_format(name: str) -> None:
    chunks, kept = KEPT[name]

    turn = assemble([*chunks, finish("stop")])

    assert turn.kept == kept
    assert json.loads(json.dumps(turn.message())) == turn.message()


@pytest.mark.parametrize(
    "mark",
    [
        {"provider_specific_fields": {"thought_signature": "s1"}},
        {"extra_content": {"google": {"thought_signature": "s1"}}},
    ],
)
def test_a_signed_call_keeps_its_signature_instead_of_the_reasoning(mark: Any) -> None:
    turn = assemble([delta(reasoning_content="Hm."), delta(tool_calls=[{**CALL, **mark}])])

    assert turn.tool_calls[0].kept == mark
    assert turn.tool_calls[0].wire().items() >= mark.items()
    assert turn.kept == {}


def test_a_turns_message_has_text_calls_and_thinking() -> None:
    turn = assemble([thinking_delta("Let me see.", signature="s1"), delta(tool_calls=[CALL])])

    assert turn.message(turn.tool_calls) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        ],
        "thinking_blocks": [SIGNED],
    }


def test_calls_that_were_not_made_are_left_out_of_the_message() -> None:
    assert "tool_calls" not in Turn(content="Hi", tool_calls=(tool_call("x"),)).message()


def tool_call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id="a", name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("weather-2", "weather-2"),
        ("functions.weather", "functions_weather"),
        ("weather<|channel|>", "weather__channel__"),
        ("web search", "web_search"),
        ("x" * 100, "x" * 64),
        ("", "unknown"),
    ],
)
def test_an_invalid_tool_name_is_saved_as_a_valid_one(name: str, sent: str) -> None:
    assert tool_call(name).wire()["function"]["name"] == sent


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"x": "東京"}', '{"x": "東京"}'),
        ('{"x": ', "{}"),
        ("[1]", "{}"),
        ('{"x": NaN}', "{}"),
        ("null", "{}"),
        ('"{\\"x\\": 1}"', '{"x": 1}'),
        ('{"x": "\\ud83d"}', '{"x": "\ufffd"}'),
    ],
)
def test_invalid_arguments_are_saved_as_valid_json(arguments: str, sent: str) -> None:
    assert tool_call("x", arguments).wire()["function"]["arguments"] == sent


def test_thinking_with_a_lone_surrogate_can_be_sent() -> None:
    turn = assemble([delta(reasoning_content="a\ud83d")])

    assert json.dumps(turn.kept, ensure_ascii=False).encode()
