"""Panels: all members are asked at once, and their answers are merged."""

import asyncio
import json
from collections import Counter

import pytest

from agents.engine import (
    AgentRuntime,
    FallbackStrategy,
    Guardrails,
    ModelError,
    Orchestrator,
    OutputSchema,
    Panel,
    ReActPlanner,
    ToolRegistry,
)
from agents.engine.events import EventType
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.termination import standard_policy
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel
from tests.engine.conftest import Echo, make_runtime
from tests.engine.loop.test_approval import (
    Asks,
    _reload_event,
    collect_events,
    types,
    with_decision,
)
from tests.engine.loop.test_takeover import Steady
from tests.engine.plans.plans import of, outcomes, run_to_end
from tests.sampling import one_in

SUM = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
DIFFER = {
    "groups": [["a"], ["b"]],
    "differences": ["a says 42, b says 41."],
    "heading": "Where they differed",
}
JUDGED = DIFFER | {"choice": "b", "reason": "It can be worked out."}


class Asked:
    """A model that gives the same reply to the same request, even after restarts."""

    def __init__(self, dialect, answer="", form=None, after=None):
        self.dialect = dialect
        self.answer = answer
        self.form = form
        self.after = after
        self.requests = []

    async def stream(self, **request):
        self.requests.append(request)
        if self.after is not None:
            await self.after
        is_form = "JSON Schema" in str(request["messages"][-1]["content"])
        answer = json.dumps(self.form) if is_form and self.form is not None else self.answer
        if isinstance(answer, Exception):
            raise answer
        says = answer if isinstance(answer, Says) else Says(answer=answer)
        async for chunk in ScriptedModel(says, dialect=self.dialect).stream(**request):
            yield chunk


@pytest.fixture
def panel(dialect):
    """Build a panel of members by their answers, and its own model."""

    def runtime(make, llm, tools, name, **options):
        planner = ReActPlanner(llm, "asked", dialect=dialect)
        return make_runtime(planner, tools, kind=make, name=name, **options)

    def build(members, answer="", form=None, tools=(), outputs=None, **options):
        models = {
            name: said if isinstance(said, Asked) else Asked(dialect, said, said)
            for name, said in members.items()
        }
        heads = {
            name: runtime(AgentRuntime, model, tools, name, output=(outputs or {}).get(name))
            for name, model in models.items()
        }
        asks = [Handoff(name, lambda name=name: heads[name]) for name in heads]
        return runtime(Panel, Asked(dialect, answer, form), asks, "panel", **options)

    return build


def verdict(events):
    (found,) = of(events, EventType.EVALUATION)
    return found


async def test_all_members_get_the_original_question(panel):
    heads = panel({"a": "42", "b": "42."})

    events = await run_to_end(heads, "What is ${6 * 7}?")

    assert outcomes(events) == {"a": "done", "b": "done"}
    asked = of(events, EventType.HANDOFF)
    assert {data["query"] for data in asked} == {"What is ${6 * 7}?"}
    assert events[-1].data["answer"] == "42"
    assert verdict(events)["reason"] == "All members agree."


async def test_members_work_at_the_same_time(panel, dialect):
    other_was_asked = asyncio.Event()

    class Second(Asked):
        def stream(self, **request):
            other_was_asked.set()
            return super().stream(**request)

    waits = Asked(dialect, "yes", after=asyncio.wait_for(other_was_asked.wait(), 10))
    heads = panel({"a": waits, "b": Second(dialect, "yes")})

    events = await run_to_end(heads)

    assert outcomes(events) == {"a": "done", "b": "done"}


async def test_the_majority_wins_and_the_minority_is_saved(panel):
    form = DIFFER | {"groups": [["a", "b"], ["c"]], "differences": ["c says 41."]}
    heads = panel({"a": "It is 42.", "b": "42", "c": "41"}, form=form, merge="vote")

    events = await run_to_end(heads)

    assert verdict(events)["groups"] == [["a", "b"], ["c"]]
    assert verdict(events)["reason"] == "2 of 3 agree: a, b."
    assert events[-1].data["answer"] == ("It is 42.\n\n**Where they differed**\n\n- c says 41.")


