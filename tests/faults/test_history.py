"""Each invariant detects a history that violates it."""

import json

import pytest

from tests.faults import page
from tests.faults.history import History, Seen, Sent, violations


def sent(client_id="a", chat=1, *, acknowledged=True):
    return Sent(chat=chat, client_id=client_id, text="Hi", is_acknowledged=acknowledged)


def message(client_id="a", pk=1, chat=1, run=1):
    return {"pk": pk, "session_id": chat, "client_id": client_id, "run_id": run}


def run(status="completed", pk=1, topic="chat.1"):
    return {"pk": pk, "status": status, "topic": topic}


def event(seq, type, **data):
    return {"run_id": 1, "seq": seq, "type": type, "data": data}


def call(seq, step=1, **arguments):
    function = {"name": "pay", "arguments": json.dumps(arguments)}
    return event(seq, "tool_call", step=step, function=function)


END = event(3, "run_finished")
WHOLE = [call(1, order="7"), event(2, "step", step=1), END]
ASKED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
USER = {"role": "user", "content": "Hi"}

GOOD = {
    "sent": [sent()],
    "messages": [message()],
    "runs": [run()],
    "events": WHOLE,
    "steps": [{"run_id": 1, "number": 1, "ended_at": "now"}],
    "effects": ["pay 7"],
    "seen": [Seen(tab="a", live=("p",), reloaded=("p",))],
    "told": [[USER, ASKED, ANSWER, USER]],
}


def test_a_valid_history_has_no_violations():
    assert violations(History(**GOOD)) == []


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"messages": []}, "I1: 'Hi' was acknowledged and is lost"),
        ({"messages": [message(), message(pk=2)]}, "I1: a is kept 2 times"),
        (
            {
                "sent": [sent("a"), sent("b")],
                "messages": [message("b", 1), message("a", 2)],
            },
            "I2: chat 1 is in another order",
        ),
        ({"messages": [message(run=None)]}, "I2: message 1 of chat 1 is answered by no run"),
        ({"events": [WHOLE[0], END]}, "I3: the events of run 1 are numbered [1, 3]"),
        ({"events": WHOLE[:2]}, "I3: run 1 is completed, and its ends are at []"),
        ({"events": [*WHOLE, event(4, "delta")]}, "I3: run 1 is completed, and its ends are"),
        ({"events": [*WHOLE, event(4, "run_finished")]}, "its ends are at [2, 3]"),
        ({"events": [WHOLE[0], call(2), END]}, "I4: step 1 of run 1 began 2 times"),
        ({"events": [WHOLE[0], event(2, "delta"), END]}, "I4: step 1 of run 1 ended 0 times"),
        (
            {"steps": [{"run_id": 1, "number": 1, "ended_at": None}]},
            "I4: step 1 of run 1 never ended",
        ),
        ({"runs": [run("running")], "events": WHOLE[:2]}, "I5: run 1 is still running"),
        (
            {"runs": [run("waiting"), run("waiting", 2)], "waits": frozenset({1, 2})},
            "I5: 2 runs live on chat.1",
        ),
        ({"effects": ["pay 7", "pay 7"]}, "I6: 'pay 7' happened 2 times"),
        ({"effects": ["pay 8"]}, "I6: 'pay 8' happened, and no call of it is kept"),
        (
            {"seen": [Seen(tab="a", live=("p",), reloaded=("q",))]},
            "I7: a differs: p is not q",
        ),
        ({"told": [[USER, ASKED, USER]]}, "I8: history 0: ['c1'] have no answer"),
        ({"told": [[USER, ASKED]]}, "I8: history 0: ['c1'] have no answer"),
        ({"told": [[USER, ANSWER]]}, "I8: history 0: ['c1'] were never called"),
        ({"told": [[USER, ASKED, ANSWER, ANSWER]]}, "holds an answer twice"),
    ],
)
def test_every_violation_is_detected(broken, words):
    found = violations(History(**GOOD | broken))

    assert any(words in violation for violation in found), found


def test_the_page_model_applies_frames_like_a_browser():
    shown = page.read('<main><div id="messages"></div><p id="state">idle</p></main>')
    page.take(shown, '<div hx-swap-oob="beforeend:#messages"><b id="run-1">Thinks</b></div>')
    page.take(shown, '<b id="run-1">Done<br>.</b> text between <p id="state">busy</p>')
    page.take(shown, '<i id="nowhere">lost</i>')

    assert shown.text == "Done . busy"
    same = page.read('<div id="messages"> <b id="run-1">Done<br>.</b></div>')
    assert shown.find("messages").shape == same.find("messages").shape
    assert shown.find("messages").shape != page.read('<div id="messages"></div>').shape
