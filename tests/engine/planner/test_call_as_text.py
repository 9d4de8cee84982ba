"""An answer that is only a tool call as text, which says so at the end of the run."""

import pytest

from agents.engine.planner.reply_readers import NativeReader
from agents.engine.testing import Says, delta, finish

CALL = '{"name": "search", "arguments": {"query": "cats"}}'
CALLS = [
    CALL,
    f"```json\n{CALL}\n```",
    f"[{CALL}, {CALL}]",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL[:-5]}",
    f"[TOOL_CALLS] [{CALL}]",
    'Action: search\nAction Input: {"query": "cats"}',
]
ANSWERS = [
    "I searched for cats.",
    f"Write it like this: {CALL}",
    f"{CALL}\nThis is how a call looks.",
    f"<tool_call>{CALL}</tool_call>\nI found two cats.",
    '{"name": "Ada", "age": 36}',
    "Action: we have to leave.",
    "[1] says so.",
    "[]",
]


def caveat(text):
    reader = NativeReader()
    for chunk in (delta(content=text), finish("stop")):
        reader.feed(chunk)
    plan = reader.result()
    assert plan.final_answer == text
    return plan.turn.caveat


@pytest.mark.parametrize("text", CALLS)
def test_a_call_as_text_has_a_note(text):
    assert caveat(text) == "The model wrote a tool call as text, so no tool was called."


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_with_a_call_in_it_has_none(text):
    assert caveat(text) == ""


async def test_the_run_says_that_no_tool_was_called(agent):
    result = await agent(Says(answer=CALLS[3])).run("?")

    assert (result.answer, result.stopped_reason) == (CALLS[3], "completed")
    assert "no tool was called" in result.detail
