"""The demo model's structured answers, filled from the conversation."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.guardrails import Guardrails
from agents.engine.json_schema import validate_schema, violations
from agents.engine.loop.output.output_schema import OutputSchema
from agents.engine.loop.runtime import AgentRuntime
from agents.engine.loop.tool_calls.tool_fallback import FallbackStrategy
from agents.engine.planner import ReActPlanner
from agents.engine.tool import ToolRegistry
from agents.engine.turn import assemble
from agents.llm.demo.conversation import Finding, Question, Situation
from agents.llm.demo.forms import Form
from tests.llm.demo_shop import demo
from tests.llm.test_demo import chunks_of, shop, tools

__all__ = ["shop", "tools"]

ROWS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "value": {"type": "number"}},
        "required": ["name", "value"],
        "additionalProperties": False,
    },
}
REPORT = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "rows": ROWS,
        "note": {"type": ["string", "null"]},
    },
    "required": ["title", "rows"],
    "additionalProperties": False,
}


def an_object(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


async def output_of(question, schema, tools, dialect="native"):
    """Return a whole run's output: tools first, then the structured answer."""
    agent = AgentRuntime(
        ReActPlanner(demo(), "demo", dialect=dialect),
        ToolRegistry(tools),
        Guardrails(),
        FallbackStrategy(),
        output=OutputSchema(schema),
    )
    events = [event async for event in agent.stream(question)]
    assert events[-1].data["stopped_reason"] == "completed", events[-1].data["detail"]
    assert not [e for e in events if e.type == "step" and e.data["status"] == "failed"]
    return events[-1].data["output"]


BEST = [
    {"name": "Arita Porcelain Cup", "value": 2492},
    {"name": "Ceremonial Matcha", "value": 1952},
]
REPORTS = [
    (
        "top 2 products by revenue",
        BEST,
        "The best product by revenue is Arita Porcelain Cup, with 2,492.",
    ),
    ("売上トップ2の商品", BEST, "売上が最も多い商品は Arita Porcelain Cup（2,492）です。"),
    (
        "What is 12.5% of 3480?",
        [{"name": "3480 * 12.5 / 100", "value": 435}],
        "The result is 435 (3480 * 12.5 / 100).",
    ),
    (
        "How many customers are there?",
        [{"name": "customers", "value": 36}],
        "The number of customers is 36.",
    ),
    (
        "What was the revenue in 2019?",
        [],
        "The database has no data for the revenue in 2019.",
    ),
    (
        "latest 2 orders",
        [{"name": "2026-11-14", "value": 76}, {"name": "2026-11-12", "value": 14.5}],
        "The 2 latest orders",
    ),
]


@pytest.mark.parametrize(("question", "rows", "note"), REPORTS, ids=lambda v: str(v)[:30])
@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_a_report_has_the_results_in_the_questions_language(
    question, rows, note, dialect, tools
):
    output = await output_of(question, REPORT, tools, dialect)

    assert output == {"title": question, "rows": rows, "note": note}


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_a_schema_that_is_not_an_object_is_read_from_the_instructions(dialect, tools):
    assert await output_of("top 2 products by revenue", ROWS, tools, dialect) == BEST
    assert await output_of("6 * 7", {"type": "integer"}, tools, dialect) == 42


@pytest.mark.parametrize("dialect", ["native", "react"])
async def test_without_tools_the_answer_says_that_a_demo_cannot_know(dialect):
    output = await output_of("Who wrote Genji?", REPORT, [], dialect)

    assert (output["title"], output["rows"]) == ("Who wrote Genji?", [])
    assert "not AI" in output["note"]


async def test_a_structured_answer_is_plain_json():
    form = {"type": "json_schema", "json_schema": {"schema": REPORT}}
    turn = assemble(await chunks_of([{"role": "user", "content": "Hi"}], response_format=form))

    assert json.loads(turn.content)["title"] == "Hi"
    assert turn.reasoning == "Now I write the answer in the requested format."


def fill(schema, answer="", question="Which?", tables=(), **more):
    """Fill the schema after this answer and these tables."""
    findings = [Finding("database", "", json.dumps(rows)) for rows in tables]
    findings += [Finding("calculator", *each) for each in more.get("sums", ())]
    about = {"question": Question(question), "findings": tuple(findings), "answer": answer}
    return Form(schema, Situation(**about)).value()


def table(columns, *rows):
    return {"columns": columns.split(), "rows": rows}


CITIES = table(
    "id city_name country orders", [1, "Tokyo", "Japan", 7], [2, "Paris", "France", 3]
)
WINNER = ("The best country is **Japan**, with **2** customers.", "Which country is best?")


@pytest.mark.parametrize(
    ("properties", "row"),
    [
        ({"city_name": "string", "orders": "integer"}, {"city_name": "Tokyo", "orders": 7}),
        ({"country": "string", "number": "number"}, {"country": "Japan", "number": 7}),
        ({"where": "string", "how_many": "number"}, {"where": "Tokyo", "how_many": 7}),
        ({"id": "integer", "country": "string"}, {"id": 1, "country": "Japan"}),
    ],
)
def test_columns_are_matched_by_name_and_then_by_type(properties, row):
    item = an_object(**{name: {"type": kind} for name, kind in properties.items()})
    schema = an_object(places={"type": "array", "items": item})

    assert fill(schema, tables=[CITIES])["places"][0] == row


