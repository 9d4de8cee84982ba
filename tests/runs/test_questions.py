"""Questions to people: the run waits, an expert answers, and it continues."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents import runs
from agents.engine.events import EventFactory, EventType
from agents.engine.testing import Says
from agents.models import Approval, Run, ToolRegistration
from agents.runs import event_store
from agents.runs.approvals import DecisionRejected
from tests.conftest import as_async_user, run_question
from tests.runs.conftest import decide, finish_run
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

SECRET = "the takeover of Kraken Inc."
QUESTION = "May we store\naddresses for ten years?"
ASK = Says.call("ask_person", "A lawyer knows.", question=QUESTION, role="Legal")
DONE = Says(answer="No: five years.")


@pytest.fixture
def legal():
    return Group.objects.create(name="Legal")


@pytest.fixture
def expert(stranger, legal):
    """A user who has nothing else to do with the run."""
    stranger.groups.add(legal)
    return stranger


@pytest.fixture
async def asks(agent, legal):
    """An agent that can ask experts without approval."""
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="ask_person"))
    await agent.experts.aadd(legal)
    agent.asker_approves_questions = False
    await agent.asave()
    return agent


@pytest.fixture
async def question(asks, scripted, person):
    scripted(ASK, DONE)
    run = await run_question(f"Think about {SECRET}", user=person)
    assert run.status == "waiting"
    return await Approval.objects.aget(run=run)


async def inbox(user):
    return (await (await as_async_user(user)).get("/approvals/")).text


async def send(user, question, verdict, words):
    form = {"verdict": verdict, f"digest-{question.pk}": question.digest}
    form[f"reason-{question.pk}"] = words
    return await (await as_async_user(user)).post(f"/approvals/{question.pk}/", form)


async def test_an_expert_sees_the_question_and_nothing_else_of_the_run(question, expert):
    shown = await inbox(expert)
    client = await as_async_user(expert)

    assert "Questions for you" in shown
    assert "May we store<br>addresses for ten years?" in shown
    assert "ada needs a member of “Legal”" in shown
    assert SECRET not in shown
    assert f"/traces/{question.run_id}/" not in shown
    assert (await client.get(f"/traces/{question.run_id}/")).status_code == 404
    assert 'class="badge">1' in (await client.get("/approvals/link/")).text


async def test_rows_in_a_question_are_shown_as_a_table(agent, scripted, person):
    tool = await ToolRegistration.objects.aget(name="ask_person")
    await agent.tools.aadd(tool)
    rows = '{"columns": ["name", "total"], "rows": [["Tea", 12]], "truncated": false}'
    scripted(Says.call("ask_person", question=f"Tell it on? {rows}"))
    await run_question("What sells?", user=person)

    shown = (await inbox(person)).split('class="question-text"')[1].split("</blockquote>")[0]

    assert "<p>Tell it on?</p>" in shown
    assert "<td>Tea</td>" in shown
    assert "columns" not in shown


async def test_the_run_continues_with_the_answer_and_names_its_author(question, expert, person):
    answer = await send(expert, question, "approve", "  Five at most.\nSee § 17. ")

    run = await finish_run(question)
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/approvals/"
    assert run.answer == DONE.answer
    step = await run.steps.aget(kind="tool")
    assert step.observation == "Five at most.\nSee § 17."
    page = await (await as_async_user(person)).get(f"/traces/{run.pk}/")
    assert "Answered by eve" in page.text
    assert "Five at most.<br>See § 17." in page.text


async def test_an_expert_declines_with_a_reason_for_the_model(question, expert):
    await send(expert, question, "reject", "Ask the board.")

    run = await finish_run(question)
    step = await run.steps.aget(kind="tool")
    assert "eve rejected this. Comment: “Ask the board.”." in step.observation
    assert step.status == "rejected"


@pytest.mark.parametrize(
    ("words", "said"), [(" \0 ", "Enter an answer."), ("x" * 10_001, "Too long")]
)
async def test_empty_and_oversized_answers_are_rejected(words, said, question, expert):
    answer = await send(expert, question, "approve", words)

    assert answer.status_code == 422
    assert said in answer.text
    assert (await Run.objects.aget()).is_waiting


@pytest.mark.parametrize("group", one_in(4, ["", "sales", "lega", "l%", "legal_"]))
async def test_users_outside_the_group_are_not_asked(group, question, stranger):
    if group:
        await stranger.groups.aadd(await Group.objects.acreate(name=group))

    assert "May we store" not in await inbox(stranger)
    assert (await send(stranger, question, "approve", "Yes.")).status_code == 404


async def test_a_tool_call_with_a_role_argument_is_not_sent_to_experts(question, expert):
    await Approval.objects.aupdate(why="tool")

    assert "ask_person" not in await inbox(expert)
    assert (await send(expert, question, "approve", "Yes.")).status_code == 404


async def test_the_asker_sees_who_is_asked_and_can_answer_or_stop(question, expert, person):
    page = await (await as_async_user(person)).get(f"/traces/{question.run_id}/")
    assert "Waiting for a member of the group “Legal”." in page.text
    assert "Answer it yourself" in page.text

    await runs.stop(await Run.objects.aget())

    run = await finish_run(question)
    assert run.status == "stopped"
    assert (await Approval.objects.aget()).verdict == "withdrawn"
    assert "May we store" not in await inbox(expert)


async def test_without_a_matching_expert_the_asker_is_told(question, person):
    shown = await inbox(person)

    assert "which has no members" in shown
    assert "Answer it yourself" not in shown
    await send(person, question, "approve", "Five.")
    assert (await finish_run(question)).answer == DONE.answer


async def test_the_first_answer_counts(question, expert, person):
    await decide(expert, question, reason="Five.")

    with pytest.raises(DecisionRejected, match="already closed"):
        await decide(person, question, reason="Five.")
    await finish_run(question)


async def test_an_open_inbox_is_updated_live(question, expert):
    client, path = await as_async_user(expert), "/approvals/new/"

    new = (await client.get(path)).text
    same = await client.get(path, {"shown": question.pk})
    other = question.pk + 99
    shown = {"shown": [question.pk, other, "x\0"]}
    gone = (await client.get(path, shown)).text

    assert 'hx-swap-oob="beforeend:#questions"' in new
    assert "May we store" in new
    assert same.status_code == 204
    assert f'<div id="asked-{other}" hx-swap-oob="delete">' in gone
    assert "May we store" not in gone


async def test_a_role_longer_than_any_group_name_matches_no_one(agent, scripted, person):
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="ask_person"))
    scripted(Says.call("ask_person", question="?", role="r" * 500), DONE)

    run = await run_question("Ask.", user=person)

    assert run.status == "completed"
    assert not await Approval.objects.aexists()


ENDING = dict.fromkeys(("answer", "detail", "advice"), "") | {"stopped_reason": "error"}


@pytest.mark.parametrize(
    ("type", "facts"),
    [
        (EventType.STEP, {"kind": "tool", "status": "cancelled"}),
        (EventType.RUN_FINISHED, {**ENDING, "turns": 1, "tool_calls": 0}),
    ],
)
async def test_a_question_is_withdrawn_when_its_step_or_run_ends(question, expert, type, facts):
    run = await Run.objects.aget(pk=question.run_id)
    stamp = EventFactory("assistant", after=await sync_to_async(event_store.last_seq)(run))

    await sync_to_async(event_store.save)([(run.pk, stamp(type, step=question.step, **facts))])

    await question.arefresh_from_db()
    assert question.verdict == Approval.Verdict.WITHDRAWN
    assert "May we store" not in await inbox(expert)


@pytest.fixture
async def sharing(asks, scripted, person):
    """A question that waits for the user's approval."""
    asks.asker_approves_questions = True
    await asks.asave()
    scripted(ASK, DONE)
    run = await run_question(f"Think about {SECRET}", user=person)
    return await Approval.objects.aget(run=run)


