"""What a weak model's reply is worth is said at the end of its run, in every form of reply."""

import json

import pytest

from agents.engine import ReActPlanner, RetryPolicy
from agents.engine.loop.tool_calls.tool_fallback import FallbackStrategy
from agents.engine.testing import delta, finish
from tests.engine.conftest import Echo, make_runtime

CALL = '{"name": "echo", "arguments": {"text": "x"}}'
FORMS = ["native", "react", "schema"]
CUT = "The answer was cut off at the model's output limit."
NO_ROOM = "The model reached its output limit before it answered."
# The reply's text and finish reason, and what the end of the run says.
ENDINGS = {
    "cut off": ("The sea is", "length", CUT),
    "cut off by a filter": ("The sea is", "content_filter", "content filter cut off"),
    "cut off in a loop": ("so " * 2_000, "length", "repeated itself"),
    "a call as text": (f"<tool_call>{CALL}</tool_call>", "stop", "no tool was called"),
    "empty": ("", "stop", "empty response"),
    "blank": (" \n", "stop", "empty response"),
    "empty and cut off": ("", "length", NO_ROOM),
    "only thinking": ("<think>Hm. What", "length", NO_ROOM),
    "only an echo": ("<user_memory>\n- Tea.\n</user_memory>", "stop", "empty response"),
}


class Wire:
    """A model that always sends this text, in small pieces."""

    def __init__(self, text, reason):
        self.text = text
        self.reason = reason

    async def stream(self, **request):
        for start in range(0, len(self.text), 7):
            yield delta(content=self.text[start : start + 7])
        yield finish(self.reason)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("text", "reason", "sentence"), ENDINGS.values(), ids=ENDINGS)
async def test_an_incomplete_answer_has_a_note_and_none_is_an_error(
    form, text, reason, sentence
):
    if form == "schema" and text.strip() and not text.startswith("<think>"):
        reply = json.dumps({"thought": "Hm.", "final_answer": text})
        text = reply if reason == "stop" else reply[:-2]
    planner = ReActPlanner(
        Wire(text, reason),
        "m",
        dialect="native" if form == "native" else "react",
        enforces_schemas=form == "schema",
    )
    agent = make_runtime(planner, [Echo()])
    agent.fallback = FallbackStrategy(retry=RetryPolicy(pause=0))

    result = await agent.run("?")

    assert sentence in result.detail or (form, sentence) == ("schema", "empty response")
    assert result.detail
    assert (result.stopped_reason == "completed") is bool(result.answer.strip())


@pytest.mark.parametrize("text", ["Thought: It is a sum, so I", "Thought: A sum.\nAction: ech"])
async def test_a_step_that_was_cut_off_is_not_asked_for_again(text):
    agent = make_runtime(ReActPlanner(Wire(text, "length"), "m", dialect="react"), [Echo()])

    events = [event async for event in agent.stream("?")]

    assert [event.type for event in events].count("step_started") == 1
    assert "output" in events[-1].data["detail"]
