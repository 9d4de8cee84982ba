"""A running tool asks the run's user and goes on with the answer."""

import asyncio
import json

import pytest

from agents import runs
from agents.db import database
from agents.engine.call_context import Question
from agents.engine.events import EventType
from agents.engine.loop.tool_calls import live_call
from agents.engine.question_form import read_fields
from agents.engine.testing import ContextTool, Says
from agents.models import Agent, AgentStep, Approval, AuditEntry, Membership, Run
from agents.runs import executor, question_answers, question_desk
from agents.runs.approvals import DecisionRejected
from agents.runs.question_answers import Answer, InvalidAnswer, read_answer
from agents.web.presentation.live_run import LiveRunView
from tests.conftest import as_async_user, run_question, until, verify_run
from tests.runs.conftest import launch
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

SCHEMA = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "format": "email", "title": "Your <email>"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        "agree": {"type": "boolean", "default": True},
    },
    "required": ["email"],
}
QUESTION = Question(source="registry", message="Who <are> you?", schema=SCHEMA)
GOOD = {0: ["ana@example.com"], 1: ["4"], 2: ["g"], 3: ["true"]}


@pytest.fixture
def tool(use_tool):
    """Replace the calculator by one that asks; its answers are in `heard`."""
    heard = []

    async def work(context):
        answer = await context.ask(tool.question)
        heard.append(answer)
        return json.dumps(dict(answer.content))

    tool = ContextTool(work, "calculator")
    tool.heard, tool.question = heard, QUESTION
    return use_tool(tool)


async def ask(scripted, person):
    """Return a question that waits, in a running run."""
    scripted(Says.call("calculator", input="1"), Says(answer="Done."))
    run = await launch("Sign up", person)
    await until(run, EventType.APPROVAL_REQUESTED)
    return await Approval.objects.select_related("run").aget(run=run)


@pytest.fixture
async def asked(tool, scripted, person):
    return await ask(scripted, person)


def accepted(asked, typed=GOOD):
    return Answer(digest=asked.digest, action="accept", typed=typed)


async def finished(asked):
    await runs.wait(asked.run)
    run = await verify_run(asked.run)
    await asked.arefresh_from_db()
    return run


async def test_the_answer_is_passed_to_the_running_call(asked, tool, person):
    assert asked.run.status == Run.Status.RUNNING
    assert (await AgentStep.objects.aget(run=asked.run, kind="tool")).status == "waiting"

    await question_answers.submit_answer(person, asked.pk, accepted(asked))
    run = await finished(asked)

    assert run.status == Run.Status.COMPLETED
    content = {"email": "ana@example.com", "count": 4, "color": "g", "agree": True}
    assert tool.heard[0].content == content
    assert (asked.verdict, asked.decided_by_id) == ("approved", person.pk)
    step = await AgentStep.objects.aget(run=run, kind="tool")
    assert (step.status, step.action) == ("done", "calculator")
    types = [event.type async for event in run.events.order_by("seq")]
    assert types.count("approval_requested") == types.count("approval_resolved") == 1
    assert "run_paused" not in types
    assert await AuditEntry.objects.filter(action="approval.decided").acount() == 1


@pytest.mark.parametrize(
    ("action", "verdict"), [("decline", "rejected"), ("cancel", "withdrawn")]
)
async def test_the_user_can_decline_or_cancel(asked, tool, person, action, verdict):
    answer = Answer(digest=asked.digest, action=action)
    await question_answers.submit_answer(person, asked.pk, answer)
    await finished(asked)

    assert (tool.heard[0].action, asked.verdict) == (action, verdict)


async def test_an_answer_saved_by_another_process_arrives_too(asked, tool, person):
    await database.run(question_answers._save, person, asked.pk, accepted(asked))
    await finished(asked)

    assert tool.heard[0].action == "accept"


async def test_an_answer_counts_once(asked, person):
    await question_answers.submit_answer(person, asked.pk, accepted(asked))

    with pytest.raises(DecisionRejected, match="already closed"):
        await question_answers.submit_answer(person, asked.pk, accepted(asked))
    await finished(asked)


async def test_an_answer_to_another_question_is_rejected(asked, person):
    with pytest.raises(DecisionRejected, match="has changed"):
        await question_answers.submit_answer(
            person, asked.pk, Answer(digest="x", action="decline")
        )
    assert (await Approval.objects.aget(pk=asked.pk)).is_waiting


async def test_only_the_user_of_the_run_can_answer(asked, stranger, person):
    await Membership.objects.acreate(topic="chat.1", user=stranger, may_write=True)
    await Membership.objects.acreate(topic="chat.1", user=person, may_write=True)

    with pytest.raises(Approval.DoesNotExist):
        await question_answers.submit_answer(stranger, asked.pk, accepted(asked))
    view = LiveRunView(asked.run_id, viewer=stranger.pk)
    html = await database.run(view.snapshot)
    assert f"Waiting for {person.username}. Only they can answer." in html
    assert "field-" not in html
    response = await (await as_async_user(stranger)).get("/approvals/")
    assert "Who" not in response.text


