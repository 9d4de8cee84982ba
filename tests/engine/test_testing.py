"""The scripted model that ships with the engine."""

import subprocess
import sys

import pytest

from agents.engine.planner import ReActPlanner
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_a_scripted_model_replies_turn_by_turn(dialect):
    model = ScriptedModel(Says.call("look", at="it"), Says(answer="Seen."), dialect=dialect)
    planner, state = ReActPlanner(model, "scripted", dialect=dialect), AgentState()
    state.add_message("user", "Look!")

    first = await planner.plan("Look!", state, [])
    last = await planner.plan("Look!", state, [])

    assert (first.calls[0].name, first.calls[0].input) == ("look", {"at": "it"})
    assert last.final_answer == "Seen."
    assert len(model.requests) == 2
    model.assert_used_up()


async def test_a_script_that_is_too_short_or_too_long_is_an_error():
    model = ScriptedModel(Says(answer="Once."))

    with pytest.raises(AssertionError, match="never asked for"):
        model.assert_used_up()
    assert [chunk async for chunk in model.stream()]
    with pytest.raises(AssertionError, match="used up"):
        [chunk async for chunk in model.stream()]


@pytest.mark.slow
def test_the_scripted_model_needs_no_django():
    code = "import sys, agents.engine.testing; sys.exit('django' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