async def test_identical_answers_are_grouped_whatever_the_model_returns(panel):
    form = DIFFER | {"groups": [["a"], ["b"], ["c"]]}
    heads = panel({"a": "42", "b": "42.", "c": "41"}, form=form, merge="vote")

    events = await run_to_end(heads)

    assert verdict(events)["groups"] == [["a", "b"], ["c"]]


async def test_a_tie_is_reported_with_every_answer(panel):
    heads = panel({"a": "42", "b": "41"}, form=DIFFER, merge="vote")

    events = await run_to_end(heads)

    assert verdict(events)["chosen"] == ""
    assert verdict(events)["reason"] == "No majority: the panel gave 2 different answers."
    answer = events[-1].data["answer"]
    assert answer.startswith(
        "No majority: the panel gave 2 different answers.\n\n"
        "### a\n\n42\n\n### b\n\n41\n\n**Where they differed**"
    )
    assert events[-1].data["stopped_reason"] == "completed"


async def test_structured_answers_are_compared_by_value(panel):
    form, other = OutputSchema(SUM), {"sum": 41}
    members = {"a": {"sum": 42}, "b": {"sum": 42.0}, "c": other}
    heads = panel(members, merge="vote", outputs=dict.fromkeys("abc", form))

    events = await run_to_end(heads)

    assert heads.planner.llm.requests == []
    assert verdict(events)["groups"] == [["a", "b"], ["c"]]
    assert events[-1].data["output"] == {"sum": 42}


async def test_a_synthesis_uses_all_answers_and_their_differences(panel):
    heads = panel({"a": "42", "b": "41"}, "It is 42 (a), or 41 (b).", DIFFER)

    events = await run_to_end(heads)

    sent = str(heads.planner.llm.requests[-1]["messages"][-1]["content"])
    assert "### a\n\n42" in sent
    assert "a says 42, b says 41." in sent
    assert events[-1].data["answer"] == "It is 42 (a), or 41 (b)."
    own = [e for e in events if e.type is EventType.DELTA and "parent" not in e.data]
    assert "".join(e.data["content"] for e in own) == "It is 42 (a), or 41 (b)."


async def test_a_panel_can_have_its_own_output_schema(panel):
    heads = panel({"a": "42", "b": "42"}, form={"sum": 42}, output=OutputSchema(SUM))

    events = await run_to_end(heads)

    assert events[-1].data["output"] == {"sum": 42}


async def test_a_judge_picks_an_answer_and_says_why(panel):
    heads = panel({"a": "42", "b": "41"}, form=JUDGED, merge="judge")

    events = await run_to_end(heads)

    assert verdict(events)["chosen"] == "b"
    answer = events[-1].data["answer"]
    assert answer.startswith("41\n\n> **b**: It can be worked out.\n\n**Where they differed**")
    assert [e.agent for e in events if e.type is EventType.HANDOFF] == ["a", "b", "judge"]


async def test_without_a_verdict_every_answer_is_returned(panel):
    heads = panel({"a": "42", "b": "41"}, ModelError("Down."), merge="judge")

    events = await run_to_end(heads)

    assert verdict(events)["reason"] == "The judge didn't return a verdict."
    answer = events[-1].data["answer"]
    assert answer == "The judge didn't return a verdict.\n\n### a\n\n42\n\n### b\n\n41"


async def test_numbers_are_added_exactly_and_the_working_is_recorded(panel):
    heads = panel({"a": "It is $0.10.", "b": "$0.20", "c": "$1,000"}, merge="sum")

    events = await run_to_end(heads)

    assert heads.planner.llm.requests == []
    facts = verdict(events)["arithmetic"]
    assert facts["numbers"] == {"a": "$0.10", "b": "$0.20", "c": "$1,000"}
    assert facts["results"][0]["working"] == "0.10 + 0.20 + 1,000 = $1,000.30"
    assert events[-1].data["answer"] == "**$1,000.30**\n\n0.10 + 0.20 + 1,000 = $1,000.30"


async def test_equal_numbers_are_still_added(panel):
    events = await run_to_end(panel({"a": "42", "b": "42"}, merge="sum"))

    assert events[-1].data["answer"].startswith("**84**")


async def test_an_average_that_does_not_end_is_rounded_and_says_so(panel):
    events = await run_to_end(panel({"a": "1", "b": "1", "c": "2"}, merge="average"))

    assert verdict(events)["arithmetic"]["results"][0]["working"] == "(1 + 1 + 2) ÷ 3 ≈ 1.3333"


