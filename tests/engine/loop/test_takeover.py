"""A run resumes wherever it was interrupted: nothing is lost or done twice."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from agents.engine import (
    Guardrails,
    OutputSchema,
    ReActPlanner,
)
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.run_state import rebuild
from agents.engine.loop.termination import standard_policy
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel
from tests.engine.conftest import Echo, make_runtime
from tests.engine.loop.test_approval import _reload_event, collect_events, with_decision

HELLO = Says.call("read", "First I read.", text="one")
WRITE = Says.call("write", "Then I write.", text="two")
ANSWER = Says("Now I know.", answer="One and two.")


class Reads(Echo):
    effect = "read"


class Writes(Echo):
    effect = "at_most_once"


class Steady:
    """A model that depends only on its input, so restarts don't matter."""

    def __init__(self, dialect, *script):
        self.dialect = dialect
        self.script = script
        self.requests = []

    def stream(self, **request):
        self.requests.append(request)
        mark = "Observation:" if self.dialect == "react" else ""
        done = sum(
            str(message["content"]).count(mark) if mark else message["role"] == "tool"
            for message in request["messages"]
            if message["role"] in {"tool", "user"}
        )
        return ScriptedModel(self.script[done], dialect=self.dialect).stream(**request)


def agent(dialect, *tools, script=(HELLO, WRITE, ANSWER), name="agent", **options):
    planner = ReActPlanner(Steady(dialect, *script), "steady", dialect=dialect)
    return make_runtime(planner, tools, name=name, **options)


