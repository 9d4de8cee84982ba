"""Replies of text models as JSON, where the server enforces a schema."""

import json

import pytest

from agents.engine.errors import (
    ModelError,
    PlanParseError,
    ProviderFailed,
    RateLimited,
)
from agents.engine.loop import AgentRuntime
from agents.engine.planner import ReActPlanner, react_planner
from agents.engine.planner.reply_readers import ReactReader
from agents.engine.prompt_parts import NOTE_PROMPT
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel, delta, finish
from agents.tools.calculator import CalculatorTool

CALL = {"thought": "A sum.", "action": "calculator", "action_input": {"expression": "6 * 7"}}
ANSWER = {"thought": "I know it.", "final_answer": 'It is "42" 🐟.\nYes.'}


@pytest.fixture(autouse=True)
def no_refusals(monkeypatch):
    monkeypatch.setattr(react_planner, "SCHEMA_REFUSALS", {})


def read(text, size=10_000, reason="stop"):
    """Return the plan and the text as displayed, by kind."""
    reader = ReactReader(by_schema=True)
    pieces = []
    for start in range(0, len(text), size):
        pieces += reader.feed(delta(content=text[start : start + size]))
    pieces += reader.feed(finish(reason)) + reader.rest()
    displayed = {"thought": "", "answer": ""}
    for kind, piece in pieces:
        displayed[kind] += piece
    return reader.result(), displayed


def planner(*script, **options):
    model = ScriptedModel(*script, dialect="react")
    return ReActPlanner(model, "m", dialect="react", enforces_schemas=True, **options)


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_answer_is_displayed_as_it_is_saved_wherever_it_is_cut(size, indent):
    plan, displayed = read(json.dumps(ANSWER, indent=indent), size)

    assert (plan.thought, plan.final_answer) == tuple(ANSWER.values())
    assert displayed == {"thought": "I know it.", "answer": ANSWER["final_answer"]}


def test_a_call_has_the_name_and_the_arguments():
    plan, displayed = read(json.dumps(CALL), 3)

    assert (plan.action, plan.calls[0].input) == ("calculator", {"expression": "6 * 7"})
    assert displayed == {"thought": "A sum.", "answer": ""}


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_a_server_that_ignores_the_schema_may_send_labels_or_a_fence(size):
    labels = 'Thought: A sum.\nAction: calculator\nAction Input: {"expression": "1"}'
    assert read(labels, size)[0].calls[0].input == {"expression": "1"}
    assert read(f"```json\n{json.dumps(CALL)}\n```", size)[0].action == "calculator"
    assert read("It is 42.", size)[1]["answer"] == "It is 42."


def test_a_reply_that_was_cut_off_is_never_half_a_call():
    with pytest.raises(PlanParseError, match="output limit"):
        read(json.dumps(CALL)[:-8], reason="length")
    with pytest.raises(PlanParseError, match="final_answer"):
        read(json.dumps(CALL)[:-8])

    plan, _ = read(json.dumps(ANSWER)[:-10], reason="length")
    assert plan.final_answer.startswith('It is "42"')
    assert plan.turn.caveat == "The answer was cut off at the model's output limit."


@pytest.mark.parametrize("text", ["{}", '{"city": "Oslo"}', '{"action": "none"}'])
def test_other_json_is_asked_for_again(text):
    with pytest.raises(PlanParseError, match='"final_answer"'):
        read(text)


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(("said", "expected"), [("Observation: 42", "42"), ("O", "O")])
def test_the_label_of_a_result_is_no_part_of_an_answer(said, expected, size):
    plan, displayed = read(json.dumps({"final_answer": said}), size)

    assert plan.final_answer == displayed["answer"] == expected


@pytest.mark.parametrize("size", [1, 10_000])
def test_an_echo_of_our_prompt_in_a_json_string_is_left_out(size):
    echo = f'<untrusted_content from="search">\n{NOTE_PROMPT}\nIt is 42.'

    plan, displayed = read(json.dumps({"thought": "", "final_answer": echo}), size)

    assert plan.final_answer == displayed["answer"].strip() == "It is 42."


