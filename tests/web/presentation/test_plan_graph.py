import time
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from agents.engine.plans.definition.plan import ExecutionPlan, ExecutionStep
from agents.web.presentation.plans.plan_graph import (
    StepState,
    render_graph,
    shorten_end,
    shorten_middle,
)

EVIL = '</text><script>alert("x")</script>'


def step(name, *needed, **more):
    return ExecutionStep(**{"tool": "calculator", **more}, name=name, depends_on=needed)


def linked(step, state):
    return f"/steps/{state.number or 0}/"


def nodes(plan, states=None):
    """Return the nodes of the wide graph, which comes first."""
    wide = ElementTree.fromstring(render_graph(plan, states or {}, linked)).find("svg")
    return wide.findall("a")


def test_every_step_is_a_link_with_its_status():
    plan = ExecutionPlan(steps=[step("収集"), step("分析", "収集", condition="failure")])
    states = {"収集": StepState(status="done", number=7)}

    first, second = nodes(plan, states)

    assert first.get("href") == "/steps/7/"
    assert first.get("data-status") == "done"
    assert first.get("aria-label") == "収集: done · calculator"
    assert second.get("aria-label") == "分析: not started · calculator · condition: failure"


def test_columns_follow_the_dependencies():
    plan = ExecutionPlan(steps=[step("c", "a", "b"), step("a"), step("b", "a")])

    at = {node.get("aria-label")[0]: int(node.find("svg").get("x")) for node in nodes(plan)}

    assert at["a"] < at["b"] < at["c"]
    assert render_graph(plan, {}, linked).count('class="edge"') == 2 * 2  # a→c goes by way of b


def test_on_a_narrow_screen_steps_are_below_each_other():
    beside = [step(name, "a") for name in "bcd"]
    plan = ExecutionPlan(steps=[step("a"), *beside, step("e", *"bcd")])

    narrow = ElementTree.fromstring(render_graph(plan, {}, linked)).findall("svg")[1]

    places = [node.find("svg") for node in narrow.findall("a")]
    tops = [int(place.get("y")) for place in places]
    assert len({place.get("x") for place in places}) == 1
    assert min(low - high for high, low in pairwise(tops)) > int(places[0].get("height"))
    assert int(narrow.get("width")) < 300
    assert len(narrow.findall(".//g[@class='edge']")) == 6


def test_names_are_escaped():
    plan = ExecutionPlan(steps=[step(EVIL, condition=EVIL)])

    html = render_graph(
        plan, {EVIL: StepState(status='"><b>', note=EVIL)}, lambda step, state: '"><b>'
    )

    assert "<script" not in html
    assert "<b>" not in html


def test_cycles_and_empty_plans_are_drawn():
    assert len(nodes(ExecutionPlan(steps=[step("a", "b"), step("b", "a")]))) == 2
    assert "No steps yet" in render_graph(ExecutionPlan(), {}, linked)


def test_cyclic_edges_are_not_drawn():
    circle = [step("b", "a", "d"), step("c", "b"), step("d", "c")]

    html = render_graph(ExecutionPlan(steps=[step("a"), *circle]), {}, linked)

    assert html.count('class="edge"') == 1 * 2  # only a→b, in each of the two drawings


@pytest.mark.parametrize("is_chain", [True, False])
def test_a_thousand_steps_become_bars(is_chain):
    names = [f"s{n}" for n in range(1_000)]
    pairs = zip(names, names[1:], strict=False)
    steps = [step("s0"), *(step(name, *[last] * is_chain) for last, name in pairs)]
    states = {name: StepState(status="done") for name in names[:500]}
    begun = time.process_time()

    html = render_graph(ExecutionPlan(steps=steps), states, linked)

    assert time.process_time() - begun < 3
    assert 1 <= html.count('class="bar"') <= 60
    assert "done" in html
    assert len(html) < 30_000


def test_a_long_name_is_truncated_to_the_box():
    assert shorten_end("abc", 3) == "abc"
    assert shorten_end("アンケート集計レポート", 10) == "アンケー…"


def test_names_that_differ_at_their_end_look_different():
    names = [f"best month by revenue in {year}" for year in (2025, 2026)]

    assert [shorten_middle(name, 17) for name in names] == [
        "best mon…in 2025",
        "best mon…in 2026",
    ]
    assert shorten_middle("difference", 17) == "difference"
