"""Active time excludes waiting for people, and steps are one number."""

import itertools
import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.engine.events import Event, EventType
from agents.models import AgentStep, Run
from agents.review import exports
from agents.review.filters.filter_language import parse
from agents.review.run_list import listing
from agents.review.run_list.charts import p95
from agents.runs import clocks, event_store
from agents.web.presentation import RunView, StepView
from agents.web.presentation.run_fragments import run_header

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

BEGAN = timezone.now().replace(microsecond=0) - timedelta(hours=1)
FUNCTION = {"name": "send", "arguments": "{}"}


def at(seconds):
    return BEGAN + timedelta(seconds=seconds)


class Told:
    """Events of a run at given times."""

    def __init__(self, run):
        self.run, self.seq = run, 0

    def __call__(self, second, type, **data):
        self.seq += 1
        event = Event(type=type, data=data, agent="helper", time=at(second), seq=self.seq)
        event_store.save([(self.run.pk, event)])


def asks(told, second, step, call, until=None):
    about = {"step": step, "turn": 1, "id": call, "digest": call, "tool": "", "thought": ""}
    told(second, EventType.APPROVAL_REQUESTED, function=FUNCTION, why="tool", **about)
    if until is not None:
        word = {"is_approved": True, "arguments": None, "reason": "", "by": None}
        told(until, EventType.APPROVAL_RESOLVED, id=call, step=step, **word)


def finishes(told, second, reason="completed", turns=1):
    about = {"answer": "Sent.", "detail": "", "advice": "", "tool_calls": 1}
    told(second, EventType.RUN_FINISHED, stopped_reason=reason, turns=turns, **about)


@pytest.fixture
def run(person):
    row = Run.objects.create(
        topic="chat.1", query="Send it.", agent_name="helper", max_steps=10, user=person
    )
    Run.objects.filter(pk=row.pk).update(started_at=BEGAN)
    return Run.objects.get(pk=row.pk)


@pytest.fixture
def sent(run):
    """A run that thought for 2 s, waited 40 s for two people at once, and worked 3 s more."""
    told = Told(run)
    told(0, EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={})
    told(2, EventType.STEP, step=1, kind="thought", status="done")
    asks(told, 2, 2, "a", until=32)
    asks(told, 12, 3, "b", until=42)
    about = {"turn": 1, "effect": "idempotent", "function": FUNCTION}
    told(42, EventType.TOOL_CALL, step=2, id="a", started=at(42).isoformat(), **about)
    told(45, EventType.STEP, step=2, kind="tool", status="done")
    told(45, EventType.STEP, step=3, kind="tool", status="rejected")
    finishes(told, 45)
    return Run.objects.get(pk=run.pk)


def test_a_run_that_ends_saves_how_long_it_waited(sent):
    assert (sent.seconds, sent.waited, sent.active) == (45, 40, 5)


def test_the_header_shows_active_and_waiting_time(sent):
    words = " ".join(re.sub("<[^>]+>", " ", run_header(RunView(sent))).split())

    assert "5.00 s" in words
    assert "waited 40.0 s" in words


def test_a_waiting_run_counts_its_waiting_time(run):
    told = Told(run)
    told(0, EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={})
    asks(told, 2, 2, "a")
    told(2, EventType.RUN_PAUSED, reason="approval", turn=1)
    view = RunView(Run.objects.get(pk=run.pk), now=at(62))

    assert (view.elapsed_ms, view.waited_ms) == (2_000, 60_000)
    head = run_header(view)
    assert head.count("data-elapsed-ms") == 1
    assert 'data-elapsed-ms="60000">1 min 00 s' in head


def test_the_active_time_of_a_waiting_run_does_not_grow(run, monkeypatch):
    told = Told(run)
    told(0, EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={})
    asks(told, 2, 2, "a")
    told(2, EventType.RUN_PAUSED, reason="approval", turn=1)
    seconds = itertools.count(62)
    monkeypatch.setattr(clocks, "now", lambda run: at(next(seconds)))

    assert ">2.00 s<" in run_header(RunView(Run.objects.get(pk=run.pk)))


def test_list_filter_and_chart_use_active_time(sent, person):
    def found(query):
        page = listing.load_page(person, parse(query, is_reviewer=False), listing.Cursor())
        return [run.active for run in page.found]

    assert found("") == found("duration:<6s") == found("waited:>30s") == [5]
    assert found("duration:>6s") == found("waited:<30s") == []
    assert (
        p95(listing.load_page(person, parse("", is_reviewer=False), listing.Cursor()).found)
        == 5
    )


def test_the_list_hatches_waiting_time(sent, person_client):
    html = person_client.get("/traces/").text
    cell = html.split('<span class="waited"')[1].split("</td>")[0]
    assert "40.0 s" in cell
    assert "excluding time waiting for users" in html


def test_bars_in_a_chat_hatch_waiting_time(sent):
    rows = {step.number: step for step in RunView(sent).steps}

    [(start, width)] = rows[2].bar_waits
    assert (round(start), round(width)) == (4, 67)
    assert rows[1].bar_waits == []


def test_a_tasks_duration_is_its_active_time():
    step = AgentStep(number=1, kind="task", started_at=at(0), ended_at=at(50))
    waits = ((at(-5), at(10)), (at(5), at(20)), (at(40), None), (at(60), at(70)))

    assert StepView(step, Run(started_at=BEGAN), waits=waits).duration_ms == 20_000


def test_steps_are_turns_or_steps_of_a_plan_everywhere(sent, run, person, client):
    plan = Run.objects.create(
        topic="chat.2", query="Plan it.", agent_name="helper", user=person, max_steps=0
    )
    told = Told(plan)
    about = {"turn": 1, "plan": 1, "work": "tool", "what": "send", "expected": ""}
    for number, name in enumerate("abc", 1):
        told(number, EventType.TASK, step=number, kind="task", name=name, **about)
    told(4, EventType.TASK, step=4, kind="task", name="a[1]", parent=1, **about)
    finishes(told, 5, turns=0)
    plan = Run.objects.get(pk=plan.pk)

    assert (sent.step_count, plan.step_count) == (1, 3)
    for row, head in ((sent, "turn 1/10"), (plan, "3 steps")):
        assert head in run_header(RunView(row))
        assert f"- **Steps**: {row.step_count}" in "".join(
            exports.as_markdown(row, is_masked=False)
        )
        told_of = json.loads("".join(exports.as_json(row, is_masked=False)))
        assert told_of["run"]["step_count"] == row.step_count
    page = listing.load_page(person, parse("steps:3", is_reviewer=False), listing.Cursor())
    assert [found.pk for found in page.found] == [plan.pk]
    client.force_login(person)
    compared = client.get(f"/traces/{sent.pk}/compare/{plan.pk}/").text
    cells = compared.split(">Steps</th>")[1].split("</tr>")[0]
    assert re.findall(r"<td>(\d+)</td>", cells) == ["1", "3"]