async def test_answers_without_a_clear_number_are_named_and_left_out(panel):
    members = {"a": "10 km", "b": "20 km", "c": "Far.", "d": ModelError("Down.")}

    events = await run_to_end(panel(members, merge="average"))

    reason = "Average of 2 answers. Left out, without a clear number: c, d."
    assert verdict(events)["reason"] == reason
    assert events[-1].data["answer"] == f"**15 km**\n\n(10 + 20) ÷ 2 = 15 km\n\n> {reason}"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"a": "10 km", "b": "6 miles"}, "The numbers have different units: km, miles."),
        ({"a": "10 km", "b": "Far."}, "Only a gave a clear number."),
        ({"a": "Near.", "b": "Far."}, "No answer has a clear number."),
    ],
)
async def test_without_comparable_numbers_a_synthesis_is_written(panel, members, why):
    events = await run_to_end(panel(members, "Both (a, b).", DIFFER, merge="sum"))

    expected = f"{why} All answers were combined into one instead."
    assert verdict(events)["reason"] == expected
    assert events[-1].data["answer"] == "Both (a, b)."


async def test_numeric_fields_of_structured_answers_are_added(panel):
    schema = {"type": "object", "properties": {"sum": {"type": "number"}}}
    members = {"a": {"sum": 0.1, "of": "x"}, "b": {"sum": 0.2, "of": "x"}}
    outputs = dict.fromkeys("ab", OutputSchema(schema))

    events = await run_to_end(panel(members, merge="sum", outputs=outputs))

    assert events[-1].data["output"] == {"sum": 0.3, "of": "x"}
    assert verdict(events)["arithmetic"]["results"][0]["working"] == "0.1 + 0.2 = 0.3"


async def test_a_failed_member_does_not_end_the_panel(panel):
    heads = panel({"a": ModelError("Down."), "b": "41"})

    events = await run_to_end(heads)

    assert outcomes(events) == {"a": "failed", "b": "done"}
    assert "Down." in verdict(events)["heads"][0]["problem"]
    assert verdict(events)["reason"] == "Only b answered."
    assert events[-1].data["answer"] == "41"


async def test_an_empty_answer_of_a_member_does_not_count(panel):
    heads = panel({"a": Says(answer="\n"), "b": "41"}, merge="vote")

    events = await run_to_end(heads)

    assert verdict(events)["heads"][0]["problem"]
    assert events[-1].data["answer"] == "41"


async def test_a_member_that_times_out_is_skipped(panel, dialect):
    slow = Asked(dialect, "42", after=asyncio.Event().wait())
    heads = panel({"a": slow, "b": "41"}, most_seconds=2.0)

    events = await run_to_end(heads)

    assert outcomes(events) == {"a": "failed", "b": "done"}
    assert events[-1].data["answer"] == "41"


async def test_when_no_member_answers_each_reason_is_listed(panel):
    heads = panel({"a": ModelError("Down."), "b": ModelError("Gone.")})

    last = (await run_to_end(heads))[-1].data

    assert last["stopped_reason"] == "error"
    assert last["detail"].startswith("No panel member could answer.")
    assert "Down." in last["detail"]
    assert "Gone." in last["detail"]


async def test_a_panel_without_members_is_an_error(panel):
    last = (await run_to_end(panel({})))[-1].data

    assert last["stopped_reason"] == "error"
    assert last["detail"] == "This panel has no members."


async def test_a_member_that_needs_approval_pauses_the_panel(panel):
    tool = Asks()
    first = {"a": "42", "b": Says.call("echo", text="x")}
    paused = await run_to_end(panel(first, tools=[tool]))
    later = panel({"a": "never asked", "b": "42"}, tools=[tool])
    more = await collect_events(later.resume(with_decision(paused)))

    assert types(paused)[-1] == "run_paused"
    assert outcomes(paused) == {"a": "done"}
    assert tool.inputs == [{"text": "x"}]
    assert verdict(more)["reason"] == "All members agree."
    assert more[-1].data["answer"] == "42"


