"""Steps on the run's timeline, and how its time was spent."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from agents.models import AgentStep, Approval, Run
from agents.web.presentation.steps.side_effects import SideEffects
from agents.web.presentation.steps.waterfall import Waterfall

START = datetime(2026, 11, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def step(number, kind, start, end, **more):
    more = {"status": "done", "turn": number, **more}
    return AgentStep(number=number, kind=kind, started_at=at(start), ended_at=at(end), **more)


def approval_between(number, start, end):
    return Approval(step=number, asked_at=at(start), decided_at=at(end))


def waterfall(whole, *steps, approvals=(), **more):
    return Waterfall(START, at(whole), steps, approvals, **more)


def test_a_bar_is_at_its_steps_time():
    fall = waterfall(10, first := step(1, "thought", 0, 4), second := step(2, "tool", 4, 5))

    [thought], [tool] = fall.bar(first).pieces, fall.bar(second).pieces

    assert (thought.start, thought.width) == (0, 40)
    assert (tool.start, tool.width) == (40, 10)
    assert fall.bar(first).share == pytest.approx(0.4)


def test_waiting_for_approval_is_drawn_before_the_call():
    call = step(1, "tool", 8, 9)
    fall = waterfall(10, call, approvals=[approval_between(1, 2, 8)])

    wait, work = fall.bar(call).pieces

    assert (wait.kind, wait.start, wait.width) == ("waiting", 20, 60)
    assert (work.kind, work.start) == ("work", 80)


def test_waiting_during_a_step_is_drawn_over_it_and_is_not_active_time():
    plan = step(1, "plan", 0, 10)
    fall = waterfall(10, plan, approvals=[approval_between(1, 2, 9)])

    work, wait = fall.bar(plan).pieces

    assert (work.kind, wait.kind) == ("work", "waiting")
    assert (wait.start, wait.width) == (20, 70)
    assert fall.bar(plan).share == pytest.approx(0.3)


def test_a_task_waiting_for_a_child_approval_is_not_active_time():
    task, question = step(1, "task", 0, 10), step(2, "tool", 9, 10, parent=1)
    fall = waterfall(10, task, question, approvals=[approval_between(2, 1, 9)])

    work, wait = fall.bar(task).pieces

    assert (work.kind, wait.kind) == ("work", "waiting")
    assert (wait.start, wait.width) == (10, 80)
    assert fall.bar(task).share == pytest.approx(0.2)


def test_long_waits_can_be_drawn_short():
    first, call = step(1, "thought", 0, 1), step(2, "tool", 101, 102)
    fall = waterfall(102, first, call, approvals=[approval_between(2, 1, 101)])

    assert fall.is_compressible
    assert fall.bar(first).pieces[0].width < 1
    assert fall.bar(first).short[0].width > 40
    assert fall.bar(call).short[-1].start == pytest.approx(57.6, abs=1)


def test_the_compressed_scale_shows_active_and_waiting_time():
    first, call = step(1, "thought", 0, 1), step(2, "tool", 101, 102)
    fall = waterfall(102, first, call, approvals=[approval_between(2, 1, 101)])

    start, wait, end = fall.short_ticks

    assert (start.at, start.ms, start.anchor) == (0, 0, "start")
    assert (wait.ms, wait.is_gap, wait.anchor) == (100_000, True, "middle")
    assert (end.at, end.ms, end.anchor) == (100, 2_000, "end")
    [gap] = fall.bar(first).gaps
    assert gap.start < wait.at < gap.start + gap.width


def test_a_run_without_long_waits_is_not_compressed():
    fall = waterfall(4, only := step(1, "thought", 0, 4))

    assert not fall.is_compressible
    assert fall.bar(only).short == []


def test_the_first_token_is_marked():
    fall = waterfall(10, only := step(1, "thought", 0, 10), first_words={1: at(2.5)})

    assert [(p.kind, p.start) for p in fall.bar(only).pieces] == [("work", 0), ("first", 25)]


def test_overlapping_time_counts_once():
    fall = waterfall(
        20,
        step(1, "thought", 0, 5),
        step(2, "tool", 5, 9, turn=2),
        step(3, "tool", 6, 10, turn=2),
        step(4, "tool", 18, 20),
        approvals=[approval_between(4, 10, 18)],
    )

    split = fall.split()

    assert (split.model, split.tools, split.waiting) == (5, 7, 8)
    assert sum(piece.width for piece in split.pieces) == pytest.approx(100)


def test_handoff_time_does_not_count_as_tool_time():
    fall = waterfall(10, step(1, "tool", 0, 10), step(2, "thought", 0, 10, parent=1))

    assert (fall.split().model, fall.split().tools) == (10, 0)


@pytest.mark.parametrize(("seconds", "heat"), [(0.4, 0), (0.5, 1), (1.5, 2), (3, 3), (5, 4)])
def test_the_heat_of_a_step_is_its_share_of_the_run(seconds, heat):
    fall = waterfall(10, only := step(1, "thought", 0, seconds))

    assert fall.bar(only).heat == heat


def test_parallel_calls_of_a_turn_are_drawn_in_parallel():
    calls = [step(n, "tool", 0, 1, turn=1) for n in (1, 2, 3)]
    fall = waterfall(1, *calls, last := step(4, "answer", 0, 1))

    assert [fall.bar(call).parallel_count for call in calls] == [3, 3, 3]
    assert fall.bar(last).parallel_count == 1


def test_open_steps_and_clock_jumps_are_drawn_within_the_run():
    open_one = AgentStep(number=1, kind="tool", started_at=at(-5), ended_at=None, turn=1)
    fall = waterfall(10, open_one, late := step(2, "thought", 30, 2))

    assert fall.bar(open_one).pieces[0].width == 100
    assert all(p.start + p.width <= 100 for p in fall.bar(late).pieces)


def test_side_effects_distinguish_reads_and_writes():
    ledger = SideEffects.of(
        [
            step(1, "thought", 0, 1),
            step(2, "tool", 0, 1, effect="read"),
            step(3, "tool", 0, 1, effect="idempotent"),
            step(4, "tool", 0, 1, effect="at_most_once", status="unknown"),
            step(5, "tool", 0, 1, effect="at_most_once", status="rejected"),
            step(6, "tool", 0, 1),
        ]
    )

    assert [call.number for call in ledger.changes] == [3, 4]
    assert (ledger.reads, ledger.writes, ledger.irreversible, ledger.unclear) == (1, 1, 1, 1)


def test_a_handoff_is_not_a_side_effect():
    ledger = SideEffects.of(
        [step(1, "tool", 0, 1), step(2, "tool", 0, 1, parent=1, effect="read")]
    )

    assert (ledger.changes, ledger.reads, ledger.unclear) == ([], 1, 0)


@pytest.mark.django_db
@pytest.mark.parametrize(("count", "is_offered"), [(15, True), (3, False)])
def test_a_long_run_can_be_searched_and_counts_its_problems(admin_client, count, is_offered):
    now = timezone.now()
    run = Run.objects.create(query="?", status="completed", started_at=now, ended_at=now)
    about = {"kind": "tool", "action": "search", "started_at": now, "ended_at": now}
    AgentStep.objects.bulk_create(
        AgentStep(run=run, number=at, status="failed" if at == 2 else "done", **about)
        for at in range(1, count + 1)
    )

    html = admin_client.get(f"/traces/{run.pk}/").text

    assert ('id="find-step"' in html, "1 problem<" in html) == (is_offered, is_offered)
