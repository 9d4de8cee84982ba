"""A run's HTML escapes whatever comes from people, models and tools."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import models
from django.utils import timezone, translation
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from selectolax.lexbor import LexborHTMLParser

from agents.models import AgentStep, Run
from agents.web.presentation import RunView, StepView
from agents.web.presentation.element import Element, join
from agents.web.presentation.run_fragments import run_header, run_section
from agents.web.presentation.step_fragments import step_row

HOSTILE = "\"'><img src=x onerror=alert(1)>&amp;{pk} %(pk)s {0.__class__}"
BEGAN = timezone.now()
ENDED = BEGAN + timedelta(seconds=83.21)


def hostile_row(model, **columns):
    """Return a row with hostile text in every column that takes any text."""
    texts = {
        field.attname: HOSTILE
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField | models.TextField) and not field.choices
    }
    return model(**texts | columns)


def hostile_step(kind, status="done", **columns):
    columns = {"number": 3, "request": {HOSTILE: HOSTILE}, "action_input": HOSTILE} | columns
    times = {"started_at": BEGAN, "ended_at": None if status == "running" else ENDED}
    row = hostile_row(AgentStep, kind=kind, status=status, **times | columns)
    run = Run(pk=7, started_at=BEGAN)
    return StepView(row, run, now=ENDED, streamed_thought=HOSTILE, path=("a", HOSTILE))


def elements(html):
    return [node.tag for node in LexborHTMLParser(html).css("*")]


@pytest.mark.parametrize("place", ["chat", "trace"])
@pytest.mark.parametrize("status", ["running", "done"])
@pytest.mark.parametrize("kind", ["thought", "tool", "answer", "guardrail"])
def test_a_row_escapes_all_text(kind, status, place):
    html = step_row(replace(hostile_step(kind, status), place=place))

    assert "img" not in elements(html)
    assert "{pk}" in html
    assert 'id="step-3"' in html or 'id="step-7-3"' in html


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["running", "completed", "failed"])
def test_a_run_escapes_all_text(status, person):
    run = hostile_row(Run, pk=7, status=status, started_at=BEGAN, user=person)
    view = RunView(run, has_asked=False, is_judged=False, speaker=HOSTILE, now=ENDED)
    vars(view)["steps"] = [replace(hostile_step("thought"), run=run)]

    html = run_section(view)

    assert "img" not in elements(html)
    assert 'id="run-7-steps"' in html


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"max_steps": 8, "turns": 3}, ">turn 3/8<"),
        ({"max_steps": 0, "tasks": 2}, ">2 steps<"),
        ({"prompt_tokens": 1200, "completion_tokens": 34}, 'title="1,200 input, 34 output'),
        ({"cost": 0.0123}, ">$0.0123<"),
        ({"takeovers": 1}, ">resumed after restart<"),
        ({"waited": 0.25, "seconds": 83.21, "status": "completed"}, ">waited <"),
        ({"model": "demo"}, 'Demo model <span class="tag">rule-based</span>'),
        ({"overrides": {"effort": "low"}}, '<span class="tag">low effort</span>'),
    ],
)
def test_a_header_shows_the_figures_of_the_run(columns, text):
    run = Run(pk=7, agent_name="critic", started_at=BEGAN, **columns)
    view = RunView(run, speaker="critic", now=ENDED, has_asked=False)
    vars(view)["steps"] = []

    assert text in run_header(view)


def test_labels_are_translated_for_each_reader():
    element = Element('<a href="{href}">{label}</a>', label=gettext_lazy("Trace"))

    assert element(href="?a&b") == '<a href="?a&amp;b">Trace</a>'
    with translation.override("ja"):
        assert element(href="") == '<a href="">トレース</a>'


def test_only_html_is_left_as_it_is():
    assert join(["<b>", mark_safe("<i>")]) == "&lt;b&gt;<i>"
    assert Element("{a}{b}")(a="{b}", b=7) == "{b}7"
