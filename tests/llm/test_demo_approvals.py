"""The demo model's replies after decisions about its calls."""

import json

import pytest

from agents.engine.events import EventType
from agents.engine.guardrails.checks import Guardrails
from agents.engine.loop import Approvals
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.tool_calls.approval import ApprovalDecision
from agents.engine.loop.tool_calls.tool_fallback import FallbackStrategy
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.tool import ToolRegistry
from agents.llm.demo import conversation
from agents.tools.calculator import CalculatorTool
from tests.engine.loop.test_approval import collect_events, with_decision
from tests.llm.demo_shop import demo
from tests.llm.test_demo import shop, tools

__all__ = ["shop", "tools"]

SUM, SUM_JA = "What is 64 * 7?", "64かける7は？"
SHARE = "How many customers are there, and what is 15% of that?"


@pytest.fixture(params=["native", "react"])
def careful(request, tools):
    """An agent whose calls all require approval."""

    def agent(tools=tools, **more):
        return AgentRuntime(
            ReActPlanner(demo(), "demo", dialect=request.param),
            ToolRegistry(tools),
            Guardrails(),
            FallbackStrategy(),
            capabilities=[Approvals(auto_execute=False)],
            **more,
        )

    return agent


async def answer(agent, question, *words):
    """Return the final answer after these decisions."""
    events = await collect_events(agent.stream(question))
    for word in words:
        events = with_decision(events, **word)
        events += await collect_events(agent.resume(events))
    assert events[-1].type is EventType.RUN_FINISHED, "more was asked about than expected"
    return events[-1].data["answer"]


def edited(**arguments):
    return {"arguments": json.dumps(arguments)}


def rejection(reason=""):
    return {"is_approved": False, "reason": reason}


YES = {"is_approved": True}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (SUM, "The result is **42** (`2 * 21`)."),
        (SUM_JA, "答えは **42** です（`2 * 21`）。"),
    ],
)
async def test_the_answer_uses_the_users_edited_expression(careful, question, said):
    assert await answer(careful(), question, edited(expression="2 * 21")) == said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            SUM,
            "The `calculator` tool failed: Division by zero.",
        ),
        (
            SUM_JA,
            "`calculator` ツールが失敗しました：Division by zero.",
        ),
    ],
)
async def test_a_failed_edited_call_is_reported_and_not_replaced(careful, question, said):
    assert await answer(careful(), question, edited(expression="1 / 0")) == said


async def test_no_number_is_read_from_an_error_message(careful):
    said = await answer(careful(), SUM, edited(expression="import os"))

    assert said.startswith("The `calculator` tool failed: ")
    assert "64" not in said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "How many customers are there?",
            "With the arguments changed to `SELECT COUNT(*) AS orders FROM orders`, `database` "
            "returned:\n\n| Orders |\n| ---: |\n| 497 |",
        ),
        (
            "顧客は何人いますか？",
            "変更後の引数（`SELECT COUNT(*) AS orders FROM orders`）で、`database` "
            "が返した結果：\n\n| 注文数 |\n| ---: |\n| 497 |",
        ),
    ],
)
async def test_rows_of_an_edited_query_are_labelled_as_edited(careful, question, said):
    query = edited(sql="SELECT COUNT(*) AS orders\nFROM orders")

    assert await answer(careful(), question, query) == said


async def test_a_plan_continues_with_the_result_of_an_edited_call(careful):
    query = edited(sql="SELECT 8 AS orders FROM orders LIMIT 1")

    said = await answer(careful(), SHARE, query, YES)

    assert said.endswith("| 8 |\n\nThe result is **1.2** (`8 * 15 / 100`).")


@pytest.mark.parametrize(
    ("question", "begin"),
    [
        (
            "Who is the president of France?",
            "With the arguments changed to `how do I stop a run`, `search` returned:\n\n",
        ),
        (
            "フランスの大統領は誰ですか",
            "変更後の引数（`how do I stop a run`）で、`search` が返した結果：\n\n",
        ),
    ],
)
async def test_passages_are_matched_to_the_users_edited_search(careful, question, begin):
    said = await answer(careful(), question, edited(query="how do I stop a run"))

    assert said.startswith(begin)
    assert "[1]" in said


