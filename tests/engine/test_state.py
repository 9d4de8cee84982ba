from hypothesis import given
from hypothesis import strategies as st

from agents.engine import AgentState, AgentStep
from agents.engine.state import repair_history, trim_messages


def call(*ids):
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id} for id in ids]}


def answer(id):
    return {"role": "tool", "tool_call_id": id, "content": "x"}


def user(text="?"):
    return {"role": "user", "content": text}


def test_messages_are_returned_and_can_be_cleared():
    state = AgentState()
    state.add_message("user", "Hello")
    state.add_step(AgentStep(thought="Hm."))
    assert state.get_messages() == [{"role": "user", "content": "Hello"}]
    assert state.get_steps() == [AgentStep(thought="Hm.")]

    state.clear()

    assert state.get_messages() == state.get_steps() == []


def test_changing_returned_messages_does_not_change_the_state():
    state = AgentState()
    state.add_message("user", "Hello")

    state.get_messages().clear()

    assert len(state.get_messages()) == 1


def test_only_the_newest_messages_are_kept():
    state = AgentState(max_history=50)
    for n in range(60):
        state.add_message("user", str(n))
        state.add_message("assistant", str(n))

    messages = state.get_messages()
    assert len(messages) == 50
    assert messages[-1]["content"] == "59"
    assert messages[0]["role"] == "user"


def test_an_exchange_is_never_split():
    history = [user(), call("a"), answer("a"), call("b"), answer("b")]

    assert trim_messages([user(), *history], 3) == history


def test_a_call_without_a_result_gets_one():
    history = repair_history([user(), call("a", "b"), answer("b"), user("Next?")])

    assert [m["role"] for m in history] == ["user", "assistant", "tool", "tool", "user"]
    assert "interrupted" in history[3]["content"]


def test_a_result_without_a_call_is_left_out():
    assert repair_history([user(), answer("x")]) == [user()]


def test_a_state_round_trips_through_json():
    state = AgentState()
    state.add_message("user", "Hello")
    state.add_step(AgentStep(thought="Hm.", action="echo", action_input={"a": 1}))

    again = AgentState.from_dict(state.to_dict())

    assert again.to_dict() == state.to_dict()


ids = st.sampled_from("abc")
messages = st.one_of(
    st.builds(user), st.builds(answer, ids), st.lists(ids, unique=True).map(lambda i: call(*i))
)


@given(st.lists(messages))
def test_any_history_is_repaired_to_a_valid_one(history):
    once = repair_history(history)

    assert repair_history(once) == once
    open_calls = set()
    for message in once:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
            open_calls = {made["id"] for made in message.get("tool_calls", ())}
    assert not open_calls


def test_surrogates_are_joined_or_replaced():
    state = AgentState()
    state.add_message("tool", "\ud83d\ude00 and \ud83d alone")

    assert state.get_messages()[0]["content"] == "😀 and \ufffd alone"
