from hypothesis import given
from hypothesis import strategies as st

from agents.engine.guardrails.checks import estimate_tokens
from agents.engine.planner.context_window import fit
from agents.engine.state import repair_history


def user(text):
    return {"role": "user", "content": text}


def assistant_message(text):
    return {"role": "assistant", "content": text}


def call(id, arguments="{}"):
    function = {"name": "echo", "arguments": arguments}
    made = [{"id": id, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": made}


def answer(id, text="x"):
    return {"role": "tool", "tool_call_id": id, "content": text}


LONG = [
    m
    for n in range(10)
    for m in (user(f"{n} " + "word " * 40), assistant_message("word " * 40))
]


def test_a_short_conversation_is_sent_whole():
    history = [user("Hello"), assistant_message("Hi"), user("Well?")]

    fitted = fit(history, 1000, estimate_tokens)

    assert (fitted.messages, fitted.dropped, fitted.shortened) == (history, 0, 0)


def test_the_oldest_exchanges_are_left_out_whole():
    fitted = fit([*LONG, user("And?")], 300, estimate_tokens)

    assert fitted.messages[-1] == user("And?")
    assert fitted.messages[0]["role"] == "user"
    assert fitted.dropped == len(LONG) + 1 - len(fitted.messages) > 0


def test_the_last_exchange_stays_and_its_tool_results_are_shortened():
    history = [user("Look"), call("a"), answer("a", "word " * 10_000)]

    fitted = fit(history, 500, estimate_tokens)

    assert [m["role"] for m in fitted.messages] == ["user", "assistant", "tool"]
    assert "characters cut" in fitted.messages[-1]["content"]
    assert len(fitted.messages[-1]["content"]) < 5_000
    assert fitted.shortened == 1


def test_japanese_text_is_counted_in_real_tokens():
    history = [user("長い話" * 100), assistant_message("はい"), user("次は？")]

    assert fit(history, 200, estimate_tokens).dropped == 2


def test_unparsable_arguments_become_an_empty_object():
    fitted = fit([user("?"), call("a", '{"text": '), answer("a")], None, estimate_tokens)

    assert fitted.messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_empty_messages_are_left_out():
    assert fit([user("?"), assistant_message(""), user("!")], None, len).messages == [
        user("?"),
        user("!"),
    ]


messages = st.one_of(
    st.text(max_size=40).map(user),
    st.text(max_size=40).map(assistant_message),
    st.sampled_from("ab").map(call),
    st.builds(answer, st.sampled_from("ab"), st.text(max_size=2000)),
)


@given(st.lists(messages, max_size=20), st.integers(1, 400))
def test_every_trimmed_history_is_valid(history, most):
    fitted = fit(history, most, estimate_tokens)

    assert repair_history(fitted.messages) == fitted.messages
