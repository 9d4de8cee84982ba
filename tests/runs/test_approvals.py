"""A run that waits for approval: saved, displayed, decided once, resumed."""

import asyncio
import json
import re

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission

from agents import runs
from agents.engine.testing import Call, Says
from agents.engine.tool import ToolResult
from agents.models import Agent, AgentStep, Approval, Run, ToolRegistration
from agents.runs import approvals
from agents.runs.approvals import Decision, DecisionRejected
from agents.web.presentation.live_run import LiveRunView
from agents.web.presentation.markdown import render_exact
from tests.conftest import as_async_user, run_question, verify_run
from tests.runs.conftest import decide, finish_run
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

WRITE = Says.call("calculator", "I have to write.", to="a@example.org", text="Hello")
THANKS = Says(answer="It is written.")


class Letter:
    """A tool with an effect, which records its calls."""

    name, description, needs_approval, effect = "calculator", "Writes.", True, "at_most_once"
    parameters = {
        "type": "object",
        "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to"],
        "additionalProperties": False,
    }

    def __init__(self):
        self.sent = []

    async def execute(self, input):
        self.sent.append(dict(input))
        return ToolResult("Sent.")


@pytest.fixture
def letter(use_tool):
    return use_tool(Letter())


@pytest.fixture
async def waiting(letter, scripted, person):
    scripted(WRITE, THANKS)
    run = await run_question("Write to her.", user=person)
    assert run.status == "waiting"
    return await Approval.objects.aget(run=run)


async def test_a_read_only_tool_is_not_said_to_make_changes(
    letter, scripted, person, monkeypatch
):
    monkeypatch.setattr(Letter, "effect", "read", raising=False)
    scripted(WRITE, THANKS)
    run = await run_question("Write to her.", user=person)

    card = await sync_to_async(LiveRunView(run.pk, "chat", may_decide=True).snapshot)()
    assert run.status == "waiting"
    assert "make changes" not in card


async def test_an_approved_call_is_made_and_the_run_completes(waiting, letter, person):
    await decide(person, waiting)

    run = await finish_run(waiting)
    step = await AgentStep.objects.aget(run=run, number=waiting.step)
    await waiting.arefresh_from_db()
    assert (run.status, run.answer, run.tool_calls) == ("completed", "It is written.", 1)
    assert letter.sent == [{"to": "a@example.org", "text": "Hello"}]
    assert (step.status, step.observation) == ("done", "Sent.")
    assert (waiting.verdict, waiting.decided_by_id) == ("approved", person.pk)


async def test_a_call_can_be_approved_after_a_server_restart(waiting, letter, person):
    await runs.shut_down()
    taken = await runs.recover_abandoned()

    await decide(person, waiting)

    assert taken == 0
    assert (await finish_run(waiting)).answer == "It is written."
    assert len(letter.sent) == 1


async def test_edited_arguments_are_used(waiting, letter, person):
    changed = json.dumps({"to": "b@example.org"})

    await decide(person, waiting, arguments=changed)

    run = await finish_run(waiting)
    step = await AgentStep.objects.aget(run=run, number=waiting.step)
    await waiting.arefresh_from_db()
    assert letter.sent == [{"to": "b@example.org"}]
    assert step.action_input == {"to": "b@example.org"}
    assert waiting.verdict == "edited"
    assert json.loads(waiting.new_arguments) == {"to": "b@example.org"}


async def test_a_rejected_call_is_never_made(waiting, letter, person, scripted):
    model = scripted(Says(answer="Then I leave it."))

    await decide(person, waiting, is_approved=False, reason="Not to her.")

    run = await finish_run(waiting)
    step = await AgentStep.objects.aget(run=run, number=waiting.step)
    assert letter.sent == []
    assert (run.answer, run.tool_calls, step.status) == ("Then I leave it.", 0, "rejected")
    assert "Not to her." in model.requests[0]["messages"][-1]["content"]


