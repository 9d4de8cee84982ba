"""Runs by a plan: the progress is the same live and afterwards."""

import json
import re

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.access.masking import Masker
from agents.engine.events import EventFactory, EventType
from agents.engine.testing import Says
from agents.models import AgentStep
from agents.runs import event_store
from agents.web.presentation import RunView
from agents.web.presentation.live_run import LiveRunView
from tests.conftest import run_question
from tests.review.test_replay import apply_again, compare, plain

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]


def plan_reply(*steps, description="Work it out.", **more):
    """Return a model's reply that writes a plan."""
    return Says(answer=json.dumps({"description": description, "steps": steps, **more}))


def sum_of(name, expression, **more):
    return {"name": name, "tool": "calculator", "arguments": {"expression": expression}, **more}


def evaluation_reply(is_met, reason="", feedback=""):
    found = {"is_met": is_met, "reason": reason, "feedback": feedback}
    return Says(answer=json.dumps(found))


DOUBLE = sum_of("double", "${steps.sum.output} * 2", depends_on=["sum"])


@pytest.fixture
def planner(agent):
    agent.mode = "plan"
    agent.save()
    return agent


async def card(run, **about):
    return await sync_to_async(LiveRunView(run.pk, **about).snapshot)()


async def test_a_plan_is_shown_with_its_progress_and_a_link_to_each_step(
    planner, scripted, person
):
    scripted(plan_reply(sum_of("sum", "6 * 7"), DOUBLE), Says(answer="It is 84."))

    run = await run_question("Twice six times seven?", user=person)

    html = await card(run)
    task = await AgentStep.objects.aget(run=run, kind="task", action="double")
    assert run.status == "completed", run.detail
    assert '<progress max="2" value="2"' in html
    assert "2 of 2 done" in html
    assert f'href="#step-{run.pk}-{task.number}"' in html
    assert "Work it out." in html


async def test_a_failed_plan_is_shown_with_its_successor(planner, scripted, person):
    first = [sum_of("sum", "6 * 7"), sum_of("last", "1 - 1", expected_outcome="More than 0.")]
    second = [sum_of("sum", "6 * 7"), sum_of("last", "2 - 1", expected_outcome="More than 0.")]
    scripted(
        plan_reply(*first),
        evaluation_reply(False, "It is 0.", "Take 2."),
        plan_reply(*second, description="Do it better."),
        evaluation_reply(True, "It is 1."),
        Says(answer="It is 1."),
    )

    run = await run_question("More than nothing?", user=person)

    html = await card(run)
    checks = [step async for step in run.steps.filter(kind="evaluation").order_by("number")]
    kept = await run.steps.aget(kind="task", action="sum")
    assert "Plan 2 of 2" in html
    assert "1 changed, 1 unchanged" in html
    assert "2 of 2 done" in html
    assert "Why the plan changed" in html
    assert "Plan 1 of 2 · 1 of 2 done · 1 failed" in " ".join(html.split())
    assert "reused from plan 1" in html
    assert f'href="#step-{run.pk}-{kept.number}"' in html
    assert [step.action_input["is_met"] for step in checks] == [False, True]
    assert "Not as expected: It is 0." in html
    assert "As expected: It is 1." in html


async def test_loop_items_are_collapsed_in_a_chat_and_expanded_in_the_trace(
    planner, scripted, person
):
    each = sum_of("each", "${item} * 2", for_each=list(range(30)))
    scripted(plan_reply(each), Says(answer="Done."))

    run = await run_question("Double them all.", user=person)

    chat, event_store = await card(run), await card(run, place="trace")
    assert 'aria-label="each: done · calculator · 30 of 30 items' in chat
    assert chat.count('data-kind="task"') == 1
    assert "each[7]" not in chat
    assert "View each item in the trace." in chat
    assert "60 more rows in the trace" in chat
    assert event_store.count('data-kind="task"') > 30


