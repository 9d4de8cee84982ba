"""An agent's personal data policy: pseudonymized, not stored, or masked."""

import json
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents import runs
from agents.access import masking
from agents.catalog import agent_factory
from agents.engine.loop.cancellation import CallOutcome
from agents.engine.loop.termination import StopReason
from agents.engine.testing import Says, delta, finish
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.models import Agent, AgentStep, Approval, Run, RunEvent
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX
from agents.review.run_details.step_details import (
    StepDetails,
    count_replaced_values,
    is_masked_at_rest,
)
from agents.runs import event_store
from chat import messages
from chat.models import ChatSession, Message
from tests.conftest import run_question, verify_run
from tests.runs import test_plans_over_the_wire
from tests.runs.conftest import decide
from tests.sampling import one_in
from tests.wire import WireServer, call, say

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "samples", "run_executor"),
]

MODELS_BY_ROUTE = {"direct": DirectModel, "litellm": LiteLLMModel}
MAIL, PHONE, ACCOUNT = "ann@example.com", "090-1234-5678", "7654321"
QUESTION = f"What is the phone of {MAIL}? Her account number is {ACCOUNT}."
SQL = f"SELECT '‹email 1›' AS mail, '‹account 1›' AS paid_by, '{PHONE}' AS phone"
ANSWER = "‹phone 1› is the phone of Email 1 (‹account 1›)."


class Echoes:
    """Answers with the first value it was sent."""

    def __init__(self):
        self.requests = []

    async def stream(self, **request):
        self.requests.append(request["messages"])
        yield delta(content="It is ‹email 1›.")
        yield finish("stop")


def ask_for(rule, **more):
    Agent.objects.update(personal_data=rule, **more)


QUERY_ARGUMENTS = json.dumps({"sql": SQL}, ensure_ascii=False)


def reply(request, dialect):
    """Queries the database with its input, and answers with the result."""
    has_looked = PHONE[-4:] in str(request.body) or "‹phone 1›" in str(request.body)
    if dialect == "native":
        return say(ANSWER, chunks=9) if has_looked else call(("database", QUERY_ARGUMENTS))
    if has_looked:
        return say(f"Thought: I know ‹phone 1›.\nFinal Answer: {ANSWER}", chunks=9)
    return say(f"Thought: I look.\nAction: database\nAction Input: {QUERY_ARGUMENTS}", chunks=9)


@pytest.mark.parametrize("dialect", ["native", "react"])
@pytest.mark.parametrize("route", one_in(2, MODELS_BY_ROUTE))
async def test_the_provider_gets_no_personal_data_and_the_user_reads_all(
    route, dialect, scripted
):
    await sync_to_async(ask_for)("hidden", dialect=dialect, model="openai/gpt")

    async with WireServer(lambda request: reply(request, dialect)) as server:
        scripted(model=MODELS_BY_ROUTE[route]("key", server.url))
        run = await verify_run(await run_question(QUESTION))

    bodies = json.dumps([request.body for request in server.requests], ensure_ascii=False)
    assert len(server.requests) == 2
    assert not [value for value in (MAIL, PHONE, ACCOUNT) if value in bodies]
    assert run.answer == f"{PHONE} is the phone of {MAIL} ({ACCOUNT})."
    tool = await run.steps.aget(kind="tool")
    assert MAIL in str(tool.action_input)
    assert PHONE in tool.observation


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_plans_are_written_and_checked_without_personal_data(dialect, scripted):
    await sync_to_async(ask_for)("hidden", dialect=dialect, model="openai/gpt", mode="plan")
    question = f"What is 6 times 7? {MAIL} wants to know."

    plan_reply = partial(test_plans_over_the_wire.reply, dialect=dialect)
    async with WireServer(plan_reply) as server:
        scripted(model=DirectModel("key", server.url))
        run = await verify_run(await run_question(question))

    assert run.status == "completed"
    assert len(server.requests) > 3
    assert "‹email 1›" in str(server.requests[0].body)
    assert MAIL not in str([request.body for request in server.requests])


