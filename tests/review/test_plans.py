"""Runs by a plan in reviews: exports, replay and comparison."""

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from agents.engine.testing import Says
from agents.review.replays.comparison import Comparison
from agents.review.replays.replay_timeline import ReplayTimeline
from agents.runs.observability.spans import SpanBuilder
from agents.runs.observability.trace_span import TraceIdentity
from agents.web.presentation import RunView
from tests.conftest import as_async_user, run_question, select
from tests.review.test_exports import fetch, validate_export
from tests.runs.test_plans import evaluation_reply as judged
from tests.runs.test_plans import plan_reply, planner, sum_of  # noqa: F401

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("planner", "run_executor"),
]


@pytest.fixture
async def replanned(scripted, person):
    """A run whose first plan failed its evaluation."""
    expected = {"expected_outcome": "More than 0."}
    scripted(
        plan_reply(sum_of("sum", "1 - 1", **expected)),
        judged(False, "It is 0.", "Take 2."),
        plan_reply(
            sum_of("sum", "2 - 1", **expected),
            sum_of("rescue", "0", depends_on=["sum"], condition="failure"),
        ),
        judged(True, "It is 1."),
        Says(answer="It is 1."),
    )
    return await run_question("More than nothing?", user=person)


async def test_the_export_matches_the_schema_and_has_every_plan(replanned, person):
    _, text, _ = await fetch(person, f"/traces/{replanned.pk}/export.json")

    steps = validate_export(text)["steps"]
    plans = [step["action_input"] for step in steps if step["kind"] == "plan"]
    checks = [step["action_input"] for step in steps if step["kind"] == "evaluation"]
    assert [plan["changes"] for plan in plans] == [{}, {"sum": "changed", "rescue": "added"}]
    assert [check["is_met"] for check in checks] == [False, True]


async def test_the_document_describes_the_plan(replanned, person):
    _, text, _ = await fetch(person, f"/traces/{replanned.pk}/export.md")

    assert "1. sum (calculator · changed)" in text
    assert "2. rescue (calculator · added · after sum · only if an earlier step failed" in text
    assert "Why the plan changed" in text
    assert "Not as expected: It is 0." in text


async def test_steps_dropped_by_a_new_plan_are_not_part_of_it(scripted, person):
    tried = sum_of("sum", "1 - 1", expected_outcome="More than 0.")
    scripted(
        plan_reply(tried),
        judged(False, "It is 0."),
        plan_reply(sum_of("total", "2 - 1")),
        Says(answer="1"),
    )

    run = await run_question("More than nothing?", user=person)

    shown = await (await as_async_user(person)).get(f"/traces/{run.pk}/")
    [dropped] = select(shown, "ol.plan-list ~ .gone")
    assert dropped.css_first("s").text() == "sum"
    names = [name.text() for name in select(shown, ".plan-list strong")]
    assert names == ["sum", "total"]
    assert "return the expected result (More than 0): It is 0." in shown.text


async def test_planner_and_evaluator_are_named_by_their_role(replanned, person):
    _, text, _ = await fetch(person, f"/traces/{replanned.pk}/export.md")

    assert text.count("Thought · planner · Writing the plan") == 2
    assert text.count("Thought · monitor · Checking the result") == 2
    assert text.count("Writing the answer") == 1


async def test_the_planners_raw_output_is_in_its_step_details(replanned, person):
    step = await replanned.steps.filter(agent_name="planner").afirst()

    client = await as_async_user(person)
    answer = await client.get(f"/traces/{replanned.pk}/steps/{step.number}/")

    text = answer.text
    assert "Writing the plan" in text
    assert "&quot;description&quot;: &quot;Work it out.&quot;" in text


async def test_the_timeline_describes_plans_and_results(replanned):
    marks = await sync_to_async(lambda: ReplayTimeline(replanned).marks)()

    words = [(mark.kind, mark.words) for mark in marks]
    assert ("plan", "Plan: Work it out.") in words
    assert ("plan", "sum started") in words
    assert ("failed", "Not as expected: It is 0.") in words
    assert ("plan", "As expected: It is 1.") in words
    assert ("plan", "rescue skipped: No previous step failed.") in words


async def test_two_plans_are_compared_step_by_step(replanned, scripted, person):
    scripted(plan_reply(sum_of("sum", "2 - 1")), Says(answer="It is 1."))
    other = await run_question("More than nothing?", user=person, topic="chat.2")

    def rows():
        views = [RunView(run, "compare") for run in (replanned, other)]
        return [
            (row.left.intent, row.right.intent, row.why)
            for row in Comparison(*views).rows
            if row.left and row.right and row.left.kind in {"plan", "task"}
        ]

    pairs = await sync_to_async(rows)()
    assert pairs[0] == ("Work it out.", "Work it out.", "plan")
    assert any("sum" in left and "sum" in right for left, right, _ in pairs[1:])


async def test_child_steps_are_spans_below_their_step(replanned):
    events = [row.value async for row in replanned.events.order_by("seq")]
    course = SpanBuilder(TraceIdentity(number=1, topic="chat.1", began=replanned.started_at))

    spans = [span for event in events for span in course.take(event)]

    ids = {span.id: span.name for span in spans}
    parents = {(ids.get(span.parent, ""), span.name) for span in spans}
    assert ("task", "execute_tool calculator") in parents
    assert ("task", "evaluation") in parents
    assert ("evaluation", "invoke_agent monitor") in parents
    assert ("invoke_agent helper", "plan") in parents
    assert all(span.parent in ids for span in spans if span.name != "invoke_agent helper")


async def test_a_step_page_shows_expectation_and_result(replanned, person):
    client = Client()
    await sync_to_async(client.force_login)(person)
    check = await replanned.steps.filter(kind="evaluation").afirst()

    page = await sync_to_async(client.get)(f"/traces/{replanned.pk}/steps/{check.number}/")

    facts = [" ".join(fact.text().split()) for fact in select(page, ".planned dd")]
    assert "The result isn’t as expected. It is 0." in facts
    assert "Take 2." in facts


async def test_a_shared_page_and_a_trace_show_the_plan_without_javascript(replanned, person):
    client = Client()
    await sync_to_async(client.force_login)(person)

    page = await sync_to_async(client.get)(f"/traces/{replanned.pk}/")

    html = page.text
    assert "Plan 2 of 2" in html
    assert 'href="#step-' in html
    assert "1 of 2 done" in html
