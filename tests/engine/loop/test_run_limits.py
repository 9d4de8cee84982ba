"""A run at its limit asks: raise it once, finish with what there is, or stop."""

import json

import pytest

from agents.engine import (
    Event,
    ReActPlanner,
)
from agents.engine.errors import QuotaExceeded
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.termination import standard_policy
from agents.engine.testing import Says, ScriptedModel
from tests.engine.conftest import Echo, make_runtime
from tests.engine.plans.plans import of, step, workflow

CALL, OTHER = Says.call("echo", text="one"), Says.call("echo", text="two")
DONE = Says(answer="Done.")


class Metered(ScriptedModel):
    """A scripted model of which each call uses 100 tokens and a cent."""

    async def stream(self, **request):
        async for chunk in super().stream(**request):
            yield chunk
        used = {"prompt_tokens": 90, "completion_tokens": 10, "cost": 0.01}
        yield {"choices": [], "usage": used}


def runtime(*script, tools=None, name="agent", most_times=3, max_steps=10, **limits):
    model = Metered(*script)
    policy = standard_policy(owner=name, most_times=most_times, **limits)
    return make_runtime(
        ReActPlanner(model, "scripted"),
        [Echo()] if tools is None else tools,
        max_steps=max_steps,
        policy=policy,
        name=name,
    )


async def collect(events):
    return [event async for event in events]


def decided(events, action):
    """Return the events as loaded from a database, with a decision about the last request."""
    asked = [event for event in events if event.type is EventType.APPROVAL_REQUESTED][-1]
    stamp = EventFactory(asked.agent, after=events[-1].seq)
    stamp.parent = asked.data.get("parent")
    about = {"id": asked.data["id"], "step": asked.data["step"], "arguments": None}
    verdict = {"is_approved": action == "raise", "action": action, "why": "budget"}
    word = stamp(EventType.APPROVAL_RESOLVED, **about, **verdict, reason="", by=1, by_name="a")
    return [Event.from_dict(json.loads(json.dumps(e.to_dict()))) for e in [*events, word]]


async def test_before_a_call_that_would_pass_the_limit_the_run_asks():
    events = await collect(runtime(CALL, max_tokens=150).stream("Go."))

    asked = events[-2].data
    assert [event.type for event in events[-2:]] == ["approval_requested", "run_paused"]
    assert (asked["why"], asked["measure"], asked["limit_of"]) == ("budget", "tokens", "agent")
    assert (asked["limit"], asked["spent"], asked["wanted"]) == (150, 100, 100)
    assert (asked["raised"], asked["role"]) == (300, "")
    assert not of(events, EventType.TOOL_CALL)


async def test_a_raised_limit_lets_the_run_continue_where_it_was():
    paused = await collect(runtime(CALL, max_tokens=150).stream("Go."))

    more = await collect(runtime(DONE, max_tokens=150).resume(decided(paused, "raise")))

    assert [event.type for event in more[:2]] == ["step", "tool_call"]
    assert (more[0].data["kind"], more[0].data["status"]) == ("budget", "done")
    assert more[-1].data["answer"] == "Done."
    assert more[-1].data["usage"]["total_tokens"] == 200


async def test_a_limit_that_is_reached_again_is_asked_about_again_with_what_was_raised():
    limited = {"max_tokens": 150}
    first = await collect(runtime(CALL, **limited).stream("Go."))
    second = decided(first, "raise")
    second += await collect(runtime(OTHER, CALL, **limited).resume(second))

    asked = second[-2].data
    assert (asked["limit"], asked["spent"], asked["raised"]) == (300, 300, 450)


async def test_finishing_asks_the_model_once_more_without_tools():
    paused = await collect(runtime(CALL, max_tokens=150).stream("Go."))
    later = runtime(DONE, max_tokens=150, max_steps=1)

    more = await collect(later.resume(decided(paused, "finish")))

    request = later.planner.llm.requests[-1]
    assert not request.get("tools")
    assert "budget of this run is used up" in request["messages"][-1]["content"]
    assert more[-1].data["answer"] == "Done."
    assert more[-1].data["detail"] == "The run reached its token limit (150 tokens)."
    unmade = [data for data in of(more, EventType.STEP) if "call" in data]
    assert [data["status"] for data in unmade] == ["unstarted"]


async def test_a_model_that_only_wants_tools_when_finishing_ends_at_the_limit():
    paused = await collect(runtime(CALL, max_tokens=150).stream("Go."))

    more = await collect(runtime(CALL, max_tokens=150).resume(decided(paused, "finish")))

    assert more[-1].data["stopped_reason"] == "budget_exceeded"


async def test_stopping_ends_the_run_without_another_call():
    paused = await collect(runtime(CALL, max_tokens=150).stream("Go."))

    more = await collect(runtime(max_tokens=150).resume(decided(paused, "stop")))

    assert more[-1].data["stopped_reason"] == "cancelled"
    assert "token limit" in more[-1].data["detail"]


