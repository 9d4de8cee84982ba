"""A run drawn in a terminal."""

from project.cli import waterfall
from project.cli.waterfall import fit

RUN = {
    "id": 12,
    "agent": "helper",
    "status": "completed",
    "question": "What is\x1b[2J 6 * 7?",
    "seconds": 3.25,
    "usage": {"prompt_tokens": 1200, "completion_tokens": 34, "cost_usd": 0.012},
}


def step(number, kind, start, end, depth=0, action="", status="completed", tokens=0):
    return {
        "number": number,
        "kind": kind,
        "depth": depth,
        "action": action,
        "status": status,
        "started_at": f"2026-11-19T10:00:{start:06.3f}+00:00",
        "ended_at": end and f"2026-11-19T10:00:{end:06.3f}+00:00",
        "usage": {"prompt_tokens": tokens, "completion_tokens": 0, "cost_usd": None},
    }


def draw(*steps, run=RUN, width=90):
    return list(waterfall.draw(run, steps, width, has_color=False))


def test_each_step_has_its_place_in_time_its_tokens_and_its_duration():
    lines = draw(
        step(1, "thought", 0, 1, tokens=1234),
        step(2, "tool", 1, 3, depth=1, action="calculator"),
    )

    assert lines[0] == "Run 12 · helper · completed · 3.2 s · 1,234 tokens · $0.0120"
    assert lines[1] == r"What is\u001b[2J 6 * 7?"
    first, second = (line[34:] for line in lines[3:])
    assert first.split()[1:] == ["1.0", "s", "1,234", "tok"]
    assert second.split()[1:] == ["2.0", "s"]
    assert "  2   tool calculator " in lines[4]
    bars = [text.split()[0] for text in (first, second)]
    assert len({len(bar) for bar in bars}) == 1
    assert bars[0].rindex("━") + 1 == bars[1].index("━")
    assert bars[0].count("━") < bars[1].count("━")


def test_what_has_not_ended_has_no_duration_and_what_failed_is_marked():
    lines = draw(step(1, "thought", 0, 1), step(2, "tool", 1, None, status="failed"))

    assert "✗ tool" in lines[4]
    assert lines[4].endswith("…")


def test_a_step_is_followed_by_those_that_belong_to_it():
    steps = [
        step(1, "task", 0, 1),
        step(2, "task", 0, 1),
        step(3, "tool", 0, 1),
        step(4, "tool", 0, 1),
    ]
    steps[2]["parent"] = 1
    steps[3]["parent"] = 99  # not on record

    assert [int(line.split()[0]) for line in draw(*steps)[3:]] == [1, 3, 2, 4]


def test_a_run_without_steps_is_its_summary():
    assert len(draw()) == 2


def test_texts_are_cut_at_the_width_that_a_terminal_shows():
    assert fit("abc", 5) == "abc  "
    assert fit("abcdef", 4) == "abc…"
    assert fit("日本語の検索", 7) == "日本語…"
    assert fit("日本語の検索", 8) == "日本語… "
