"""Examples: rerun without side effects, and compared with the recording."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.engine.loop import RecordedCall, RecordedCalls
from agents.engine.testing import Says
from agents.models import Agent, Approval, AuditEntry, ToolRegistration
from agents.review.annotations import examples
from agents.review.annotations.similarity import text_similarity
from agents.review.models import Example
from agents.runs import approvals
from agents.runs.approvals import Decision
from tests.conftest import as_user, run_question
from tests.review.experiments.conftest import results_of, run_set
from tests.runs.test_plans import plan_reply, sum_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

SUM = Says.call("calculator", expression="6 * 7")


async def save_example(reviewer, run, name="The sum", expected=None):
    expected = run.answer if expected is None else expected
    return await sync_to_async(examples.save)(reviewer, run, name, expected)


async def evaluate(example):
    """Return the result of an experiment with this example."""
    experiment = await run_set(example.example_set)
    (result,) = await results_of(experiment)
    return result


async def test_saving_another_users_run_is_audited_and_saving_an_own_one_is_not(
    reviewer, person
):
    theirs = await run_question("6 * 7?", user=person)
    example = await save_example(reviewer, theirs)
    await sync_to_async(examples.save)(
        reviewer, await run_question("7 * 7?", user=reviewer, topic="b"), "own", ""
    )

    entry = await AuditEntry.objects.aget(action="review.example")
    assert entry.subject == f"run:{theirs.pk}"
    assert entry.detail == {"example": example.pk}


async def test_an_example_is_saved_with_its_tool_results(scripted, reviewer):
    scripted(SUM, Says(answer="It is 42."))

    example = await save_example(reviewer, await run_question("6 * 7?", history=[]))

    assert (example.question, example.expected) == ("6 * 7?", "It is 42.")
    assert example.observations == [
        {
            "tool": "calculator",
            "arguments": {"expression": "6 * 7"},
            "observation": "42",
            "is_error": False,
        }
    ]


async def test_tools_are_answered_from_the_recording(scripted, reviewer):
    scripted(SUM, Says(answer="It is 42."))
    example = await save_example(reviewer, await run_question("6 * 7?"))
    example.observations[0]["observation"] = "forty-two, as recorded"
    await example.asave()
    model = scripted(SUM, Says(answer="It is 42."))

    trial = await evaluate(example)

    assert model.requests[1]["messages"][-1]["content"] == "forty-two, as recorded"
    assert trial.score == 1.0


async def test_repeated_calls_get_their_recorded_results_in_order(scripted):
    rows = [("one", False), ("Error: two", True)]
    tape = RecordedCalls(
        RecordedCall(tool="t", arguments={"b": 1, "a": 2}, observation=text, is_error=wrong)
        for text, wrong in rows
    )

    said = [tape.answer("t", {"a": 2, "b": 1}) for _ in range(3)]

    assert [result.text for result in said] == ["one", "Error: two", "Error: two"]


async def test_an_evaluation_needs_no_approval(scripted, reviewer):
    scripted(SUM, Says(answer="It is 42."))
    example = await save_example(reviewer, await run_question("6 * 7?"))
    await Agent.objects.aupdate(auto_execute_tools=False)
    await ToolRegistration.objects.aupdate(approval="always")
    scripted(SUM, Says(answer="It is 42."))

    trial = await evaluate(example)

    assert trial.score == 1.0


async def test_an_evaluation_needs_no_plan_approval(scripted, reviewer):
    await Agent.objects.aupdate(mode="plan")
    said = plan_reply(sum_of("sum", "6 * 7")), Says(answer="It is 42.")
    scripted(*said)
    example = await save_example(reviewer, await run_question("6 * 7?"))
    await Agent.objects.aupdate(shows_plan=True)
    scripted(*said)

    trial = await evaluate(example)

    assert (trial.run.answer, trial.score) == ("It is 42.", 1.0)


ASK = {"name": "agree", "ask": "May we?"}


@pytest.fixture
async def agreed(scripted, reviewer, person):
    """An example in which a plan asked a person, who approved."""
    await Agent.objects.aupdate(mode="plan")
    scripted(plan_reply(ASK), Says(answer="We may."))
    run = await run_question("May we?", user=person)
    question = await Approval.objects.aget(run=run)
    word = Decision(digest=question.digest, is_approved=True, reason="Why not.")
    await approvals.decide(person, question.pk, word)
    await runs.wait(run)
    await run.arefresh_from_db()
    return await save_example(reviewer, run)


async def test_recorded_user_answers_are_repeated(agreed, scripted):
    model = scripted(plan_reply(ASK), Says(answer="We may."))

    trial = await evaluate(agreed)

    assert [row["tool"] for row in agreed.observations] == ["ask_person"]
    assert "Why not." in str(model.requests[1]["messages"])
    assert (trial.score, trial.divergence) == (1.0, None)
    assert await Approval.objects.acount() == 1


async def test_the_planner_of_an_evaluation_knows_the_experts(agreed, scripted):
    model = scripted(plan_reply(ASK), Says(answer="We may."))

    await evaluate(agreed)

    assert "ask_person" not in str(model.requests[0])


async def test_an_unrecorded_question_stops_the_run(agreed, scripted):
    scripted(plan_reply({**ASK, "ask": "Really?"}))

    trial = await evaluate(agreed)

    assert trial.state == "diverged"
    assert "Really?" in trial.divergence["made"]


async def test_sub_agents_run_with_their_recorded_tools(reviewer):
    helper = await Agent.objects.aget()
    lead = await Agent.objects.acreate(name="lead")
    await lead.handoffs.aadd(helper)
    await Agent.objects.filter(pk=helper.pk).aupdate(is_default=False)
    await Agent.objects.filter(pk=lead.pk).aupdate(is_default=True)
    example = await save_example(reviewer, await run_question("Ask helper: what is 6 * 7?"))

    trial = await evaluate(example)

    assert [row["tool"] for row in example.observations] == ["calculator"]
    assert (trial.score, trial.divergence) == (1.0, None)


async def test_a_failed_evaluation_scores_zero_with_a_reason(scripted, reviewer):
    scripted(SUM, Says(answer="It is 42."))
    example = await save_example(reviewer, await run_question("6 * 7?"))
    scripted(*(Says.call("calculator", expression="6 * 7") for _ in range(3)))

    trial = await evaluate(example)

    assert trial.score == 0.0
    assert trial.problem


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("It is **42**.", "it is 42", 1.0, 1.0),
        ("合計は４２です。", "合計は42です", 1.0, 1.0),
        ("合計は42です。", "合計は41です。", 0.7, 0.95),
        ("The sum is 3.5.", "The sum is 3.6.", 0.5, 0.9),
        ("Completely different words", "No such thing at all", 0.0, 0.1),
        ("売上は増えました", "天気がよい", 0.0, 0.3),
        ("a b c", "", 0.0, 0.0),
        ("", "", 1.0, 1.0),
        ("!!", "??", 0.0, 0.0),
        ("word " * 4_000, "word " * 3_999 + "end", 0.99, 0.9999),
    ],
)
def test_the_similarity_of_answers_matches_human_judgement(one, other, least, most):
    assert least <= text_similarity(one, other) <= most
    assert text_similarity(one, other) == pytest.approx(text_similarity(other, one), abs=0.1)


def test_the_scores_are_in_the_console(administrator):
    Example.objects.create(name="Sum", agent_name="helper", question="6 * 7", score=0.5)
    client = as_user(administrator)

    assert "0.5" in client.get("/admin/review/example/").text
