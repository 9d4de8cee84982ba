"""Filled-in forms equal what the template would render."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from agents.models import AgentStep, Approval, Run
from agents.web.presentation import RunView, StepView
from agents.web.presentation.template_cache import (
    cached_part,
    run_header,
    run_section,
    step_row,
)

LANGUAGES = ("en", "ja")
BEGAN = timezone.now()
NOW = BEGAN + timedelta(seconds=83.21)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["plan", "folded", "corrected", "correction", "copy"])
def test_a_cached_empty_part_equals_its_template(language, name):
    folder = "layout" if name == "copy" else "run"
    view, template = RunView(Run(pk=7)), f"{folder}/_{name}.html"

    with translation.override(language):
        assert cached_part(template, view) == render_to_string(
            template, {"view": view, "pk": 7}
        )
        assert "7" in cached_part(template, view)


def render_step(step):
    return render_to_string("run/_step.html", {"step": step})


def a_step(**about):
    began = BEGAN + timedelta(seconds=12.3)
    row = AgentStep(number=3, **{"kind": "thought", "started_at": began} | about)
    return StepView(row, Run(pk=7, started_at=BEGAN), now=NOW, streamed_thought="")


def plain_steps():
    kinds, statuses = ("thought", "answer"), AgentStep.Status.values
    for kind, status, is_dear in product(kinds, statuses, (False, True)):
        yield a_step(
            kind=kind,
            status=status,
            request={"model": "<large>", "at": "100%"} if is_dear else None,
            prompt_tokens=1200 if is_dear else 0,
            cost=0.0123 if is_dear else None,
            ended_at=None if status in {"running", "waiting"} else NOW,
        )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cached_plain_row_equals_its_template(language):
    with translation.override(language):
        for step in plain_steps():
            assert step.is_plain
            assert step_row(step) == render_step(step)


def test_filled_values_are_not_expanded_again():
    step = a_step(status="running", request="\ue001 %(words)s")
    step = replace(step, streamed_thought="\ue000 %(run)s <b>")

    assert step_row(step) == render_step(step)
    assert "\ue000 %(run)s &lt;b&gt;" in step_row(step)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "about",
    [
        {"kind": "tool", "action": "calculator", "action_input": {"expression": "6 * 7"}},
        {"thought": "It is 6 times 7."},
        {"observation": "The model did not answer."},
        {"notes": [{"kind": "replayed"}]},
        {"depth": 1, "parent": 1},
        {"attempts": 2},
    ],
)
def test_a_row_with_details_is_rendered_by_its_template(about):
    step = a_step(**about)

    assert not step.is_plain
    assert step_row(step) == render_step(step)


@pytest.mark.parametrize(
    "about", [{"place": "trace"}, {"path": ("helper", "critic")}, {"job": "planner"}]
)
def test_a_nested_row_is_rendered_by_its_template(about):
    step = replace(a_step(status="done", ended_at=NOW), **about)

    assert not step.is_plain
    assert step_row(step) == render_step(step)


def test_a_row_of_a_waiting_run_is_rendered_by_its_template():
    step = replace(a_step(), run=Run(pk=7, started_at=BEGAN, status="waiting"))

    assert not step.is_plain
    assert 'data-status="waiting"' in step_row(step)


RUNS = [
    Run(
        pk=7,
        status=status,
        agent_name="critic & co",
        model=model,
        route="direct",
        max_steps=max_steps,
        turns=3,
        prompt_tokens=1200 if is_dear else 0,
        completion_tokens=34 if is_dear else 0,
        cost=0.0123 if is_dear else None,
        takeovers=is_dear,
        started_at=BEGAN,
        ended_at=None if status in Run.LIVE else NOW,
        seconds=None if status in Run.LIVE else (NOW - BEGAN).total_seconds(),
        waited=0.25 * is_dear if status not in Run.LIVE else 0,
        tasks=is_dear * (not max_steps),
    )
    for status, model, max_steps, is_dear in product(
        Run.Status.values, ("demo", "openai/100%"), (0, 8), (0, 1)
    )
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cached_header_equals_its_template(language):
    with translation.override(language):
        for run in RUNS:
            view = RunView(run, "chat", speaker=run.agent_name, now=NOW, has_asked=False)
            assert run_header(view) == render_to_string("run/_run_head.html", {"view": view})


@pytest.mark.parametrize("verdict", ["waiting", "approved"])
def test_a_header_shows_the_time_spent_waiting_for_users(verdict):
    for run in RUNS:
        view = RunView(run, speaker=run.agent_name, now=NOW)
        said = None if verdict == "waiting" else NOW
        asked = Approval(asked_at=BEGAN, decided_at=said, verdict=verdict)
        view.__dict__["questions"] = [asked]
        assert run_header(view) == render_to_string("run/_run_head.html", {"view": view})


def test_a_header_shows_the_path_of_the_active_sub_agent():
    step = replace(a_step(agent_name="critic"), path=("helper", "critic"))
    run = Run(pk=7, agent_name="helper", started_at=BEGAN)
    view = RunView(run, speaker="critic", now=NOW, has_asked=False)
    view.__dict__["steps"] = [step]

    assert run_header(view) == render_to_string("run/_run_head.html", {"view": view})
    assert "helper → critic" in run_header(view)


ANSWERS = ("It is 42.", "**50 %(run)s** of \ue002 and \ue003 <b>", "At [1:05] and 100 %.")


def a_run_view(answer="It is 42.", *, about=None, **settings):
    finished = {"status": "completed", "stopped_reason": "completed", "answer": answer}
    times = {"started_at": BEGAN, "ended_at": NOW, "seconds": 83.21}
    run = Run(pk=7, **finished | times | (about or {}))
    view = RunView(run, **{"is_judged": False, "has_asked": False} | settings)
    steps = [a_step(kind=kind, status="done", ended_at=NOW) for kind in ("thought", "answer")]
    vars(view)["steps"] = [replace(step, run=run) for step in steps]
    return view


def render_run(view):
    return render_to_string("run/_run.html", {"view": view})


@pytest.mark.django_db
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("viewer", [None, 5])
@pytest.mark.parametrize("may_decide", [True, False])
def test_a_plain_run_equals_its_template(language, viewer, may_decide):
    with translation.override(language):
        for answer in ANSWERS:
            view = a_run_view(answer, viewer=viewer, may_decide=may_decide)
            assert view.is_plain
            assert run_section(view) == render_run(view)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("about", "settings"),
    [
        ({"status": "stopped", "stopped_reason": "cancelled"}, {}),
        ({"detail": "The answer was cut off.", "advice": "Ask again."}, {}),
        ({"output": {"total": 3}}, {}),
        ({"answer": ""}, {}),
        ({"answer": "long " * 20_000}, {}),
        ({}, {"place": "trace"}),
        ({}, {"is_discussed": True}),
        ({}, {"shows_results": False}),
    ],
)
def test_a_run_with_details_is_rendered_by_its_template(about, settings):
    assert not a_run_view(about=about, **settings).is_plain


@pytest.mark.django_db
def test_a_run_with_a_call_is_rendered_by_its_template():
    view = a_run_view()
    view.steps.append(a_step(kind="tool", action="calculator", observation="42"))

    assert not view.is_plain