async def test_a_decision_counts_once(waiting, letter, person):
    both = [decide(person, waiting) for _ in range(2)]

    results = await asyncio.gather(*both, return_exceptions=True)

    refused = [result for result in results if isinstance(result, DecisionRejected)]
    assert len(refused) == 1
    assert "already closed" in str(refused[0])
    await finish_run(waiting)
    assert len(letter.sent) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    one_in(
        4,
        [
            ("{", "valid JSON"),
            ("[1]", "must be a JSON object"),
            ('{"to": NaN}', "NaN isn't valid JSON"),
            ('{"text": "x"}', "'to' is a required property"),
            ('{"to": 7}', "to: 7 is not of type 'string'"),
            ('{"to": "x", "bcc": "y"}', "unknown property 'bcc'"),
            ("[" * 100_000, "nested too deeply"),
            ('{"to": "\\ud800"}', "invalid character"),
            ('{"to": "' + "x" * 100_001 + '"}', "too long"),
        ],
    ),
)
async def test_invalid_arguments_are_rejected_with_a_message(
    waiting, letter, person, arguments, sentence
):
    with pytest.raises(DecisionRejected) as refused:
        await decide(person, waiting, arguments=arguments)

    await waiting.arefresh_from_db()
    assert sentence in str(refused.value)
    assert waiting.verdict == "waiting"
    assert letter.sent == []


async def test_a_decision_about_another_call_is_rejected(waiting, letter, person):
    with pytest.raises(DecisionRejected, match="This request has changed"):
        await approvals.decide(person, waiting.pk, Decision(digest="0" * 64, is_approved=True))

    assert letter.sent == []


async def test_readers_see_whose_approval_is_pending(waiting):
    def shown(may_decide: bool) -> str:
        watched = LiveRunView(waiting.run_id, "chat", may_decide=may_decide)
        return watched.snapshot()

    assert "Waiting for the user who asked" in await sync_to_async(shown)(False)
    assert "Waiting for the user who asked" not in await sync_to_async(shown)(True)


async def test_other_users_cannot_decide(waiting, letter, stranger, administrator):
    for somebody in (stranger, administrator):
        with pytest.raises(Approval.DoesNotExist):
            await decide(somebody, waiting)

        client = await as_async_user(somebody)
        data = {"verdict": "approve", f"digest-{waiting.pk}": waiting.digest}
        response = await client.post(f"/approvals/{waiting.pk}/", data)
        assert response.status_code == 404

    assert letter.sent == []


async def test_stop_ends_a_run_that_awaits_approval(waiting, letter, person):
    run = await Run.objects.aget(pk=waiting.run_id)

    await runs.stop(run)

    run = await verify_run(run)
    step = await AgentStep.objects.aget(run=run, number=waiting.step)
    await waiting.arefresh_from_db()
    assert (run.status, run.stopped_reason) == ("stopped", "cancelled")
    assert (step.status, waiting.verdict) == ("unstarted", "withdrawn")
    with pytest.raises(DecisionRejected):
        await decide(person, waiting)
    assert letter.sent == []


async def test_several_pending_calls_resume_when_all_are_decided(letter, scripted, person):
    scripted(
        Says("", (Call("calculator", {"to": "a"}), Call("calculator", {"to": "b"}))), THANKS
    )
    run = await run_question("Write to both.", user=person)
    first, second = [approval async for approval in Approval.objects.filter(run=run)]

    await decide(person, second)
    between = (await Run.objects.aget(pk=run.pk)).status, list(letter.sent)
    await decide(person, first, is_approved=False)

    assert between == ("waiting", [])
    assert (await finish_run(first)).status == "completed"
    assert letter.sent == [{"to": "b"}]


async def test_an_agent_can_require_approval_for_every_call(person, scripted):
    await Agent.objects.aupdate(auto_execute_tools=False)
    scripted(Says.call("calculator", input="6 * 7"), Says(answer="42"))

    run = await run_question("6 * 7", user=person)

    approval = await Approval.objects.aget(run=run)
    assert (run.status, approval.why) == ("waiting", "agent")


@pytest.mark.parametrize(
    ("setting", "status"),
    [("always", "waiting"), ("never", "completed"), ("tool", "completed")],
)
async def test_an_administrator_sets_which_tools_require_approval(setting, status, scripted):
    await ToolRegistration.objects.filter(name="calculator").aupdate(approval=setting)
    scripted(Says.call("calculator", input="6 * 7"), Says(answer="42"))

    assert (await run_question("6 * 7")).status == status


