import json

import pytest

from agents.engine import ReActPlanner
from agents.engine.events import Event, EventFactory, EventType
from agents.engine.loop.tool_calls.approval import Approvals, AskPersonTool
from agents.engine.plans.orchestrator import Orchestrator
from agents.engine.testing import Says, ScriptedModel
from tests.engine.conftest import Echo, make_runtime
from tests.engine.plans.plans import of, outcomes, run_to_end


@pytest.fixture
def orchestrator(dialect):
    """Build an agent that works by a plan, and check that its script was used up."""
    models = []

    def build(*script, tools=None, **options) -> Orchestrator:
        models.append(ScriptedModel(*script, dialect=dialect))
        planner = ReActPlanner(models[-1], "scripted", dialect=dialect)
        tools = [Echo()] if tools is None else tools
        return make_runtime(planner, tools, kind=Orchestrator, name="boss", **options)

    yield build
    for model in models:
        model.assert_used_up()


def plan(*steps, **more) -> Says:
    return Says(answer=json.dumps({"description": "A plan", "steps": steps, **more}))


def echo(name, text, **more):
    return {"name": name, "tool": "echo", "arguments": {"text": text}, **more}


def finds(is_met, reason="", feedback="") -> Says:
    return Says(answer=json.dumps({"is_met": is_met, "reason": reason, "feedback": feedback}))


async def test_a_plan_is_written_executed_and_answered(orchestrator):
    steps = [echo("a", "1"), echo("b", "${steps.a.output}2")]
    boss = orchestrator(plan(*steps), Says(answer="12."))

    events = await run_to_end(boss, "What is it?")

    assert outcomes(events) == {"a": "done", "b": "done"}
    assert events[-1].data["answer"] == "12."
    assert events[-1].data["stopped_reason"] == "completed"
    asked = boss.planner.llm.requests[-1]["messages"]
    assert any("## b (done)\n12" in str(message["content"]) for message in asked)


async def test_an_agent_can_be_named_planner(orchestrator):
    boss = orchestrator(
        plan(echo("a", "1", expected_outcome="1")), finds(True), Says(answer="1")
    )
    boss.name = "planner"

    assert (await run_to_end(boss))[-1].data["stopped_reason"] == "completed"


async def test_an_unmet_expectation_leads_to_a_new_plan(orchestrator):
    boss = orchestrator(
        plan(echo("a", "same"), echo("b", "wrong", expected_outcome="the right thing")),
        finds(False, "It says wrong.", "Say right."),
        plan(echo("a", "same"), echo("b", "right", expected_outcome="the right thing")),
        finds(True, "It says right."),
        Says(answer="Right."),
    )

    events = await run_to_end(boss)

    versions = of(events, EventType.PLAN)
    assert [version["plan"] for version in versions] == [1, 2]
    assert versions[1]["changes"] == {"a": "kept", "b": "changed"}
    assert "It says wrong. Say right." in versions[1]["feedback"][0]
    assert [e["is_met"] for e in of(events, EventType.EVALUATION)] == [False, True]
    assert events[-1].data["answer"] == "Right."
    assert [i["text"] for i in boss.tools.get("echo").inputs] == ["same", "wrong", "right"]
    replanned = str(boss.planner.llm.requests[2]["messages"])
    assert "It says wrong." in replanned
    assert "“a” gave: same" in replanned


async def test_repeated_failures_end_the_run_with_a_reason(orchestrator):
    attempt = [plan(echo("a", "x", expected_outcome="y")), finds(False, "It is x.")]
    boss = orchestrator(*attempt, *attempt, max_replans=1)

    events = await run_to_end(boss)

    assert events[-1].data["stopped_reason"] == "cancelled"
    assert events[-1].data["detail"].startswith("Gave up after 2 plans.")
    assert "It is x." in events[-1].data["detail"]


