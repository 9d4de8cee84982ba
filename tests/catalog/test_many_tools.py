"""An agent with more tools than a model should be sent, from the rows to the trace."""

import sys
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command

from agents import runs
from agents.catalog import mcp_servers
from agents.engine.testing import Call, Says
from agents.knowledge import embeddings
from agents.models import Agent, AgentTool, Approval, McpServer, ToolRegistration
from agents.review.run_details.step_details import StepDetails
from agents.runs.approvals import Decision, DecisionRejected, decide
from tests.conftest import run_question, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

SERVER = str(Path(__file__).parents[1] / "tools" / "mcp_servers" / "many.py")
QUESTION = "来週の金曜に有休を取りたい"
REFUND = "many__refund_charge"
ARGUMENTS = {"charge_id": "ch_1"}


@pytest.fixture
async def many(administrator, monkeypatch):
    """An agent with 60 tools of one MCP server; they are found by words alone."""
    monkeypatch.setattr(embeddings, "configured_model", lambda: embeddings.OFF)
    server = await McpServer.objects.acreate(
        name="many",
        transport="stdio",
        command=sys.executable,
        args=[SERVER],
        trusts_annotations=True,
    )
    await mcp_servers.sync(server, administrator)
    tools = [tool async for tool in ToolRegistration.objects.filter(server=server)]
    assert len(tools) == 60
    await (await Agent.objects.aget()).tools.aadd(*tools)
    return server


def sent(model):
    return [[tool["function"]["name"] for tool in one["tools"]] for one in model.requests]


async def test_a_japanese_question_is_answered_with_tools_that_were_not_sent(
    many, scripted, person
):
    bridged = {"name": REFUND, "arguments": ARGUMENTS}
    model = scripted(
        Says.call("find_tools", query="代金をお客様に返す"),
        Says(calls=(Call("call_tool", bridged),)),
        Says.call(REFUND, charge_id="ch_2"),
        Says(answer="返しました。"),
    )

    run = await verify_run(await run_question(QUESTION, user=person))

    names = sent(model)
    assert REFUND not in names[0]
    assert "many__request_time_off" in names[0]
    assert len(names[0]) <= 25
    assert all(request == names[0] for request in names)
    steps = [step async for step in run.steps.filter(kind="tool").order_by("number")]
    assert [step.action for step in steps] == ["find_tools", REFUND, REFUND]
    assert REFUND in steps[0].observation
    assert "ch_1" in steps[1].observation
    assert "ch_2" in steps[2].observation
    assert run.answer == "返しました。"


async def test_the_trace_says_which_tools_were_sent_and_why(many, scripted, person):
    await AgentTool.objects.filter(tool__name=REFUND).aupdate(sending="always")
    scripted(Says.call("cancel_the_plan"), Says(answer="Sorry."))

    run = await run_question(QUESTION, user=person)

    first = await run.steps.order_by("number").afirst()
    choice = await sync_to_async(lambda: StepDetails(run, first).tool_choice)()
    reasons = {tool["name"]: tool["why"] for tool in choice.sent}
    assert reasons[REFUND] == "pinned"
    assert reasons["many__request_time_off"] == "search"
    assert "many__cancel_subscription" in choice.left_out
    assert [note["kind"] for note in first.notes] == ["tools_selected", "unsent_tool"]


async def test_a_bridged_call_waits_for_approval_with_its_own_schema(many, scripted, person):
    name, given = "many__cancel_subscription", {"subscription_id": "sub_1"}
    scripted(
        Says(calls=(Call("call_tool", {"name": name, "arguments": given}),)),
        Says(answer="Cancelled."),
    )
    run = await run_question(QUESTION, user=person)
    approval = await Approval.objects.aget(run=run)
    assert approval.tool == name

    wrong = Decision(digest=approval.digest, is_approved=True, arguments='{"id": 1}')
    with pytest.raises(DecisionRejected, match="subscription_id"):
        await decide(person, approval.pk, wrong)
    await decide(person, approval.pk, Decision(digest=approval.digest, is_approved=True))
    await runs.wait(run)

    run = await verify_run(run)
    step = await run.steps.aget(kind="tool")
    assert (step.action, run.answer) == (name, "Cancelled.")
    assert "sub_1" in step.observation


async def test_the_next_question_of_a_chat_is_sent_the_same_tools(many, scripted, person):
    model = scripted(Says(answer="Yes."), Says(answer="Yes."), Says(answer="No."))

    await run_question(QUESTION, user=person)
    await run_question("有休の申請、木曜もお願いします", user=person)
    await run_question("Refund charge ch_1", user=person)

    first, second, third = sent(model)
    assert first == second
    assert REFUND in third


async def test_an_agent_can_send_all_tools(many, scripted, person):
    await Agent.objects.aupdate(tool_selection="all")
    model = scripted(Says(answer="Yes."))

    await run_question(QUESTION, user=person)

    assert len(sent(model)[0]) > 60
    assert "find_tools" not in sent(model)[0]


@pytest.mark.thorough
def test_of_300_tools_the_right_one_is_sent_in_both_languages(capsys, monkeypatch):
    monkeypatch.setattr(embeddings, "configured_model", lambda: embeddings.LOCAL)

    call_command("evaluate_tools")

    told = capsys.readouterr().out.partition("words and meaning (local)")[2]
    rows = [line.split() for line in told.splitlines() if line.startswith(("en", "ja"))]
    shares = [float(row[-2].rstrip("%")) for row in rows]
    assert len(shares) == 4
    assert min(shares) >= 95