async def test_a_run_that_may_not_ask_ends_as_before():
    events = await collect(runtime(CALL, max_tokens=100, most_times=0).stream("Go."))

    assert events[-1].data["stopped_reason"] == "budget_exceeded"


async def test_more_than_the_user_may_raise_is_for_approvers():
    events = await collect(runtime(CALL, max_tokens=20).stream("Go."))

    assert events[-2].data["role"] == "raise_budgets"
    assert events[-2].data["raised"] == 200  # so that the next call fits


@pytest.mark.parametrize("action", ["raise", "finish"])
async def test_a_run_cut_after_any_event_since_the_decision_ends_in_the_same_way(action):
    limited = {"max_tokens": 150}
    paused = await collect(runtime(CALL, **limited).stream("Go."))
    whole = decided(paused, action)
    since = len(whole)
    whole += await collect(runtime(DONE, **limited).resume(whole))

    for cut in range(since, len(whole)):
        kept = whole[:cut]
        ended = [*kept, *await collect(runtime(DONE, **limited).resume(kept))]

        rows = [data["kind"] for data in of(ended, EventType.STEP)]
        unmade = [data for data in of(ended, EventType.STEP) if "call" in data]
        assert ended[-1].data["answer"] == "Done."
        assert len(of(ended, EventType.APPROVAL_REQUESTED)) == 1
        assert rows.count("budget") == 1
        assert len(unmade) == (action == "finish")


async def test_a_crash_between_request_and_pause_does_not_ask_twice():
    paused = await collect(runtime(CALL, max_tokens=150).stream("Go."))

    more = await collect(runtime(max_tokens=150).resume(paused[:-1]))

    assert [event.type for event in more] == ["status", "run_paused"]


async def test_a_limit_across_runs_ends_the_run_with_its_sentence_and_keeps_what_was_done():
    refused = QuotaExceeded("You've reached your limit.", advice="It resets tomorrow.")

    events = await collect(runtime(CALL, refused).stream("Go."))

    last = events[-1].data
    assert last["stopped_reason"] == "budget_exceeded"
    assert (last["detail"], last["advice"]) == (
        "You've reached your limit.",
        "It resets tomorrow.",
    )
    assert of(events, EventType.TOOL_RESPONSE)[0]["content"] == "one"


async def test_a_handoff_spends_the_callers_budget_and_the_decision_is_for_both():
    def team(*script, helper=()):
        def build():
            return runtime(*helper, name="helper", max_tokens=10_000)

        handoff = Handoff("helper", build)
        return runtime(*script, tools=[handoff], name="caller", max_tokens=250)

    asks = Says.call("ask_helper", task="Say one.")
    paused = await collect(team(asks, helper=[CALL]).stream("Go."))
    assert paused[-2].data["limit_of"] == "caller"
    assert paused[-2].data["parent"]

    end = team(DONE, helper=[Says(answer="Partly.")])
    more = await collect(end.resume(decided(paused, "finish")))

    assert len(of(more, EventType.APPROVAL_REQUESTED)) == 0
    assert of(more, EventType.HANDOFF_RETURN)[-1]["answer"] == "Partly."
    assert more[-1].data["answer"] == "Done."


async def test_parallel_steps_of_a_plan_ask_once_and_all_continue():
    def handoff(name):
        says = Says(answer=f"{name}!")
        return Handoff(name, lambda: runtime(says, tools=[], name=name), is_first=True)

    def flow():
        handoffs = [handoff(name) for name in "abc"]
        steps = [
            step(name, "", *before, agent=name, arguments={"task": "Go."}, parallel=True)
            for name, before in (("a", ()), ("b", ("a",)), ("c", ("a",)))
        ]
        policy = standard_policy(owner="flow", most_times=3, max_tokens=120)
        return workflow(*steps, tools=handoffs, policy=policy)

    paused = await collect(flow().stream("Go."))
    more = await collect(flow().resume(decided(paused, "raise")))

    assert len(of(paused, EventType.APPROVAL_REQUESTED)) == 1
    # Both fit after the first raise, as the limit is checked before a step starts.
    assert more[-1].type is EventType.RUN_FINISHED
    assert "b!" in more[-1].data["answer"]
    assert "c!" in more[-1].data["answer"]


async def test_a_stopped_plan_keeps_what_its_steps_returned():
    def flow():
        helper = Handoff("a", lambda: runtime(DONE, tools=[], name="a"), is_first=True)
        steps = [
            step("first", "", agent="a", arguments={"task": "Go."}),
            step("other", "", agent="a", arguments={"task": "Go."}),
            step("last", "", "first", agent="a", arguments={"task": "Go."}),
        ]
        policy = standard_policy(owner="flow", most_times=3, max_tokens=250)
        return workflow(*steps, tools=[helper], policy=policy)

    paused = await collect(flow().stream("Go."))
    more = await collect(flow().resume(decided(paused, "stop")))

    assert more[-1].data["stopped_reason"] == "cancelled"
    assert "Done." in more[-1].data["answer"]