@pytest.mark.parametrize(
    ("question", "reason", "said"),
    [
        (
            SUM,
            "Not today.\nNor tomorrow.",
            "The `calculator` call was rejected, so it didn't run. "
            "Comment: “Not today.\nNor tomorrow.”",
        ),
        (SUM, "", "The `calculator` call was rejected, so it didn't run."),
        (
            SUM_JA,
            "今日はだめです。",
            "`calculator` の呼び出しは却下されたため、実行していません。"
            "コメント：「今日はだめです。」",
        ),
        (
            "total revenue",
            "Not with column amount.",
            "The `database` call was rejected, so it didn't run. "
            "Comment: “Not with column amount.”",
        ),
    ],
)
async def test_a_rejected_call_is_reported_with_the_users_reason(
    careful, question, reason, said
):
    assert await answer(careful(), question, rejection(reason)) == said


async def test_results_before_a_rejected_call_are_reported(careful):
    said = await answer(careful(), SHARE, YES, rejection())

    assert said == (
        "The number of customers is **36**.\n\n"
        "The `calculator` call was rejected, so it didn't run."
    )


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            rejection("Not her."),
            "The `ask_helper` call was rejected, so it didn't run. Comment: “Not her.”",
        ),
        (edited(task="2 * 21"), "helper says: The result is **42** (`2 * 21`)."),
    ],
)
async def test_a_handoff_can_be_rejected_and_edited(careful, word, said):
    helper = AgentRuntime(
        ReActPlanner(demo(), "demo"),
        ToolRegistry([CalculatorTool()]),
        Guardrails(),
        FallbackStrategy(),
        name="helper",
    )
    lead = careful([Handoff("helper", lambda: helper)], name="lead")

    assert await answer(lead, "Ask helper: 6 * 7", word) == said


class OnceCalculator(CalculatorTool):
    """An at-most-once tool: after an interruption, a user decides about the call."""

    effect = "at_most_once"


@pytest.mark.parametrize(
    ("question", "reason", "said"),
    [
        (
            SUM,
            "It showed 448.",
            "The `calculator` call ran, but its result was lost. Comment: “It showed 448.”",
        ),
        (
            SUM_JA,
            "",
            "`calculator` の呼び出しは実行されましたが、結果は失われました。",
        ),
    ],
)
async def test_a_lost_result_is_reported_without_a_number(careful, question, reason, said):
    agent = careful([OnceCalculator()])
    events = with_decision(await collect_events(agent.stream(question)))
    done = await collect_events(agent.resume(events))
    cut_off = events + done[: [event.type for event in done].index(EventType.TOOL_CALL) + 1]

    asked = cut_off + await collect_events(agent.resume(cut_off))
    last = await collect_events(agent.resume(with_decision(asked, **rejection(reason))))

    assert last[-1].data["answer"] == said


@pytest.mark.parametrize("result", ["42", "Error: no.", "", "a (b)\nc"])
@pytest.mark.parametrize("arguments", ['{"a": "(b)"}', '{"a": "1)\\n2"}'])
def test_arguments_and_result_are_distinguished(arguments, result):
    told = ApprovalDecision(is_approved=True, arguments=arguments).annotate(result)

    for observation in (told, told.rstrip()):
        found = conversation._finding("tool", "own", observation)
        assert (found.input, found.text) == (json.loads(arguments)["a"], result)
        assert found.is_changed


@pytest.mark.parametrize("observation", ["42", "Error: declined.", "(A person changed it)", ""])
def test_tool_output_is_not_read_as_a_users_decision(observation):
    found = conversation._finding("tool", "own", observation)

    assert (found.input, found.text, found.is_changed) == ("own", observation, False)