def test_columns_that_differ_in_a_digit_are_not_confused():
    years = table("city y2024 y2025", ["Tokyo", 3, 7], ["Paris", 2, 5])
    item = an_object(city={"type": "string"}, y2024={"type": "number"})

    rows = fill({"type": "array", "items": item}, tables=[years])

    assert rows == [{"city": "Tokyo", "y2024": 3}, {"city": "Paris", "y2024": 2}]


async def test_a_large_number_keeps_all_its_digits(tools):
    output = await output_of("12345678901234567 * 10 + 1", {"type": "integer"}, tools)

    assert output == 123456789012345671


def test_a_row_with_a_missing_required_value_is_left_out():
    rows = table("name revenue", ["Tea", 5], ["Cups", None])

    assert fill(ROWS, tables=[rows]) == [{"name": "Tea", "value": 5}]


def test_unknown_values_are_left_out_or_null():
    maybe = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    schema = an_object(best={"type": "string"}, customers={"type": "integer"}, author=maybe)
    schema["properties"]["is_large"] = {"type": "boolean"}

    assert fill(schema, *WINNER) == {"best": "Japan", "customers": 2, "author": None}


def test_unknown_required_values_are_empty():
    schema = an_object(
        is_large={"type": "boolean"},
        price={"type": "number", "minimum": 0},
        seen={"type": "string", "format": "date"},
        tags={"type": "array", "items": {"type": "string"}},
        kind={"enum": ["big", "small", "unknown"]},
    )
    value = fill(schema, "I found nothing.")

    assert violations(schema, value) == []
    assert (value["is_large"], value["price"], value["tags"]) == (False, 0, [])


@pytest.mark.parametrize(
    ("answer", "question", "choice"),
    [
        ("The order was **refunded**.", "Which?", "refunded"),
        ("It waits.", "Was it shipped?", "shipped"),
        ("It is sent back.", "What is it?", None),
        ("It is still in transit.", "Which?", "in_transit"),
    ],
)
def test_an_enum_value_is_taken_from_the_text(answer, question, choice):
    schema = an_object(status={"enum": ["shipped", "refunded", "in_transit", None]})

    assert fill(schema, answer, question) == {"status": choice}


def test_references_are_followed_without_loops():
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": an_object(
                answer={"$ref": "#/$defs/word"},
                inner={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                total={"allOf": [{"type": "number"}]},
            ),
            "word": {"type": "string", "maxLength": 9},
        },
    }
    value = fill(schema, "It is **42** in all.")

    assert violations(validate_schema(schema), value) == []
    assert (value["answer"], value["total"]) == ("It is 42…", 42)


def test_only_successful_results_are_used():
    findings = (
        Finding("calculator", "1 / 0", "Error: Division by zero."),
        Finding("calculator", "6 * 7", "42"),
        Finding("other", "", '{"columns": 5, "rows": "many"}'),
    )
    situation = Situation(question=Question("6 * 7"), findings=findings)

    assert Form(ROWS, situation).value() == [{"name": "6 * 7", "value": 42}]


WORDS = "title rows note name value revenue product total country is_open 件名 totalRevenue id"
NAMES = st.sampled_from(WORDS.split())
TEXTS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={"maxLength": st.integers(3, 30), "minLength": st.integers(0, 3)},
)
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["number", "integer"])},
    optional={"minimum": st.integers(-9, 9), "maximum": st.integers(10, 99)},
)
CHOICES = st.lists(st.sampled_from(["Tea", "Paper", "open", "x"]), min_size=1, unique=True)
SINGLE = st.one_of(
    TEXTS,
    NUMBERS,
    st.just({"type": "boolean"}),
    CHOICES.map(lambda values: {"enum": values}),
    CHOICES.map(lambda values: {"const": values[0]}),
    st.just({"$ref": "#/$defs/one"}),
)


def nested_schemas(parts):
    objects = st.dictionaries(NAMES, parts, max_size=4).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "additionalProperties": st.booleans(),
                "required": st.lists(st.sampled_from(sorted(properties) or ["x"]), unique=True)
                if properties
                else st.just([]),
            }
        )
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": parts},
        optional={"minItems": st.integers(0, 2), "maxItems": st.integers(2, 5)},
    )
    either = parts.map(lambda part: {"anyOf": [part, {"type": "null"}]})
    return st.one_of(objects, arrays, either)


SCHEMAS = st.recursive(SINGLE, nested_schemas, max_leaves=8).map(
    lambda schema: {**schema, "$defs": {"one": {"type": "string", "minLength": 1}}}
)
SHOP = table("product revenue", ["Tea", 12.5], ["Paper", 7])
CONVERSATIONS = st.sampled_from(
    [
        {},
        {
            "answer": "The best product is **Tea**, with **12.50**.",
            "question": "Best products?",
            "tables": [SHOP],
        },
        {
            "answer": "答えは **42** です。",
            "question": "6かける7は？",
            "sums": [("6 * 7", "42")],
        },
        {
            "answer": "There are **7**.",
            "question": "How many?",
            "tables": [table("orders", [7])],
        },
    ]
)


@given(schema=SCHEMAS, about=CONVERSATIONS)
def test_any_ordinary_schema_is_filled_validly(schema, about):
    value = fill(validate_schema(schema), **about)

    assert violations(schema, value) == []
    assert json.loads(json.dumps(value)) == value