def check(events):
    """Check what holds for every run's record, regardless of takeovers."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [e.type for e in events].count(EventType.RUN_FINISHED) == 1
    assert events[-1].type is EventType.RUN_FINISHED
    started = {EventType.STEP_STARTED, EventType.TOOL_CALL}
    begun = {event.data["step"] for event in events if event.type in started}
    ended = Counter(event.data["step"] for event in events if event.type is EventType.STEP)
    assert set(ended) == begun
    assert set(ended.values()) <= {1}


async def test_a_run_interrupted_after_any_event_has_the_same_result(dialect):
    whole = await collect_events(agent(dialect, Reads("read"), Echo("write")).stream("Go"))

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        later = agent(dialect, Reads("read"), Echo("write"))
        events = [*past, *await collect_events(later.resume(past))]

        check(events)
        assert events[-1].data["answer"] == "One and two.", cut
        assert events[-1].data["stopped_reason"] == "completed"
        assert events[-1].data["tool_calls"] == 2


async def test_an_at_most_once_call_is_not_repeated_after_any_interruption(dialect):
    whole = await collect_events(agent(dialect, Reads("read"), Writes("write")).stream("Go"))

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        write = Writes("write")
        events = [
            *past,
            *await collect_events(agent(dialect, Reads("read"), write).resume(past)),
        ]
        had_begun = any(
            e.type is EventType.TOOL_CALL and e.data["function"]["name"] == "write"
            for e in past
        )

        if events[-1].type is EventType.RUN_PAUSED:
            assert had_begun
            assert write.inputs == []
            assert events[-2].data["why"] == "unknown"
        else:
            check(events)
            assert len(write.inputs) == (not had_begun)


@pytest.mark.parametrize(("again", "times"), [(True, 1), (False, 0)])
async def test_a_user_decides_the_outcome_of_an_interrupted_call(dialect, again, times):
    whole = await collect_events(agent(dialect, Reads("read"), Writes("write")).stream("Go"))
    calls = [at for at, event in enumerate(whole) if event.type is EventType.TOOL_CALL]
    past = whole[: calls[1] + 1]
    paused = await collect_events(agent(dialect, Reads("read"), Writes("write")).resume(past))
    asked = with_decision([*past, *paused], is_approved=again, reason="It was in the outbox.")

    write = Writes("write")
    later = agent(dialect, Reads("read"), write)
    more = await collect_events(later.resume(asked))

    check([*asked, *more])
    assert len(write.inputs) == times
    assert more[-1].data["answer"] == "One and two."
    told = str(later.planner.llm.requests[0]["messages"])
    assert ("It was in the outbox." in told) is not again


class Asks(Writes):
    needs_approval = True


async def test_the_approved_call_is_made_after_any_interruption(dialect):
    """Edited arguments are used once, or approval is requested again."""
    paused = await collect_events(agent(dialect, Reads("read"), Asks("write")).stream("Go"))
    word = with_decision(paused, arguments='{"text": "changed"}')
    whole = [
        *word,
        *await collect_events(agent(dialect, Reads("read"), Asks("write")).resume(word)),
    ]

    for cut in range(len(paused), len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        write = Asks("write")
        events = [
            *past,
            *await collect_events(agent(dialect, Reads("read"), write).resume(past)),
        ]
        if (
            events[-1].type is EventType.RUN_PAUSED
            and events[-2].type is EventType.APPROVAL_REQUESTED
        ):
            assert events[-2].data["why"] == "unknown"
            assert events[-2].data["function"]["arguments"] == '{"text": "changed"}'
            assert events[-2].data["digest"] != paused[-2].data["digest"]
            again = with_decision(events)
            later = agent(dialect, Reads("read"), write)
            events = [*again, *await collect_events(later.resume(again))]

        assert write.inputs in ([], [{"text": "changed"}])
        if events[-1].type is not EventType.RUN_PAUSED:
            check(events)


async def test_a_tool_that_changed_requires_approval_again(dialect):
    paused = await collect_events(agent(dialect, Reads("read"), Asks("write")).stream("Go"))
    other = Asks("write")
    other.reaches = "https://production.example"

    more = await collect_events(
        agent(dialect, Reads("read"), other).resume(with_decision(paused))
    )

    assert [event.type.value for event in more] == ["approval_requested", "run_paused"]
    assert other.inputs == []


async def test_a_structured_answer_survives_any_interruption(dialect):
    schema = OutputSchema({"type": "object", "properties": {"n": {"type": "integer"}}})
    script = HELLO, Says("I have it.", answer='{"n": 1}')

    def shaped():
        return agent(dialect, Reads("read"), script=script, output=schema, max_steps=2)

    whole = await collect_events(shaped().stream("Go"))
    assert whole[-1].data["output"] == {"n": 1}

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        events = [*past, *await collect_events(shaped().resume(past))]
        assert events[-1].data["output"] == {"n": 1}, cut


async def test_a_sub_agent_spends_its_callers_budget(dialect):
    helper = agent(dialect, Reads("read"), Echo("write"), name="helper")
    script = Says.call("ask_helper", task="Do it."), Says(answer="Done.")
    lead = agent(
        dialect,
        Handoff("helper", lambda: helper),
        script=script,
        policy=standard_policy(max_tokens=1),
        name="lead",
    )

    events = await collect_events(lead.stream("Go"))

    assert events[-1].data["stopped_reason"] == "budget_exceeded"
    assert len(helper.planner.llm.requests) == 0


async def test_waiting_and_downtime_do_not_count_as_run_time(dialect):
    paused = await collect_events(agent(dialect, Reads("read"), Asks("write")).stream("Go"))
    word = _later(with_decision(paused)[-1], hours=2)
    down = [*paused, word]
    resumed = _later(
        EventFactory("agent", after=len(down))(EventType.STATUS, kind="resumed", step=1),
        hours=9,
    )

    trail = rebuild([*down, resumed], EventFactory("agent"), AgentState())

    assert trail.progress.seconds < 600


def _later(event, hours):
    return replace(event, time=event.time + timedelta(hours=hours))


async def test_an_interrupted_sub_agent_resumes(dialect):
    def lead():
        helper = agent(dialect, Reads("read"), Echo("write"), name="helper")
        script = Says.call("ask_helper", task="Do it."), Says(answer="Done.")
        return agent(dialect, Handoff("helper", lambda: helper), script=script, name="lead")

    whole = await collect_events(lead().stream("Go"))

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        events = [*past, *await collect_events(lead().resume(past))]

        check(events)
        assert [event.type for event in events].count(EventType.HANDOFF_RETURN) == 1
        assert events[-1].data["answer"] == "Done."


async def test_the_question_is_checked_after_an_interruption(dialect):
    guardrails = Guardrails(blocked_patterns=["secret"])
    runtime = agent(dialect, guardrails=guardrails)
    whole = await collect_events(runtime.stream("Tell me the secret."))

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        events = [
            *past,
            *await collect_events(agent(dialect, guardrails=guardrails).resume(past)),
        ]

        assert events[-1].data["stopped_reason"] == "blocked"
        assert [e.type for e in events].count(EventType.GUARDRAIL) == 1


def test_a_finished_run_does_not_resume():
    stamp = EventFactory("agent")
    events = [
        stamp(EventType.RUN_STARTED, query="Go"),
        stamp(EventType.RUN_FINISHED, answer="", stopped_reason="completed"),
    ]

    assert rebuild(events, EventFactory("agent"), AgentState()).is_over
