"""The one line that the steps of a run fold to: what it does, and afterwards what it did."""

from typing import Any

import pytest
from django.utils import translation

from agents.models import AgentStep, Run
from agents.web.presentation.steps.activity import (
    activity,
    current_activity,
    doing,
    public_activity,
    public_doing,
)
from agents.web.presentation.steps.step_view import StepView


def step(kind: str = "tool", **values: Any) -> StepView:
    row = AgentStep(number=1, kind=kind, **{"status": AgentStep.Status.DONE} | values)
    return StepView(row, Run(pk=1, status=Run.Status.COMPLETED))


def found(*titles: str) -> StepView:
    return step(action="search", sources=[{"number": 1, "title": title} for title in titles])


@pytest.mark.parametrize(
    ("steps", "phrases"),
    [
        ([], []),
        ([step("thought", thought="Easy.")], ["Thought it through"]),
        ([step(action="calculator"), step(action="calculator")], ["Calculated"]),
        ([found("a", "b"), found("a")], ["Searched 2 documents"]),
        ([found()], ["Searched the documents"]),
        ([step(action="shop", action_input={"sql": "SELECT 1"})], ["Queried shop"]),
        ([step(action="send"), step(action="send")], ["Used send 2 times"]),
        ([step(action="ask_helper", action_input={"task": "x"})], ["Asked helper"]),
        (
            [step("plan"), step(action="send", status=AgentStep.Status.FAILED)],
            ["Planned", "used send", "1 failed call"],
        ),
        (
            [step(action=name) for name in "abcde"],
            ["Used a", "used b", "used c", "2 more tools"],
        ),
    ],
)
def test_a_run_says_what_it_did(steps, phrases):
    with translation.override("en"):
        assert activity(steps) == phrases


@pytest.mark.parametrize(
    ("row", "phrase"),
    [
        (step("thought"), "Thinking…"),
        (step("plan"), "Writing the plan…"),
        (step("task"), ""),
        (step(action="search"), "Searching the documents…"),
        (step(action="calculator"), "Calculating…"),
        (step(action="my_shop", action_input={"sql": "SELECT 1"}), "Querying my shop…"),
        (step(action="ask_helper", action_input={"task": "x"}), "Asking helper…"),
        (step(action="send", action_input="?"), "Using send…"),
    ],
)
def test_a_step_says_what_it_does(row, phrase):
    with translation.override("en"):
        assert doing(row) == phrase


def test_visitors_of_other_sites_learn_no_names_and_failures():
    steps = [
        step(action="send", status=AgentStep.Status.FAILED),
        step(action="ask_helper", action_input={"task": "x"}),
        step(action="shop", action_input={"sql": "SELECT 1"}),
        step(action="calculator"),
    ]
    with translation.override("en"):
        assert public_activity(steps) == ["Calculated"]
        assert [public_doing(row) for row in steps] == ["", "", "", "Calculating…"]
        assert public_doing(step("thought")) == "Thinking…"


def test_a_live_run_says_what_its_newest_step_does():
    with translation.override("en"):
        assert current_activity({}) == "Thinking…"
        assert current_activity({4: "", 3: "Using send…", 1: "Thinking…"}) == "Using send…"


@pytest.mark.parametrize(
    ("row", "is_plain"),
    [
        (step("answer"), True),
        (step("thought", status=AgentStep.Status.RUNNING), True),
        (step("answer", thought="I have what I need."), False),
        (step("thought", status=AgentStep.Status.FAILED), False),
        (step(action="calculator"), False),
    ],
)
def test_only_writing_the_answer_is_nothing_to_look_at(row, is_plain):
    assert row.is_plain is is_plain
