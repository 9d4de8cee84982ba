"""What a terminal, a file and a program get of a run's events."""

import json

import pytest

from agents.management.run_printer import RunPrinter, failure_of
from tests.cli.conftest import Terminal

CALL = {"id": "c0", "function": {"name": "search", "arguments": '{"query": "\x1b[2J"}'}}


def event(type, agent="helper", **data):
    return {"type": type, "agent": agent, "seq": 1, "time": "", "data": data}


def finished(answer, reason="completed", detail=""):
    return event("run_finished", answer=answer, stopped_reason=reason, detail=detail)


def printed(events, *, is_terminal=True, **options):
    out, notes = Terminal(is_terminal), Terminal(is_terminal)
    printer = RunPrinter(out, notes, **options)
    for each in events:
        printer.print(each)
    return out.getvalue(), notes.getvalue()


def test_a_terminal_gets_the_answer_as_it_is_written_and_once():
    deltas = [event("delta", content=text, step=1) for text in ("Six times ", "seven is 42.")]

    out, _ = printed([*deltas, finished("Six times seven is 42.")])

    assert out == "Six times seven is 42.\n"


def test_a_file_gets_only_the_final_answer():
    events = [event("delta", content="I’ll look.", step=1), finished("42")]

    assert printed(events, is_terminal=False) == ("42\n", "")


def test_what_a_guardrail_changed_is_printed_as_it_is_in_the_end():
    out, _ = printed(
        [event("delta", content="Mail a@b.example", step=1), finished("Mail ‹email›")]
    )

    assert out == "Mail a@b.example\nMail ‹email›\n"


def test_what_turned_out_to_be_a_thought_does_not_run_into_the_answer():
    events = [
        event("delta", content="I need a tool.", step=1),
        event("thought", content="I need a tool.", step=1),
        event("delta", content="42", step=2),
        finished("42"),
    ]

    assert printed(events)[0] == "I need a tool.\n42\n"


def test_steps_are_dim_lines_whose_control_characters_are_written_out():
    result = {"name": "search", "content": "\x9bfound\nmore", "is_error": False}

    _, notes = printed([event("tool_call", **CALL), event("tool_response", **result)])

    assert notes.splitlines() == [
        '\x1b[2m[search {"query": "\\u001b[2J"}]\x1b[0m',
        "\x1b[2m  → search: \\u009bfound …\x1b[0m",
    ]


def test_no_color_is_respected(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    _, notes = printed([event("tool_call", **CALL)])

    assert "\x1b" not in notes


def test_a_quiet_printer_writes_only_the_answer():
    assert printed([event("tool_call", **CALL), finished("42")], is_quiet=True) == ("42\n", "")


def test_steps_of_other_agents_have_their_name():
    _, notes = printed([event("tool_call", agent="clerk", parent=2, **CALL)])

    assert "[clerk: search " in notes


def test_programs_get_each_event_as_a_line_of_json():
    events = [event("delta", content="a\u2028\x1b", step=1), finished("a\u2028\x1b")]

    out, notes = printed(events, as_json=True)

    assert [json.loads(line) for line in out.split("\n")[:-1]] == events
    assert not {"\x1b", "\u2028"} & set(out)
    assert notes == ""


@pytest.mark.parametrize(
    ("reason", "detail", "failure"),
    [
        ("completed", "", None),
        ("tool_failure_degraded", "A tool failed.", None),
        ("error", "The provider refused.", "The provider refused."),
        ("cancelled", "", "cancelled"),
    ],
)
def test_the_last_event_says_whether_the_run_failed(reason, detail, failure):
    assert failure_of(finished("", reason, detail)) == failure
