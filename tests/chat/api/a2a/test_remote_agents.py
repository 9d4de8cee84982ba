"""Agents elsewhere as tools: our own server plays the other side."""

import asyncio
import json

import pytest
from django.urls import reverse

from agents import runs
from agents.engine import call_context
from agents.engine.call_context import CallContext, QuestionAnswer
from agents.engine.testing import Says
from agents.models import Approval, Run, ToolRegistration
from agents.tools.a2a import RemoteAgentTool, read_card
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from tests.chat.api.approved_tool import ASK, WRITE
from tests.conftest import as_async_user, run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


class Call(CallContext):
    """A call whose user answers questions, or doesn't."""

    def __init__(self, **answer):
        self.answer = answer
        self.asked = []
        self.progress = []

    def report_progress(self, progress, total=None, message=""):
        self.progress.append(message)

    async def ask(self, question):
        self.asked.append(question.message)
        if not self.answer:
            return QuestionAnswer(action="decline")
        return QuestionAnswer(action="accept", content=self.answer)


@pytest.fixture
def desk(address, make_token):
    async def make(token=None, *, streams=True, allow=True, **options):
        token = token or await make_token()
        definition = {"name": "desk", "description": "Knows.", "a2a": {"streams": streams}}
        return RemoteAgentTool(
            definition,
            f"{address}/a2a/",
            headers={"Authorization": f"Bearer {token}"},
            egress=Egress(allow=AllowList.read(["127.0.0.1"] if allow else [])),
            **options,
        )

    return make


async def call(tool, context=None, message="What is 6 * 7?"):
    with call_context.use_context(context or Call()):
        return await tool.execute({"message": message})


@pytest.mark.parametrize("streams", [True, False])
async def test_a_task_is_answered_with_its_progress(desk, scripted, streams):
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="It is 42."))
    context = Call()
    tool = await desk(streams=streams)

    result = await call(tool, context)

    assert (result.output, result.error) == ("It is 42.", None)
    assert tool.is_untrusted
    assert tool.needs_approval
    assert ("calculator" in context.progress) == streams


async def test_a_question_of_the_other_agent_goes_to_our_user(desk, scripted, agent):
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="ask_person"))
    scripted(ASK, Says(answer="Kyoto it is."))
    context = Call(answer="Kyoto")

    result = await call(await desk(), context, "Where to?")

    assert context.asked == ["Which city?"]
    assert result.output == "Kyoto it is."
    assert await Run.objects.acount() == 1


async def test_without_an_answer_the_task_is_canceled(desk, scripted, agent):
    await agent.tools.aadd(await ToolRegistration.objects.aget(name="ask_person"))
    scripted(ASK)

    result = await call(await desk(), Call(), "Where to?")

    assert result.is_error
    assert (await Run.objects.aget()).stopped_reason == "cancelled"


async def test_a_stopped_call_cancels_the_task(desk, scripted, letter):
    scripted(WRITE)

    asked = asyncio.Event()

    class Waits(Call):
        async def ask(self, question):
            asked.set()
            await asyncio.Event().wait()

    calling = asyncio.create_task(call(await desk(), Waits(), "Write to her."))
    await asyncio.wait_for(asked.wait(), 30)
    calling.cancel()
    await asyncio.wait([calling])

    assert calling.cancelled()
    assert (await Run.objects.aget()).stopped_reason == "cancelled"
    assert letter.sent == []


async def test_a_private_address_and_a_wrong_key_are_refused(desk):
    private = await call(await desk(allow=False))
    unknown = await call(await desk("ash_wrong-key"))

    assert private.is_error
    assert unknown.error == "The agent's server returned HTTP 401."
    assert not await Run.objects.aexists()


async def test_the_end_of_a_failed_task_is_an_error(desk, scripted):
    scripted(ValueError("broken"))

    result = await call(await desk())

    assert "failed" in result.error


def card(**changes):
    interface = {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC"}
    interface |= {"protocolVersion": "1.0"} | changes.pop("interface", {})
    return json.dumps({"name": "Desk", "supportedInterfaces": [interface], **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"[]",
        b"{}",
        card(name=""),
        card(interface={"protocolVersion": "0.3"}),
        card(interface={"protocolBinding": "GRPC"}),
        card(interface={"url": "https://other.example/rpc"}),
        card(interface={"url": "http://a.example/rpc"}),
        card(interface={"url": "file:///etc/passwd"}),
        card(interface={"url": "https://a.example/" + "x" * 600}),
    ],
)
def test_a_card_that_cannot_be_used_is_refused(content):
    with pytest.raises(ValueError, match=r"."):
        read_card(content, "https://a.example/.well-known/agent-card.json")


def test_a_card_describes_the_agent_to_the_model():
    content = card(
        description="Knows law.", skills=[{"name": "Deeds", "description": "Reads."}]
    )

    read = read_card(content, "https://a.example/.well-known/agent-card.json")

    assert (read.url, read.streams) == ("https://a.example/rpc", False)
    assert read.description == "Knows law.\n- Deeds: Reads."


async def test_an_administrator_adds_an_agent_and_a_run_uses_it(
    address, make_token, administrator, person, agent, scripted, settings
):
    settings.EGRESS_ALLOW = ["127.0.0.1"]
    settings.ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
    token = await make_token()
    console = await as_async_user(administrator)
    page = reverse("admin:agents_toolregistration_remote_agent")

    missing = await console.post(page, {"url": f"{address}/nothing", "name": "desk"})
    added = await console.post(page, {"url": address, "name": "desk", "key": token})
    row = await ToolRegistration.objects.aget(name="desk")
    row.approval = ToolRegistration.ApprovalMode.NEVER
    await row.asave()
    await agent.tools.aadd(row)
    scripted(
        Says.call("desk", "They know.", message="What is it?"),
        Says(answer="It is 42."),  # there
        Says(answer="They say 42."),
    )
    run = await run_question("Ask the desk.", user=person)

    assert missing.status_code == 200
    assert added.status_code == 302
    assert row.endpoint == f"{address}/a2a/"
    assert token not in json.dumps(row.definition)
    assert run.answer == "They say 42."
    step = await run.steps.aget(action="desk")
    assert step.observation == "It is 42."
    assert step.is_untrusted
    assert not await Approval.objects.aexists()
    assert await Run.objects.acount() == 2
    await runs.wait(run)


async def test_others_cannot_add_an_agent(person):
    client = await as_async_user(person)

    response = await client.get(reverse("admin:agents_toolregistration_remote_agent"))

    assert response.status_code in (302, 403, 404)