async def test_an_impossible_task_is_cancelled_with_the_planners_reason(orchestrator):
    boss = orchestrator(plan(cancel="There is no tool for e-mail."))

    events = await run_to_end(boss)

    assert events[-1].data["stopped_reason"] == "cancelled"
    assert events[-1].data["detail"] == "There is no tool for e-mail."


async def test_a_question_that_needs_no_steps_is_answered_directly(orchestrator):
    events = await run_to_end(orchestrator(plan(), Says(answer="Hello.")), "Hi")

    assert events[-1].data["answer"] == "Hello."
    assert not of(events, EventType.TOOL_CALL)


async def test_an_invalid_plan_is_rewritten(orchestrator):
    unknown = {"name": "a", "tool": "ecko", "arguments": {}}
    circle = [echo("a", "1", depends_on=["b"]), echo("b", "2", depends_on=["a"])]
    boss = orchestrator(plan(unknown), plan(*circle), plan(echo("a", "1")), Says(answer="1"))

    events = await run_to_end(boss)

    rows = [e for e in of(events, EventType.STEP) if e["kind"] == "plan"]
    assert [row["status"] for row in rows] == ["failed", "failed", "done"]
    assert "echo" in rows[0]["reason"]
    assert "a" in rows[1]["reason"]
    assert events[-1].data["stopped_reason"] == "completed"


async def test_a_run_without_a_valid_plan_ends_with_an_error_message(orchestrator):
    wrong = [plan({"name": "a", "tool": "nothing"}) for _ in range(3)]

    events = await run_to_end(orchestrator(*wrong))

    assert events[-1].data["stopped_reason"] == "error"
    assert events[-1].data["detail"].startswith("The model didn't write a valid plan:")


async def test_a_user_can_edit_the_plan_before_execution(orchestrator):
    boss = orchestrator(
        plan(echo("a", "1")), Says(answer="2."), capabilities=[Approvals(shows_plan=True)]
    )
    events = await run_to_end(boss)
    assert events[-1].type is EventType.RUN_PAUSED
    assert not outcomes(events)
    question = of(events, EventType.APPROVAL_REQUESTED)[0]

    edited = json.dumps({"description": "Mine", "steps": [echo("a", "2")]})
    gone_on = await _went_on(boss, events, word(events, arguments=edited))

    assert question["why"] == "plan"
    assert of(gone_on, EventType.PLAN)[0]["by"] == "ada"
    assert boss.tools.get("echo").inputs == [{"text": "2"}]
    assert gone_on[-1].data["answer"] == "2."


async def test_a_rejected_plan_is_not_executed(orchestrator):
    boss = orchestrator(plan(echo("a", "1")), capabilities=[Approvals(shows_plan=True)])
    events = await run_to_end(boss)

    gone_on = await _went_on(boss, events, word(events, is_approved=False, reason="Too dear."))

    assert (gone_on[-1].data["stopped_reason"], gone_on[-1].data["detail"]) == (
        "cancelled",
        "Too dear.",
    )


async def _went_on(boss, events, said):
    return [event async for event in boss.resume([*events, said])]


def word(events, *, is_approved=True, arguments=None, reason="") -> Event:
    asked = of(events, EventType.APPROVAL_REQUESTED)[-1]
    facts = {"id": asked["id"], "step": asked["step"], "is_approved": is_approved}
    said = {"arguments": arguments, "reason": reason, "by": 1, "by_name": "ada"}
    return EventFactory("boss", after=events[-1].seq)(
        EventType.APPROVAL_RESOLVED, **facts, **said
    )


class Knowing(ScriptedModel):
    """A model that gives the same reply to the same request, even after a restart."""

    async def stream(self, **request):
        self.script = [self._says(str(request["messages"]))]
        async for chunk in super().stream(**request):
            yield chunk

    def _says(self, asked: str) -> Says:
        b = {"expected_outcome": "3", "parallel": True}
        if "You plan work" in asked:
            text = "3" if "A plan that was tried" in asked else "2"
            return plan(echo("a", "1"), echo("b", text, **b))
        if "You check the results" in asked:
            is_met = "Result:\\n3" in asked
            return finds(is_met, "It is 3." if is_met else "It is 2.", "Make it 3.")
        return Says(answer="1 and 3.")