def test_the_schema_allows_each_tool_with_its_own_arguments_or_an_answer():
    sent = planner().request("?", AgentState(), [CalculatorTool(), "search"])

    schema = sent.parameters["response_format"]["json_schema"]["schema"]
    *calls, answer = (branch["properties"] for branch in schema["anyOf"])
    assert [call["action"]["enum"] for call in calls] == [["calculator"], ["search"]]
    assert calls[0]["action_input"] == CalculatorTool.parameters
    assert "final_answer" in answer
    assert '"final_answer"' in sent.messages[0]["content"]
    assert "response_format" not in planner().request("?", AgentState(), []).parameters


async def test_the_history_has_the_form_of_the_replies():
    chunks = [[delta(content=json.dumps(reply)), finish("stop")] for reply in (CALL, ANSWER)]
    asked = planner()
    asked.llm = Replies(chunks)

    result = await AgentRuntime(asked, [CalculatorTool()]).run("What is 6 * 7?")

    assert result.answer == ANSWER["final_answer"]
    assert json.loads(asked.llm.requests[1]["messages"][2]["content"]) == CALL


@pytest.mark.parametrize("error", [ModelError("No grammars."), ProviderFailed()])
async def test_a_server_that_rejects_schemas_is_asked_without_and_remembered(error):
    asked = planner(error, Says(answer="Hello."))

    result = await AgentRuntime(asked, [CalculatorTool()]).run("?")

    with_schema, without = asked.llm.requests
    assert (result.answer, len(result.steps)) == ("Hello.", 1)
    assert ["response_format" in sent for sent in (with_schema, without)] == [True, False]
    assert "Final Answer" in without["messages"][0]["content"]
    later = planner().request("?", AgentState(), [CalculatorTool()])
    assert "response_format" not in later.parameters


@pytest.mark.parametrize(("max_steps", "calls"), [(2, 1), (9, 2)])
async def test_a_model_that_only_calls_tools_has_to_answer_in_the_end(max_steps, calls):
    call = [delta(content=json.dumps(CALL)), finish("stop")]
    asked = planner()
    asked.llm = Replies([call] * calls + [[delta(content=json.dumps(ANSWER)), finish("stop")]])

    result = await AgentRuntime(asked, [CalculatorTool()], max_steps=max_steps).run("?")

    schemas = [sent["response_format"]["json_schema"]["schema"] for sent in asked.llm.requests]
    assert result.answer == ANSWER["final_answer"]
    assert [len(schema["anyOf"]) for schema in schemas] == [2] * calls + [1]


async def test_a_model_that_never_ends_its_thought_has_to_answer():
    asked = planner()
    cut = [delta(content='{"thought": "The sea, the sea, the'), finish("length")]
    asked.llm = Replies([cut, [delta(content='{"final_answer": "Blue."}'), finish("stop")]])

    result = await AgentRuntime(asked, [CalculatorTool()]).run("?")

    schema = asked.llm.requests[1]["response_format"]["json_schema"]["schema"]
    assert result.answer == "Blue."
    assert "output limit" not in str(asked.llm.requests[1]["messages"])
    assert [list(branch["properties"]) for branch in schema["anyOf"]] == [["final_answer"]]


async def test_a_rate_limit_is_no_refusal_of_the_schema():
    asked = planner(RateLimited())

    await AgentRuntime(asked, [CalculatorTool()]).run("?")

    assert asked.request("?", AgentState(), [CalculatorTool()]).by_schema


class Replies(ScriptedModel):
    async def stream(self, **request):
        self.requests.append(request)
        for chunk in self.script.pop(0):
            yield chunk

    def __init__(self, chunks):
        super().__init__()
        self.script = chunks