async def test_invalid_fields_have_an_error_and_keep_their_input(asked, tool, person):
    client = await as_async_user(person)
    form = {
        "verdict": "approve",
        f"digest-{asked.pk}": asked.digest,
        f"field-{asked.pk}-0": "nobody",
        f"field-{asked.pk}-1": "12",
        f"field-{asked.pk}-2": "g",
    }

    plain = await client.post(f"/approvals/{asked.pk}/", form)
    htmx = await client.post(f"/approvals/{asked.pk}/", form, headers={"HX-Request": "true"})

    assert (plain.status_code, htmx.status_code) == (422, 200)
    for response in (plain, htmx):
        assert "Enter an email address, e.g. ana@example.com." in response.text
        assert "Enter 9 or less." in response.text
        assert 'value="nobody"' in response.text
        assert 'value="g" checked' in response.text
    assert 'hx-swap-oob="true"' in htmx.text
    assert tool.heard == []

    form |= {f"field-{asked.pk}-0": "ana@example.com", f"field-{asked.pk}-1": ""}
    sent = await client.post(f"/approvals/{asked.pk}/", form, headers={"HX-Request": "true"})
    await finished(asked)

    assert sent.status_code == 204
    assert tool.heard[0].content == {"email": "ana@example.com", "color": "g"}


async def test_the_step_has_the_form_and_later_the_answer(asked, person):
    html = await database.run(LiveRunView(asked.run_id).snapshot)

    assert "registry asks you" in html
    assert "Who &lt;are&gt; you?" in html
    assert "Your &lt;email&gt;" in html
    assert 'value="3"' in html  # the default
    assert 'value="true" checked' in html
    assert "passwords" in html
    inbox = await (await as_async_user(person)).get("/approvals/")
    assert "registry asks you" in inbox.text

    await question_answers.submit_answer(person, asked.pk, accepted(asked))
    await finished(asked)
    html = await database.run(LiveRunView(asked.run_id).snapshot)

    assert f"Answered by {person.username}" in html
    assert "<dt>Your &lt;email&gt;</dt><dd>ana@example.com</dd>" in html


async def test_a_page_is_linked_only_with_its_host_spelled_out(tool, scripted, person):
    url = "https://аpple.com/sign-in?next=%2F"  # a Cyrillic letter
    tool.question = Question(source="registry", message="Sign in", url=url)
    asked = await ask(scripted, person)

    html = await database.run(LiveRunView(asked.run_id).snapshot)

    assert 'target="_blank" rel="noopener noreferrer"' in html
    assert "Open xn--pple-43d.com" in html
    await question_answers.submit_answer(person, asked.pk, accepted(asked, {}))
    await finished(asked)
    assert (tool.heard[0].action, tool.heard[0].content) == ("accept", {})


async def test_an_unanswered_question_is_closed_and_the_step_says_so(
    tool, scripted, person, monkeypatch
):
    monkeypatch.setattr(live_call, "QUESTION_SECONDS", 0.1)
    scripted(Says.call("calculator", input="1"), Says(answer="Done."))
    run = await run_question("Sign up", user=person)

    assert (run.status, tool.heard[0].action) == ("completed", "cancel")
    asked = await Approval.objects.aget(run=run)
    assert (asked.verdict, asked.reason) == ("withdrawn", "Nobody answered within 10 min.")
    html = await database.run(LiveRunView(run.pk).snapshot)
    assert "Nobody answered within 10 min." in html


async def test_stop_ends_the_question(asked, tool, person):
    await runs.stop(asked.run)
    run = await verify_run(asked.run)

    await asked.arefresh_from_db()
    assert (run.stopped_reason, asked.verdict, tool.heard) == ("cancelled", "withdrawn", [])
    assert (await AgentStep.objects.aget(run=run, kind="tool")).status == "cancelled"
    with pytest.raises(DecisionRejected):
        await question_answers.submit_answer(person, asked.pk, accepted(asked))