async def test_the_asker_approves_a_question_before_others_see_it(sharing, expert, person):
    assert (sharing.why, sharing.role) == ("sharing", "")
    assert "May we store" not in await inbox(expert)
    assert (await send(expert, sharing, "approve", "Five.")).status_code == 404
    shown = await inbox(person)
    assert "Send this question to the group “Legal”?" in shown
    assert "They see only the question." in shown

    assert (await send(person, sharing, "approve", "")).status_code == 302
    run = await Run.objects.aget()
    await runs.wait(run)

    asked_now = await Approval.objects.aget(run=run)
    assert (asked_now.why, asked_now.role) == ("question", "Legal")
    assert asked_now.digest != sharing.digest
    assert "May we store" in await inbox(expert)
    await send(expert, asked_now, "approve", "Five at most.")
    run = await finish_run(asked_now)
    assert (run.status, run.answer) == ("completed", DONE.answer)
    assert (await run.steps.aget(kind="tool")).observation == "Five at most."


async def test_a_rejected_question_is_not_sent(sharing, expert, person):
    await send(person, sharing, "reject", "Not about Kraken.")

    run = await finish_run(sharing)
    assert run.status == "completed"
    assert "May we store" not in await inbox(expert)
    assert "rejected" in (await run.steps.aget(kind="tool")).observation