@pytest.mark.parametrize("merge", one_in(3, ["vote", "synthesis", "judge"]))
async def test_panels_get_no_personal_data(scripted, merge):
    helper = await Agent.objects.aget(name="helper")
    head = await Agent.objects.acreate(
        name="head", mode="panel", merge=merge, personal_data="hidden"
    )
    other = await Agent.objects.acreate(name="other")
    await head.handoffs.aadd(helper, other)
    model = scripted(model=Echoes())

    run = await verify_run(await run_question(QUESTION, agent=head))

    assert MAIL not in str(model.requests)
    assert len(model.requests) >= 2
    assert MAIL in run.answer


async def test_reviewers_see_the_request_as_it_was_sent(scripted):
    await sync_to_async(ask_for)("hidden")
    model = scripted(Says(answer="Ask ‹email 1›."))

    run = await verify_run(await run_question(QUESTION))

    step = await run.steps.aget()
    sent = (await sync_to_async(lambda: StepDetails(run, step).prompt)()).messages
    assert sent == model.requests[0]["messages"]
    assert step.request["replaced"] == {"‹email 1›": MAIL, "‹account 1›": ACCOUNT}


async def test_without_permission_replaced_values_are_hidden(scripted):
    await sync_to_async(ask_for)("hidden")
    scripted(Says(answer="Ask ‹email 1›."))

    run = await verify_run(await run_question(QUESTION))

    step = masking.mask_row(await run.steps.aget())
    event = masking.mask_row(await run.events.aget(type="step_started"))
    assert step.request["replaced"] == {"‹email 1›": "…", "‹account 1›": "…"}
    assert ACCOUNT not in str(event.data)
    assert await sync_to_async(count_replaced_values)(run) == 2


async def test_sub_agents_follow_the_agents_privacy_setting(scripted):
    await sync_to_async(ask_for)("hidden")
    lead = await Agent.objects.acreate(name="lead", personal_data="hidden")
    helper = await Agent.objects.aget(name="helper")
    await Agent.objects.filter(pk=helper.pk).aupdate(personal_data="shown")
    await lead.handoffs.aadd(helper)
    script = Says.call("ask_helper", task="Who is ‹email 1›?"), Says(answer="‹email 1›?")
    model = scripted(*script, Says(answer="I asked about ‹email 1›."))

    run = await verify_run(await run_question(QUESTION, agent=lead))

    assert MAIL not in str([request["messages"] for request in model.requests])
    assert run.answer == f"I asked about {MAIL}."


async def test_an_agent_without_masking_sends_the_original_text(scripted):
    model = scripted(Says(answer="Yes."))

    run = await verify_run(await run_question(QUESTION))

    assert MAIL in str(model.requests[0]["messages"])
    assert "replaced" not in (await run.steps.aget()).request


async def everything_kept():
    models = [Run, AgentStep, RunEvent, Message, ChatSession, Approval]
    return "".join([str([row async for row in model.objects.values()]) for model in models])


async def test_an_agent_that_stores_no_personal_data_has_none_in_any_row(scripted, person):
    await sync_to_async(ask_for)("unkept")
    answer = f"Write to {MAIL} about {ACCOUNT}. {'And so on. ' * 20}"
    sql = f"SELECT '{MAIL}' AS mail, '{PHONE}' AS phone"
    model = scripted(Says.call("database", sql=sql), Says("I know.", answer=answer))

    said = await sync_to_async(messages.save)(None, person, QUESTION, "once")
    await messages.dispatch(said.session, said)
    await runs.wait(said.run)

    kept = await everything_kept()
    assert not [value for value in (MAIL, PHONE, ACCOUNT) if value in kept]
    assert MAIL in str(model.requests[0]["messages"])
    assert PHONE in str(model.requests[1]["messages"])
    run = await verify_run(await Run.objects.aget())
    assert run.answer.startswith("Write to ‹email› about ‹account›.")
    assert (await Message.objects.aget()).text == run.query
    assert (await run.steps.aget(kind="tool")).status == "done"


