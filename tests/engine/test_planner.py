"""What a model is sent, and which parts are its own."""

from typing import Any

from agents.engine.guardrails.checks import estimate_tokens
from agents.engine.planner.context_window import fit
from agents.engine.planner.react_planner import ModelRequest, PlanResult, ReActPlanner
from agents.engine.state import AgentState
from agents.engine.testing import ScriptedModel
from agents.engine.turn.assembly import ToolCall, Turn

SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
CALL = ToolCall(id="a", name="echo", kept={"provider_specific_fields": {"signature": "c1"}})
TURN = Turn(content="I look.", tool_calls=(CALL,), kept={"thinking_blocks": [SIGNED]})
PLAN = PlanResult(thought="Hm.\n\nI look.", action="echo", calls=(CALL,), turn=TURN)


def planner(model: str = "claude", **options: Any) -> ReActPlanner:
    return ReActPlanner(ScriptedModel(), model, **options)


def request_after_call(by: ReActPlanner, then: ReActPlanner) -> ModelRequest:
    """Return the request after a call that one model made and another one sees."""
    state = AgentState()
    state.add_message("user", "?")
    state.add_message(**by.message(PLAN, PLAN.calls))
    state.add_message("tool", "x", tool_call_id="a")
    return then.request("?", state, [])


def test_a_model_is_sent_its_own_thinking_and_signatures() -> None:
    message = request_after_call(planner(), planner()).messages[1]

    assert message["thinking_blocks"] == [SIGNED]
    assert message["tool_calls"][0]["provider_specific_fields"] == {"signature": "c1"}
    assert "model" not in message


def test_another_model_is_sent_the_call_and_nothing_that_only_the_first_can_read() -> None:
    message = request_after_call(planner(), planner("gpt")).messages[1]

    assert set(message) == {"role", "content", "tool_calls"}
    assert set(message["tool_calls"][0]) == {"id", "type", "function"}
    assert message["content"] == "I look."


def test_a_model_that_writes_its_calls_is_sent_text_alone() -> None:
    messages = request_after_call(planner(), planner(dialect="react")).messages

    assert [set(message) for message in messages] == [{"role", "content"}] * 3
    assert messages[1]["content"].startswith("Thought: I look.\nAction: echo")


def test_a_model_that_writes_its_calls_keeps_its_thought_in_their_place() -> None:
    message = planner(dialect="react").message(PLAN, (ToolCall(id="a", name="echo"),))

    assert (message["content"], "model" in message) == ("Hm.\n\nI look.", False)
    assert "thinking_blocks" not in message


def test_what_was_thought_counts_when_a_conversation_is_made_to_fit() -> None:
    long = {"type": "thinking", "thinking": "word " * 500, "signature": "s1"}
    thoughtful = {"role": "assistant", "content": "Hi", "thinking_blocks": [long]}
    history = [{"role": "user", "content": "1"}, thoughtful, {"role": "user", "content": "2"}]

    assert fit(history, 100, estimate_tokens).dropped == 2
    assert fit(history, 10_000, estimate_tokens).messages[1] == thoughtful


def test_history_is_not_changed_by_what_is_sent() -> None:
    state = AgentState()
    state.add_message("user", "?")
    state.add_message(**planner().message(PLAN, PLAN.calls))
    before = state.get_messages()[1].copy()

    planner("gpt").request("?", state, [])

    assert state.get_messages()[1] == before