async def test_plan_and_check_data_is_not_streamed_as_the_answer(planner, scripted, person):
    plan = plan_reply(sum_of("sum", "6 * 7", expected_outcome="It is 42."))
    scripted(plan, evaluation_reply(True, "It is 42."), Says(answer="It is 42."))

    run = await run_question("Six times seven?", user=person)

    def live():
        return [plain(page.root) for _, _, page in apply_again(run, "chat")]

    rows = {s.agent_name: s for s in await sync_to_async(lambda: RunView(run).steps)() if s.job}
    assert {name: (row.kind_label, row.intent) for name, row in rows.items()} == {
        "planner": ("Thought", "Writing the plan"),
        "monitor": ("Thought", "Checking the result"),
    }
    words = re.findall(r"live-thought[^>]*>([^<]+)", "".join(await sync_to_async(live)()))
    assert not any("{" in text for text in words)


async def test_a_step_that_is_skipped_says_why(planner, scripted, person):
    rescue = sum_of("rescue", "0", depends_on=["sum"], condition="failure")
    scripted(plan_reply(sum_of("sum", "6 * 7"), rescue), Says(answer="42"))

    run = await run_question("Six times seven?", user=person)

    html = await card(run)
    assert "rescue · No previous step failed." in html
    assert "1 of 2 done" in html
    assert "1 skipped" in html


async def test_an_impossible_plan_ends_with_its_reason(planner, scripted, person):
    scripted(plan_reply(cancel="There are no such figures."))

    run = await run_question("What will it be in 2090?", user=person)

    html = await card(run)
    assert run.stopped_reason == "cancelled"
    assert "Stopped. There are no such figures." in html


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["chat", "trace"])
async def test_every_replayed_moment_of_a_plan_equals_the_live_page(
    place, planner, scripted, person, monkeypatch
):
    monkeypatch.setattr(LiveRunView, "rest", 0)
    each = sum_of("each", "${item} * 2", for_each=[1, 2], parallel=True)
    scripted(
        plan_reply(sum_of("sum", "1 - 1", expected_outcome="More than 0."), each),
        evaluation_reply(False, "It is 0.", "Take 2."),
        plan_reply(sum_of("sum", "2 - 1"), each),
        Says(answer="Done."),
    )

    run = await run_question("Step by step.", user=person)

    assert run.status == "completed", run.detail
    assert await sync_to_async(compare)(run, place) > 40


async def test_names_in_a_plan_are_masked_without_permission(planner, scripted, person):
    scripted(plan_reply(sum_of("for ada@example.org", "6 * 7")), Says(answer="42"))

    run = await run_question("Six times seven?", user=person)

    html = await card(run, place="trace", masker=Masker())
    assert "ada@example.org" not in html
    assert "1 of 1 done" in html


@pytest.mark.thorough
async def test_a_plan_of_a_thousand_steps_is_bars_and_not_rendered_at_every_event(
    agent, monkeypatch
):
    monkeypatch.setattr(LiveRunView, "rest", 1_000_000)
    run = await sync_to_async(runs.prepare)(query="Much", topic="chat.1", agent=agent)
    page, stamp = LiveRunView(run.pk), EventFactory("flow")
    steps = [{"name": f"s{n}", "tool": "calculator"} for n in range(1000)]
    about = {"step": 1, "turn": 1, "plan": 1, "kind": "plan"}
    told = {"description": "", "steps": steps, "parameters": {}, "by": "", "changes": {}}
    events = [
        stamp(EventType.TASK, **about, name="plan", work="plan"),
        stamp(EventType.PLAN, **about, **told, feedback=[]),
    ]
    for n in range(1000):
        task = {"step": n + 2, "turn": 1, "plan": 1, "kind": "task"}
        events.append(
            stamp(EventType.TASK, **task, name=f"s{n}", work="tool", what="calculator")
        )

    frames = await sync_to_async(_watch_frames)(run, page, events)

    cards = [html for html in frames if f'id="plan-{run.pk}"' in html]
    assert len(cards) == 1
    assert 'class="bars"' in cards[0]
    assert sum(html.count('data-kind="task"') for html in frames) < 250
    assert "801 more rows in the trace" in frames[-1]
    assert page.is_owed
    assert "1000 running" in await sync_to_async(page.deferred_plan)()


def _watch_frames(run, page, events):
    page.begin(run)
    frames = []
    for at in range(0, len(events), 10):
        batch = events[at : at + 10]
        event_store.save([(run.pk, event) for event in batch])
        frames.append(page.changes([event.to_dict() for event in batch]))
    return frames