async def test_live_and_reloaded_page_are_equal_during_an_approval(waiting, person):
    before = LiveRunView(waiting.run_id)
    await sync_to_async(before.snapshot)()
    html = await sync_to_async(LiveRunView(waiting.run_id).snapshot)()

    assert 'data-status="waiting"' in html
    assert "Calculate this?" in html
    assert "csrf" not in html


async def test_the_card_says_what_the_call_does_and_the_row_what_was_decided(waiting, person):
    asked = await sync_to_async(LiveRunView(waiting.run_id, "chat").snapshot)()
    await decide(person, waiting, arguments=json.dumps({"to": "b@example.org"}))
    run = await finish_run(waiting)
    decided = await sync_to_async(LiveRunView(run.pk, "chat").snapshot)()

    assert 'data-effect="at_most_once"' in asked
    assert "<dt>To</dt>" in asked
    assert "<dt>Text</dt>" in asked
    assert 'class="approval"' not in decided
    assert "edited and approved by you" in decided
    assert "Original arguments" in decided


async def test_an_argument_can_be_edited_in_its_field(waiting, letter, person):
    client = await as_async_user(person)
    fields = {
        "verdict": "approve",
        f"digest-{waiting.pk}": waiting.digest,
        f"argument-{waiting.pk}-1": "Good day",
        f"reason-{waiting.pk}": "Only for rejecting it.",
    }

    response = await client.post(f"/approvals/{waiting.pk}/", fields)

    assert response.status_code == 302
    await finish_run(waiting)
    await waiting.arefresh_from_db()
    assert letter.sent == [{"to": "a@example.org", "text": "Good day"}]
    assert (waiting.verdict, waiting.reason) == ("edited", "")


# The pages


async def test_the_inbox_lists_only_my_pending_requests(waiting, person, stranger):
    mine = (await (await as_async_user(person)).get("/approvals/")).text
    theirs = (await (await as_async_user(stranger)).get("/approvals/")).text

    assert "Write to her." in mine
    assert "a@example.org" in mine
    assert "a@example.org" not in theirs
    assert "Nothing to approve" in theirs


@pytest.mark.parametrize("page", one_in(3, ["", "http://testserver", "http://["]))
async def test_a_decision_without_javascript_leads_back_to_the_conversation(
    waiting, letter, person, page
):
    client = await as_async_user(person)
    data = {"verdict": "approve", f"digest-{waiting.pk}": waiting.digest}

    response = await client.post(f"/approvals/{waiting.pk}/", data, headers={"Referer": page})

    assert response.status_code == 302
    assert response["Location"] == f"/chat/1/#run-{waiting.run_id}"
    await finish_run(waiting)
    assert len(letter.sent) == 1


async def test_an_invalid_decision_shows_the_error_and_keeps_the_input(waiting, person):
    client = await as_async_user(person)
    data = {
        "verdict": "approve",
        f"digest-{waiting.pk}": waiting.digest,
        f"arguments-{waiting.pk}": "{",
        f"reason-{waiting.pk}": "Because I say so.",
    }

    plain = await client.post(f"/approvals/{waiting.pk}/", data)
    live = await client.post(f"/approvals/{waiting.pk}/", data, headers={"HX-Request": "true"})

    assert plain.status_code == 422
    page = plain.text
    assert page.count("valid JSON") == 1
    assert "Because I say so." in page
    assert ">{</textarea>" in page
    assert f'id="approval-{waiting.pk}-problem"' in live.text


async def test_reviewers_get_no_approval_buttons_in_the_trace(waiting, stranger):
    review = await Permission.objects.aget(codename="review_runs")
    await stranger.user_permissions.aadd(review)
    client = await as_async_user(stranger)

    html = (await client.get(f"/traces/{waiting.run_id}/")).text

    assert "‹email›" in html
    assert "a@example.org" not in html
    assert not re.search(r'name="verdict"', html)


# The card displays the whole call


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200bpal", "U+200B"),
        ("a\u202eb", "U+202E"),
        ("x\U000e0041y", "U+E0041"),
        ("a\u00a0b", "U+00A0"),
        ("a\u3164b", "U+3164"),
        ("a\ufe0fb", "U+FE0F"),
        ("a\x00b", "U+0000"),
        ("<b>", "&lt;b&gt;"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_invisible_characters_in_arguments_are_made_visible(text, shown):
    assert shown in render_exact(text)
    assert "<b>" not in render_exact(text)
