"""Arguments that are almost JSON: their form is repaired, never their values."""

import json

import pytest

from agents.engine.json_text import repaired_object
from agents.engine.testing import delta, finish
from agents.engine.turn.assembly import assemble

REPAIRED = {
    '{"a": 1,}': {"a": 1},
    "{'a': 'it is', 'b': None}": {"a": "it is", "b": None},
    '{"a": "two\nlines"}': {"a": "two\nlines"},
    '```json\n{"a": 1}\n```': {"a": 1},
    '{"a": {"b": ["c", "d"': {"a": {"b": ["c", "d"]}},
    '{"a": "}"': {"a": "}"},
}
UNCHANGED = [
    '{"amount": 12',  # maybe 120
    '{"path": "/tmp',
    '{"a": tru',
    '{"expression": 6 * 7}',
    '{"a": 1} {"b": 2}',
    "{'a', 'b'}",
    "[1, 2",
    "search for cats",
    "{" * 5_000,
]


@pytest.mark.parametrize(("text", "expected"), REPAIRED.items())
def test_the_form_of_an_object_is_repaired(text, expected):
    assert json.loads(repaired_object(text)) == expected


@pytest.mark.parametrize("text", UNCHANGED)
def test_text_whose_values_are_unclear_is_left_as_it_is(text):
    assert repaired_object(text) == text


def test_a_call_has_the_repaired_arguments():
    function = {"name": "echo", "arguments": "{'text': 'x'}"}
    chunks = [delta(tool_calls=[{"index": 0, "function": function}]), finish("tool_calls")]

    [call] = assemble(chunks).tool_calls

    assert (call.input, call.arguments) == ({"text": "x"}, '{"text": "x"}')