@pytest.mark.parametrize("rule", one_in(3, ["shown", "hidden", "unkept"]))
async def test_the_run_page_always_says_that_no_personal_data_was_stored(
    scripted, person, async_client, rule
):
    agent = await Agent.objects.aget()
    agent.personal_data = rule
    await agent.asave()
    scripted(Says(answer="Yes."))
    run = await verify_run(await run_question("Hello", user=person))
    await Agent.objects.aupdate(personal_data="shown", version=agent.version + 1)

    await async_client.aforce_login(person)
    page = await async_client.get(f"/traces/{run.pk}/")

    assert ("Saved without personal data" in page.text) is (rule == "unkept")


@pytest.mark.parametrize("rule", ["shown", "unkept"])
def test_a_draft_run_uses_the_drafts_privacy_setting(rule):
    tried = {agent_factory.DRAFT_KEY: {"personal_data": rule}}
    run = Run(topic=f"{DRAFT_TOPIC_PREFIX}1", overrides=tried)

    assert is_masked_at_rest(run) is (rule == "unkept")


async def test_queued_messages_are_saved_masked(scripted, person):
    await sync_to_async(ask_for)("unkept")
    model = scripted(Says(answer="One."), Says(answer="Two."))
    first = await sync_to_async(messages.save)(None, person, "Hello", "1")

    await sync_to_async(messages.save)(first.session, person, QUESTION, "2")

    assert MAIL not in await everything_kept()
    await messages.dispatch(first.session, first)
    await runs.wait(first.run)
    await messages.answer_waiting()
    second = await Run.objects.alatest("pk")
    await runs.wait(second)
    assert "‹email›" in str(model.requests[1]["messages"])


async def test_earlier_messages_are_masked_when_saved_again(scripted):
    await sync_to_async(ask_for)("unkept")
    scripted(Says(answer="Yes."))
    history = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Hm."}]

    run = await verify_run(await run_question("And now?", history=history))

    assert run.history[0]["content"].startswith("What is the phone of ‹email›?")


async def test_the_late_result_of_a_stopped_call_is_saved_masked():
    await sync_to_async(ask_for)("unkept")
    run = await sync_to_async(runs.prepare)(query="Hello", topic="chat.1")
    about = {"kind": "tool", "action": "read", "call_id": "c1", "started_at": timezone.now()}
    await AgentStep.objects.acreate(run=run, number=1, first_seq=1, **about)
    fate = CallOutcome(status="done", result=f"It was {MAIL}.")

    ending = event_store.Ending(StopReason.CANCELLED, outcomes={1: fate})
    await sync_to_async(event_store.close)(run.pk, ending)

    assert MAIL not in await everything_kept()
    assert (await run.steps.aget()).observation == "It was ‹email›."


async def test_comments_on_a_call_are_saved_masked(scripted, person):
    await sync_to_async(ask_for)("unkept", auto_execute_tools=False)
    scripted(Says.call("database", sql="SELECT 1"), Says(answer="Done."))
    run = await run_question("How many?", user=person)
    waiting = await run.approvals.aget()

    written = json.dumps({"sql": f"SELECT '{MAIL}' AS mail"})
    about = {"arguments": written, "reason": f"Ask {MAIL}."}
    await decide(person, waiting, **about)
    await runs.wait(run)

    await verify_run(run)
    kept = await everything_kept()
    assert MAIL not in kept
    assert "Ask ‹email›." in kept


async def test_an_approved_call_is_made_as_displayed(scripted, person):
    await sync_to_async(ask_for)("unkept", auto_execute_tools=False)
    sql = f"SELECT '{MAIL}' AS mail"
    scripted(Says.call("database", sql=sql), Says(answer="Done."))
    run = await run_question(QUESTION, user=person)

    waiting = await run.approvals.aget()
    assert json.loads(waiting.arguments) == {"sql": "SELECT '‹email›' AS mail"}
    await decide(person, waiting)
    await runs.wait(run)

    run = await verify_run(run)
    assert "‹email›" in (await run.steps.aget(kind="tool")).observation
