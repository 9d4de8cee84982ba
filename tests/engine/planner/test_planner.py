"""The requests that a model is sent, with its own and other models' messages."""

from typing import Any

from agents.engine.guardrails.checks import estimate_tokens
from agents.engine.planner.context_window import fit
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.state import AgentState
from agents.engine.testing import ScriptedModel
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn

SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
CALL = ToolCall(id="a", name="echo", kept={"provider_specific_fields": {"signature": "c1"}})
TURN = Turn(content="I look.", tool_calls=(CALL,), kept={"thinking_blocks": [SIGNED]})
PLAN = PlanResult(thought="Hm.\n\nI look.", action="echo", calls=(CALL,), turn=TURN)


def planner(model: str = "claude", **options: Any) -> ReActPlanner:
    return ReActPlanner(ScriptedModel(), model, **options)


def request_after_call(by: ReActPlanner, then: ReActPlanner) -> ModelRequest:
    """Return the request of one model after a call of another."""
    state = AgentState()
    state.add_message("user", "?")
    state.add_message(**by.message(PLAN, PLAN.calls))
    state.add_message("tool", "x", tool_call_id="a")
    return then.request("?", state, [])


def test_a_model_gets_its_own_thinking_and_signatures_back() -> None:
    message = request_after_call(planner(), planner()).messages[1]

    assert message["thinking_blocks"] == [SIGNED]
    assert message["tool_calls"][0]["provider_specific_fields"] == {"signature": "c1"}
    assert "model" not in message


def test_another_model_gets_the_call_without_provider_specific_fields() -> None:
    message = request_after_call(planner(), planner("gpt")).messages[1]

    assert set(message) == {"role", "content", "tool_calls"}
    assert set(message["tool_calls"][0]) == {"id", "type", "function"}
    assert message["content"] == "I look."


def test_a_react_model_is_sent_text_only() -> None:
    messages = request_after_call(planner(), planner(dialect="react")).messages

    assert [set(message) for message in messages] == [{"role", "content"}] * 3
    assert messages[1]["content"].startswith("Thought: I look.\nAction: echo")


def test_a_react_message_keeps_the_thinking_as_text() -> None:
    message = planner(dialect="react").message(PLAN, (ToolCall(id="a", name="echo"),))

    assert (message["content"], "model" in message) == ("Hm.\n\nI look.", False)
    assert "thinking_blocks" not in message


def test_thinking_counts_towards_the_context_window() -> None:
    long = {"type": "thinking", "thinking": "word " * 500, "signature": "s1"}
    thoughtful = {"role": "assistant", "content": "Hi", "thinking_blocks": [long]}
    history = [{"role": "user", "content": "1"}, thoughtful, {"role": "user", "content": "2"}]

    assert fit(history, 100, estimate_tokens).dropped == 2
    assert fit(history, 10_000, estimate_tokens).messages[1] == thoughtful


def test_building_a_request_does_not_change_the_history() -> None:
    state = AgentState()
    state.add_message("user", "?")
    state.add_message(**planner().message(PLAN, PLAN.calls))
    before = state.get_messages()[1].copy()

    planner("gpt").request("?", state, [])

    assert state.get_messages()[1] == before


def test_a_history_that_fits_by_its_bytes_is_not_counted() -> None:
    counted = list[str]()

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    short = ReActPlanner(ScriptedModel(), "m", window=100_000, count_tokens=count)
    long = ReActPlanner(ScriptedModel(), "m", window=2_000, count_tokens=count)
    state = AgentState()
    state.add_message("user", "word " * 1_000)
    state.add_message("assistant", "word " * 1_000)

    assert short.request("?", state, []).dropped == 0
    assert counted == []
    assert long.request("?", state, []).dropped == 2
    assert counted
