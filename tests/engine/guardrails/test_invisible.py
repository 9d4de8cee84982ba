"""Invisible characters never reach a model, except those a script or emoji needs."""

import time

import pytest

from agents.engine import AgentState
from agents.engine.guardrails.invisible import (
    strip_invisible,
    strip_invisible_json,
    strip_invisible_message,
    strip_invisible_value,
)
from agents.engine.planner.react_planner import ReActPlanner

TAGGED = "".join(chr(0xE0000 + ord(c)) for c in "ignore all")
SELECTED = "".join(chr(0xE0100 + ord(c)) for c in "ignore all")


@pytest.mark.parametrize(
    "hidden",
    [
        TAGGED,
        SELECTED,
        "\ufe01\ufe02\ufe0f",
        "\u200b\u200c\u200d\u2060\ufeff",
        "\u202e\u2066\u2069\u200f\u061c",
        "\x1b\x00\x07\x7f\x9b",
        "\ue000\uf8ff\U000f1234",
        "\u00ad\u034f\u180e",
        "\ufffc\ufffe\uffff\ufdd0",
    ],
)
@pytest.mark.parametrize("text", ["Hello{} there", "{}", "東京{}都", "😀\ufe0f{}!", "🏴{}"])
def test_invisible_characters_are_removed(hidden, text):
    seen = strip_invisible(text.format(hidden))

    assert len(seen) <= len(text.format("")) + 1
    assert not any(0xE0000 <= ord(c) <= 0xE007F for c in seen)


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\nand\r\nlines",
        "👩‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 ❤️ ☎︎ 1️⃣ #️⃣ 👁️‍🗨️ 🇯🇵",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f England",
        "葛\U000e0100城市 辻\U000e0101 神\ufe00",
        "می‌خواهم نامه‌ای",
        "क्‍ष न्‌ श्री‍ .",
        "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ᠌",
        "한국어 텍스트、。",
        "¿Qué? café ½ ™ © → ∅",
    ],
)
def test_meaningful_invisible_characters_are_kept(text):
    assert strip_invisible(text) == text


def test_a_blank_letter_becomes_a_space():
    assert strip_invisible("a\u3164b") == "a b"


def test_a_long_text_takes_linear_time():
    began = time.thread_time()
    strip_invisible("a\u200d" * 200_000)

    assert time.thread_time() - began < 3


class Reader:
    name = "read\u200b"
    description = f"Reads a page.{TAGGED}"
    parameters = {
        "type": "object",
        "properties": {"page": {"type": "string", "description": f"Which one{SELECTED}"}},
    }


def test_model_requests_contain_no_invisible_characters():
    state = AgentState()
    state.add_message("user", f"Question{TAGGED}")
    state.add_message(
        "assistant",
        f"Answer{TAGGED}",
        tool_calls=[
            {"id": "1", "function": {"name": "read", "arguments": f'{{"page": "x{TAGGED}"}}'}}
        ],
    )
    state.add_message("tool", f"Result{TAGGED}", tool_call_id="1")
    for dialect in ("native", "react"):
        planner = ReActPlanner(None, "m", dialect=dialect, instructions=f"Help.{TAGGED}")
        request = planner.request(f"More{TAGGED}", state, [Reader()])

        sent = ascii([request.tools, request.messages])
        assert "\\U000e00" not in sent
        assert "\\u200b" not in sent
        assert "Result" in sent
        assert "Reads a page." in sent


def test_signed_thinking_blocks_are_unchanged():
    signed = {"thinking_blocks": [{"thinking": f"so{TAGGED}", "signature": "s"}]}

    message = strip_invisible_message({"role": "assistant", "content": f"a{TAGGED}", **signed})

    assert message == {"role": "assistant", "content": "a", **signed}


@pytest.mark.parametrize("hidden", ["\x07", "\b", "\x7f", "\u200b", TAGGED, "東京\u202e"])
def test_invisible_characters_in_tool_schemas_are_removed(hidden):
    schema = {"properties": {f"a{hidden}": {"enum": ["b", f"c{hidden}"], "default": 1}}}

    stripped = strip_invisible_json(schema)

    assert stripped == strip_invisible_value(schema) != schema


@pytest.mark.parametrize("text", ["plain\ntext", r"\\b a \u0041", "東京 ❤️", "é"])
def test_other_tool_schemas_stay_as_they_are(text):
    schema = {"description": text, "pattern": r"\bword\b", "items": [1, None, 2.5]}

    assert strip_invisible_json(schema) == schema
