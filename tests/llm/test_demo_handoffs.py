"""The demo model as an agent that hands off to others."""

import time

import pytest

from agents.engine import ModelError
from agents.engine.guardrails.checks import Guardrails
from agents.engine.loop.handoff import Handoff
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.tool_calls.tool_fallback import FallbackStrategy
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.testing import ScriptedModel
from agents.engine.tool import ToolRegistry
from agents.llm.demo.conversation import Offer, Question, Situation
from agents.llm.demo.model import decide
from agents.tools.calculator import CalculatorTool
from tests.llm.demo_shop import TODAY, demo

TASK = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
COLLEAGUES = tuple(
    Offer(f"ask_{agent}", "", TASK) for agent in ("careful", "helper", "helper-2")
)


def agent(name, tools, dialect="native", model=None):
    return AgentRuntime(
        ReActPlanner(model or demo(), "demo", dialect=dialect),
        ToolRegistry(tools),
        Guardrails(),
        FallbackStrategy(),
        name=name,
    )


def lead(dialect="native", **models):
    """Return an agent that can hand off to two others, who can calculate."""
    others = [
        agent(name, [CalculatorTool()], dialect, models.get(name))
        for name in ("careful", "helper")
    ]
    handoffs = [Handoff(other.name, lambda other=other: other) for other in others]
    return agent("lead", handoffs, dialect)


def handoff_for(text, tools=COLLEAGUES):
    step = decide(Situation(question=Question(text), tools=tools), TODAY)
    return step.tool or None, step.input.get("task")


@pytest.mark.parametrize(
    ("wish", "name", "task"),
    [
        ("Ask careful: what is 6 × 7?", "careful", "what is 6 × 7?"),
        ("ask the careful agent to calculate 6 * 7", "careful", "calculate 6 * 7"),
        ("Please ask Helper what 6 times 7 is.", "helper", "what 6 times 7 is."),
        ("Could you ask agent helper-2 about refunds?", "helper-2", "refunds?"),
        ("Tell helper, 6 * 7", "helper", "6 * 7"),
        ("@careful 6 * 7", "careful", "6 * 7"),
        ("Ask helper, careful, and helper-2: 6 * 7", "helper", "6 * 7"),
        ("carefulに聞いて: 6かける7は？", "careful", "6かける7は？"),
        ("carefulに6かける7を聞いて", "careful", "6かける7"),
        ("helperに「6かける7は？」と聞いてください。", "helper", "6かける7は？"),
        ("helperエージェントに注文が何件か尋ねて", "helper", "注文が何件"),
        ("carefulさんに、6かける7を計算してもらって", "careful", "6かける7を計算して"),
        ("helper-2にお願いして、売上合計", "helper-2", "売上合計"),
    ],
)
def test_a_request_that_names_an_agent_is_handed_off_to_it(wish, name, task):
    assert handoff_for(wish) == (f"ask_{name}", task)


@pytest.mark.parametrize("text", ["I ask, carefully", "Ask careful", "Hello!"])
def test_without_such_a_request_there_is_no_handoff(text):
    assert handoff_for(text) == (None, None)


@pytest.mark.parametrize("seed", ["ask helper , ", "helper  ,  ", "helperに聞", "@helper and "])
def test_a_long_strange_request_is_read_quickly(seed):
    begin = time.process_time()
    handoff_for((seed * 500)[:2_000])

    assert time.process_time() - begin < 2


def test_an_agent_named_like_a_tool_is_not_called_as_one():
    question = Question("What is 6 times 7?")
    tools = (Offer("ask_calculator", "", TASK),)
    step = decide(Situation(question=question, tools=tools, dialect="native"), TODAY)

    assert (step.tool, step.input) == ("ask_calculator", {"task": question.text})


@pytest.mark.parametrize("dialect", ["native", "react"])
@pytest.mark.parametrize(
    ("wish", "answer"),
    [
        ("Ask careful: what is 6 × 7?", "careful says: The result is **42** (`6 * 7`)."),
        ("carefulに6かける7を聞いて", "carefulによると、答えは **42** です（`6 * 7`）。"),
        (
            "Ask helper and careful: 6 * 7",
            "helper says: The result is **42** (`6 * 7`).\n\n"
            "careful says: The result is **42** (`6 * 7`).",
        ),
    ],
)
async def test_the_answer_names_the_agent(wish, answer, dialect):
    result = await lead(dialect).run(wish)

    assert result.answer == answer


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("Ask careful: 6 * 7", "careful couldn't finish: The provider refused."),
        (
            "carefulに聞いて: 6かける7",
            "carefulは完了できませんでした：The provider refused.",
        ),
    ],
)
async def test_an_unfinished_sub_agent_is_reported(wish, said):
    broken = ScriptedModel(ModelError("The provider refused."))

    result = await lead(careful=broken).run(wish)

    assert result.answer == said
    assert result.stopped_reason == "completed"


async def test_answers_of_other_agents_are_kept_when_one_fails():
    broken = ScriptedModel(ModelError("The provider refused."))

    result = await lead(careful=broken).run("Ask helper and careful: 6 * 7")

    assert result.answer.startswith("helper says: The result is **42**")
    assert result.answer.endswith("careful couldn't finish: The provider refused.")


async def test_an_agent_with_handoffs_only_explains_how_to_use_them():
    result = await lead().run("Hello")

    assert "- Ask careful: Hello\n- Ask helper: Hello" in result.answer


async def test_a_multiline_answer_is_below_the_agents_name():
    result = await lead().run("Ask helper: hello")

    assert result.answer.startswith("helper says:\n\nI'm Ashiato's demo model")


@pytest.mark.parametrize("question", ["What is 12.5% of 3480?", "12.5%の3480は？"])
def test_an_agent_without_tools_hands_off_what_others_can_do(question):
    assert handoff_for(question) == ("ask_helper", question)
    assert handoff_for(question, COLLEAGUES[:1]) == ("ask_careful", question)


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_the_lead_answers_the_first_example_question(dialect):
    result = await lead(dialect).run("What is 12.5% of 3480?")

    assert "435" in result.answer