@pytest.mark.slow
async def test_a_planned_run_interrupted_after_any_event_has_the_same_result(
    orchestrator, dialect
):
    def boss():
        agent = orchestrator()
        agent.planner.llm = Knowing(dialect=dialect)
        return agent

    whole = await run_to_end(boss())
    assert [e["plan"] for e in of(whole, EventType.PLAN)] == [1, 2]

    for at in range(1, len(whole)):
        events = [*whole[:at], *[e async for e in boss().resume(whole[:at])]]
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-1].data["answer"] == "1 and 3.", at
        assert outcomes(events) == outcomes(whole)
        assert [e["plan"] for e in of(events, EventType.PLAN)] == [1, 2], at
        ends = [e["step"] for e in of(events, EventType.STEP)]
        assert len(ends) == len(set(ends)), f"a row was ended twice after {at}"
        begun = {e["step"] for e in of(events, EventType.TASK)}
        assert begun <= set(ends), f"a row was left open after {at}"
        kept = [e for e in of(events, EventType.TASK) if e["name"] == "a"]
        assert len(kept) == 1, f"what was done was done again after {at}"


async def test_a_new_plan_reuses_finished_steps(orchestrator):
    boss = orchestrator(
        plan(echo("a", "1"), echo("b", "2", expected_outcome="3")),
        finds(False, "It is 2."),
        plan(echo("a", "1"), echo("b", "3", depends_on=["a"])),
        Says(answer="3."),
    )

    await run_to_end(boss)

    assert [i["text"] for i in boss.tools.get("echo").inputs] == ["1", "2", "3"]


async def test_a_step_is_rerun_when_a_referenced_output_changed(orchestrator):
    total = echo("sum", "sum of ${steps.fetch.output}")
    boss = orchestrator(
        plan(echo("fetch", "2023"), total, echo("x", "bad", depends_on=["sum"], retry=0,
                                                 expected_outcome="good")),
        finds(False, "Fetch 2024."),
        plan(echo("fetch", "2024"), total),
        Says(answer="Done."),
    )  # fmt: skip

    events = await run_to_end(boss)

    assert of(events, EventType.PLAN)[1]["changes"]["sum"] == "changed"
    assert boss.tools.get("echo").inputs[-1] == {"text": "sum of 2024"}


async def test_a_plan_rejection_counts_after_plan_approval_is_switched_off(orchestrator):
    boss = orchestrator(plan(echo("a", "1")), capabilities=[Approvals(shows_plan=True)])
    events = await run_to_end(boss)
    boss.approvals.shows_plan = False

    gone_on = await _went_on(boss, events, word(events, is_approved=False, reason="Never."))

    assert gone_on[-1].data["detail"] == "Never."
    assert not boss.tools.get("echo").inputs


async def test_a_model_plan_asks_an_expert_only_after_the_user_approves_sharing(
    orchestrator,
):
    asks = {"name": "law", "ask": "May we?", "role": "LEGAL", "approves": True}
    boss = orchestrator(plan(asks), tools=[AskPersonTool(["Legal"])], people={"legal"})

    events = await run_to_end(boss)

    [asked] = of(events, EventType.APPROVAL_REQUESTED)
    assert (asked["why"], asked["role"]) == ("sharing", "")
    [written] = of(events, EventType.PLAN)
    assert "approves" not in written["steps"][0]


async def test_a_model_plan_cannot_ask_other_people(orchestrator):
    asks = {"name": "all", "ask": "The key is sk-1. Is it?", "role": "person"}
    script = [plan(asks)] * 3
    boss = orchestrator(*script, tools=[AskPersonTool(["Legal"])], people={"legal"})

    events = await run_to_end(boss)

    assert of(events, EventType.APPROVAL_REQUESTED) == []
    assert events[-1].data["stopped_reason"] == "error"