async def test_after_a_crash_the_question_is_closed_and_asked_again(
    asked, tool, scripted, person
):
    scripted(Says(answer="Done."))
    before = asked.digest
    task = executor.current().tasks[asked.run_id]
    task.cancel(executor.LOST)  # as if the process were gone
    await asyncio.wait([task])
    await Run.objects.filter(pk=asked.run_id).aupdate(heartbeat_at=None)

    assert await runs.recover_abandoned() == 1
    for _ in range(500):
        again = await Approval.objects.aget(pk=asked.pk)
        if again.digest != before:
            break
        await asyncio.sleep(0.02)
    await question_answers.submit_answer(person, again.pk, accepted(again))
    run = await finished(asked)

    assert run.status == Run.Status.COMPLETED
    resolved = [
        event.data
        async for event in run.events.filter(type="approval_resolved").order_by("seq")
    ]
    assert [data["action"] for data in resolved] == ["cancel", "accept"]
    assert resolved[0]["reason"] == "The server restarted, so the question was closed."


async def test_an_agent_that_stores_no_personal_data_gets_a_masked_answer(
    agent, tool, scripted, person
):
    await Agent.objects.filter(pk=agent.pk).aupdate(personal_data=Agent.PersonalData.UNKEPT)
    asked = await ask(scripted, person)
    html = await database.run(LiveRunView(asked.run_id).snapshot)

    await question_answers.submit_answer(person, asked.pk, accepted(asked))
    await finished(asked)

    assert "it is masked before the answer is sent" in html
    assert "ana@example.com" not in asked.new_arguments
    assert tool.heard[0].content["email"] == "‹email›"


async def test_the_time_the_user_takes_is_waiting_time(asked, person):
    await asyncio.sleep(0.3)
    await question_answers.submit_answer(person, asked.pk, accepted(asked))
    run = await finished(asked)

    assert run.waited > 0.2


async def test_nothing_is_read_while_no_question_is_open():
    reads = []

    async def read(questions):
        reads.append(questions)
        return {}

    await question_desk.QuestionDesk(read).deliver()

    assert reads == []


def content(typed, **properties):
    return read_answer(read_fields({"properties": properties, "required": ["a"]}), {0: typed})


def test_an_optional_choice_of_at_least_one_can_be_left_out():
    instruments = {"type": "array", "items": {"enum": ["Piano", "Bass"]}, "minItems": 1}

    fields = read_fields({"properties": {"instruments": instruments}})

    assert read_answer(fields, {}) == {}
    assert read_answer(fields, {0: ["Bass"]}) == {"instruments": ["Bass"]}


@pytest.mark.parametrize(
    ("about", "typed", "value"),
    [
        ({"type": "string"}, [" hi "], "hi"),
        ({"type": "string", "format": "uri"}, ["https://x.org/a"], "https://x.org/a"),
        ({"type": "string", "format": "date"}, ["2026-03-31"], "2026-03-31"),
        (
            {"type": "string", "format": "date-time"},
            ["2026-03-31T14:30Z"],
            "2026-03-31T14:30:00+00:00",
        ),
        ({"type": "integer"}, ["-4"], -4),
        ({"type": "number"}, ["2,5"], 2.5),
        ({"type": "boolean"}, ["false"], False),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, ["y", "x", "y"], ["y", "x"]),
    ],
)
def test_a_field_becomes_a_value(about, typed, value):
    assert content(typed, a=about) == {"a": value}


@pytest.mark.parametrize(
    ("about", "typed", "problem"),
    one_in(
        4,
        [
            ({"type": "string"}, [""], "Fill in this field."),
            ({"type": "string"}, [], "Fill in this field."),
            ({"type": "string", "minLength": 3}, ["ab"], "Too short: 2 characters (min 3)."),
            ({"type": "string", "maxLength": 1}, ["ab"], "Too long: 2 characters (max 1)."),
            ({"type": "string"}, ["x" * 10_001], "Too long: 10001 characters (max 10000)."),
            (
                {"type": "string", "format": "uri"},
                ["no"],
                "Enter a URL, e.g. https://example.com.",
            ),
            ({"type": "string", "format": "date"}, ["31.3."], "Enter a date, e.g. 2026-03-31."),
            (
                {"type": "string", "format": "date-time"},
                ["now"],
                "Enter a date and time, e.g. 2026-03-31T14:30.",
            ),
            ({"type": "integer"}, ["1.5"], "Enter a whole number."),
            ({"type": "number"}, ["nan"], "Enter a number."),
            ({"type": "number", "minimum": 2.5}, ["2"], "Enter 2.5 or more."),
            ({"type": "boolean"}, [], "Choose an option."),
            ({"type": "string", "enum": ["x"]}, [], "Choose an option."),
            ({"type": "string", "enum": ["x"]}, ["z"], "Choose one of the options."),
            ({"type": "array", "items": {"enum": ["x"]}}, [], "Choose at least 1 option."),
            (
                {"type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 1},
                ["x", "y"],
                "Choose up to 1 option.",
            ),
        ],
    ),
)
def test_an_invalid_field_has_an_error_message(about, typed, problem):
    with pytest.raises(InvalidAnswer) as error:
        content(typed, a=about)

    assert error.value.problems == {0: problem}