async def test_a_question_is_sent_as_edited_by_the_asker(sharing, expert, person):
    other = '{"question": "May we store addresses?", "role": "Legal"}'
    await decide(person, sharing, arguments=other)
    await runs.wait(await Run.objects.aget())

    shown = await inbox(expert)
    assert "May we store addresses?" in shown
    assert "ten years" not in shown


@pytest.mark.parametrize(
    "role", one_in(4, ["sales", "person", "administrator", "reviewer", "\u212aegal"])
)
async def test_a_model_can_ask_only_groups_of_its_agent(role, asks, scripted, person, stranger):
    group, _ = await Group.objects.aget_or_create(name=role)
    await stranger.groups.aadd(group)
    scripted(Says.call("ask_person", question=QUESTION, role=role), DONE)

    run = await run_question("Ask them", user=person)

    assert run.status == "completed"
    assert not await Approval.objects.filter(run=run).aexists()
    step = await run.steps.aget(kind="tool")
    assert f"can't ask {role!r}" in step.observation
    assert "Available roles: Legal" in step.observation


async def test_a_built_in_group_can_be_asked_if_configured(asks, scripted, person, stranger):
    group, _ = await Group.objects.aget_or_create(name="reviewer")
    await stranger.groups.aadd(group)
    await asks.experts.aadd(group)
    scripted(Says.call("ask_person", question=QUESTION, role="reviewer"), DONE)

    await run_question("Ask them", user=person)

    assert "May we store" in await inbox(stranger)


async def test_a_model_cannot_mark_its_question_as_an_approval(asks, scripted, person, expert):
    scripted(
        Says.call("ask_person", question=QUESTION, role="Legal", approves=True),
        DONE,
    )
    await run_question("Ask them", user=person)

    assert (await Approval.objects.aget()).why == "question"


async def test_invisible_characters_in_a_question_are_made_visible(
    asks, scripted, person, expert
):
    rows = '{"columns": ["na\\u202eme"], "rows": [["T\u200bea"]], "truncated": false}'
    hidden = f"Pay\u202e him?\U000e0041 {rows}"
    scripted(Says.call("ask_person", question=hidden, role="Legal"))
    await run_question("Ask them", user=person)

    shown = await inbox(expert)

    for code in ("Pay[U+202E] him?[U+E0041]", "na[U+202E]me", "T[U+200B]ea"):
        assert code in shown
    assert not {"\u202e", "\u200b", "\U000e0041"} & {*shown}
