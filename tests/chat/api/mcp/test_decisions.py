"""What a run asks its user is a form of the MCP client, or a page to decide on."""

import asyncio
import json

import pytest

from agents.engine.call_context import Question
from agents.engine.testing import ContextTool, Says
from agents.models import Agent, Approval, Run
from tests.chat.api.mcp.conftest import ERAS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
SCHEMA = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "format": "email", "title": "Email"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "color": {"type": "string", "enum": ["r", "g"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
        "agree": {"type": "boolean"},
    },
    "required": ["email"],
}


@pytest.fixture
async def careful(scripted):
    await Agent.objects.aupdate(auto_execute_tools=False)
    return scripted(Says.call("calculator", input="6 * 7"), Says(answer="It is 42."))


def answering(content, asked, action="accept"):
    """Return a client's handler that answers each form with this."""
    from fastmcp.client.elicitation import ElicitResult

    async def answer(message, response_type, params, context):
        asked.append((message, params.requested_schema))
        return ElicitResult(action=action, content=content if action == "accept" else None)

    return answer


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_an_approval_is_a_form(era, decision, connect, careful, person):
    asked = []
    content = {"decision": decision, "reason": "Because"}
    async with connect(era, elicitation_handler=answering(content, asked)) as client:
        result = await client.call_tool("helper", {"question": "6 * 7?"})

    [(message, schema)] = asked
    assert "Calculate this?" in message
    assert "6 * 7" in message
    assert schema["properties"]["decision"]["enum"] == ["approve", "reject"]
    approval = await Approval.objects.aget()
    assert approval.verdict == ("approved" if decision == "approve" else "rejected")
    assert (approval.reason, approval.decided_by_id) == ("Because", person.pk)
    assert result.content[0].text == "It is 42."


@pytest.mark.parametrize("era", ERAS)
async def test_declining_the_form_rejects(era, connect, careful):
    handler = answering(None, [], "decline")
    async with connect(era, elicitation_handler=handler) as client:
        await client.call_tool("helper", {"question": "6 * 7?"})

    assert (await Approval.objects.aget()).verdict == "rejected"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("reason", ["no form", "closed", "no scope"])
async def test_otherwise_the_result_says_where_to_decide(era, reason, connect, careful):
    scopes = ("ask", "read") if reason == "no scope" else ("ask", "approve")
    handler = None if reason == "no form" else answering({}, [], "cancel")
    async with connect(era, *scopes, elicitation_handler=handler) as client:
        async with asyncio.timeout(20):
            result = await client.call_tool("helper", {"question": "6 * 7?"})

    run = await Run.objects.aget()
    assert result.structured_content["status"] == run.status == "waiting"
    assert f"/chat/{result.structured_content['conversation']}/" in result.content[0].text
    assert "Calculate this?" in result.content[0].text
    assert (await Approval.objects.aget()).is_waiting


@pytest.mark.parametrize("era", ERAS)
async def test_a_decision_made_elsewhere_continues_the_call(era, connect, careful, person):
    from agents.runs import approvals

    async def decide_in_browser(*about):
        approval = await Approval.objects.aget()
        decision = approvals.Decision(digest=approval.digest, is_approved=True)
        await approvals.decide(person, approval.pk, decision)
        return await answering({"decision": "reject"}, [])(*about)

    async with connect(era, elicitation_handler=decide_in_browser) as client:
        result = await client.call_tool("helper", {"question": "6 * 7?"})

    assert (await Approval.objects.aget()).verdict == "approved"
    assert result.content[0].text == "It is 42."


@pytest.mark.parametrize("era", ERAS)
async def test_a_running_tool_asks_with_its_own_form(era, connect, scripted, monkeypatch):
    from agents.catalog.tools import tool_factory

    async def work(context):
        question = Question(source="registry", message="Who are you?", schema=SCHEMA)
        answer = await context.ask(question)
        return json.dumps(dict(answer.content))

    tool = ContextTool(work, "calculator")
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    model = scripted(Says.call("calculator", input="1"), Says(answer="Done."))
    asked = []
    content = {"email": "ana@example.com", "count": 4, "color": "g", "agree": True}
    async with connect(era, elicitation_handler=answering(content, asked)) as client:
        result = await client.call_tool("helper", {"question": "Sign up"})

    [(message, schema)] = asked
    assert message == "Who are you?"
    assert schema["required"] == ["email"]
    assert schema["properties"]["color"]["enum"] == ["r", "g"]
    assert schema["properties"]["size"]["oneOf"] == [{"const": "s", "title": "Small"}]
    assert result.content[0].text == "Done."
    assert "ana@example.com" in json.dumps(model.requests[1]["messages"])