async def test_the_token_limit_applies_to_each_answer_not_to_their_sum(panel):
    rules, words = Guardrails(max_input_tokens=60, max_output_tokens=60), "word " * 40
    heads = panel({"a": f"{words}a", "b": f"{words}b"}, form=DIFFER, merge="vote")
    heads.guardrails = rules

    events = await run_to_end(heads)

    assert verdict(events)["differences"] == DIFFER["differences"]
    assert events[-1].data["stopped_reason"] == "completed"
    assert (await run_to_end(heads, words * 2))[-1].data["stopped_reason"] == "blocked"


async def test_a_panel_over_budget_returns_the_answers_so_far(panel):
    heads = panel({"a": "42", "b": "41"}, policy=standard_policy(max_tokens=1))

    last = (await run_to_end(heads))[-1].data

    assert last["stopped_reason"] == "budget_exceeded"
    assert "### a\n\n42" in last["answer"]


async def test_a_panel_cannot_call_itself(panel):
    heads = panel({"a": "42"})
    heads.tools.register(Handoff("panel", lambda: heads))

    events = await run_to_end(heads)

    assert "This handoff would loop" in verdict(events)["heads"][1]["problem"]
    assert events[-1].data["answer"] == "42"


async def test_members_get_the_conversation(panel):
    heads = panel({"a": "Tokyo", "b": "Tokyo"})
    state_after = heads.stream("Which city?", _state_with_answers("Hello", "Hi. Ask me."))

    events = await collect_events(state_after)

    asked = of(events, EventType.HANDOFF)[0]["query"]
    assert asked.startswith("Said before:\nuser: Hello\nassistant: Hi. Ask me.")
    assert asked.endswith("Question: Which city?")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("merge", "form"),
    one_in(4, [("vote", DIFFER), ("synthesis", DIFFER), ("judge", JUDGED), ("sum", None)]),
)
async def test_a_panel_interrupted_after_any_event_has_the_same_result(panel, merge, form):
    def build():
        return panel({"a": "42", "b": "41"}, "Both (a, b).", form, [Echo()], merge=merge)

    whole = await run_to_end(build())

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        events = [*past, *await collect_events(build().resume(past))]

        _check(events)
        assert events[-1].data["answer"] == whole[-1].data["answer"], cut
        assert verdict(events)["groups"] == [["a"], ["b"]]
        assert events[-1].data["tool_calls"] == 2


@pytest.mark.slow
async def test_a_panel_can_be_a_sub_agent_and_resumes_as_one(panel, dialect):
    def build():
        heads = panel({"a": "42", "b": "41"}, "Both (a, b).", DIFFER)
        says = [Says.call("ask_panel", task="What is it?"), Says(answer="Both.")]
        planner = ReActPlanner(Steady(dialect, *says), "steady", dialect=dialect)
        tools = ToolRegistry([Handoff("panel", lambda: heads)])
        return AgentRuntime(planner, tools, Guardrails(), FallbackStrategy(), name="lead")

    whole = await run_to_end(build())

    for cut in range(1, len(whole)):
        past = [_reload_event(event) for event in whole[:cut]]
        events = [*past, *await collect_events(build().resume(past))]

        _check(events)
        assert verdict(events)["groups"] == [["a"], ["b"]]
        (answer,) = [e.data for e in events if e.agent == "panel" and "answer" in e.data][-1:]
        assert (answer["answer"], answer["tool_calls"]) == ("Both (a, b).", 2), cut


async def test_an_agent_that_is_called_planner_can_still_have_a_plan_written(dialect):
    plan = {"description": "Nothing to do", "steps": []}
    planner = ReActPlanner(Asked(dialect, "Done.", plan), "asked", dialect=dialect)
    rest = (ToolRegistry(), Guardrails(), FallbackStrategy(pause=0))
    agent = Orchestrator(planner, *rest, name="planner")

    events = await run_to_end(agent)

    assert events[-1].data["answer"] == "Done."


def _state_with_answers(*words):
    state = AgentState()
    for role, content in zip(("user", "assistant"), words, strict=True):
        state.add_message(role, content)
    return state


def _check(events):
    """Check what holds for every run's record, regardless of takeovers."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [e.type for e in events].count(EventType.RUN_FINISHED) == 1
    started = {EventType.STEP_STARTED, EventType.TOOL_CALL, EventType.TASK}
    begun = {event.data["step"] for event in events if event.type in started}
    ended = Counter(event.data["step"] for event in events if event.type is EventType.STEP)
    assert set(ended) == begun
    assert set(ended.values()) <= {1}
