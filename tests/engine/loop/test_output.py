import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import BaseModel, ConfigDict, Field

from agents.engine import (
    FallbackStrategy,
    Guardrails,
    OutputDecodingFailed,
    ReActPlanner,
    json_schema,
)
from agents.engine.errors import BadSchema, ModelError, RateLimited
from agents.engine.guardrails.checks import GuardrailAction, Pattern
from agents.engine.loop.output.output_schema import OutputSchema, to_markdown
from agents.engine.loop.output.output_step import OutputStep, ThoughtModelCall
from agents.engine.loop.run_state import RunState
from agents.engine.testing import Call, Says, ScriptedModel, delta, finish
from tests.engine.conftest import NEVER

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
CITIES = {"type": "array", "items": CITY}
KYOTO = {"city": "Kyoto", "people": 1_440_000}
TEXT = json.dumps(KYOTO)


class City(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    city: str
    founded: int = Field(ge=0)


def complaint(form, text):
    with pytest.raises(OutputDecodingFailed) as failure:
        OutputSchema(form).decode(text)
    return str(failure.value)


def schema_error(form):
    with pytest.raises(BadSchema) as failure:
        OutputSchema(form)
    return str(failure.value)


# Valid schemas


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"type": "objekt"}, "Invalid JSON Schema: type: 'objekt'"),
        ({"properties": {"a": {"minimum": "x"}}}, "properties.a.minimum"),
        ({"pattern": "(?=x)"}, "RE2"),
        ({"patternProperties": {"a(": {}}}, "RE2"),
        ({"$ref": "https://example.com/schema.json"}, "can't be resolved"),
        ({"$ref": "#/$defs/none"}, "can't be resolved"),
        ({"$ref": "#"}, "endless reference"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "$sch"),
        ({"unevaluatedProperties": False}, "'unevaluatedProperties' isn't supported"),
        ({"$ref": "#/x", "x": {"pattern": 5}}, "Invalid JSON Schema"),
        ({"default": float("nan")}, "The schema isn't valid JSON"),
        ({"default": {1, 2}}, "The schema isn't valid JSON"),
        ({"description": "x" * 100_000}, "up to 100,000"),
    ],
)
def test_an_unusable_schema_is_rejected_with_a_reason(form, words):
    assert words in schema_error(form)


def test_a_schema_nested_too_deeply_is_rejected():
    form = {}
    for _ in range(900):
        form = {"items": form}

    assert "too deep" in schema_error(form)


def test_a_name_that_providers_reject_is_rejected():
    with pytest.raises(BadSchema, match="1–64 letters"):
        OutputSchema(CITY, name="a city")


def test_a_schema_written_for_another_draft_is_read_as_the_newest():
    form = OutputSchema({"$schema": "http://json-schema.org/draft-07/schema#", **CITY})

    assert form.decode(TEXT) == KYOTO


def test_a_schema_changed_afterwards_changes_nothing():
    given = {"type": "object", "required": []}
    form = OutputSchema(given)
    given["required"].append("x")

    assert form.decode("{}") == {}


# Instructions for the model


def test_a_closed_schema_is_strict_and_an_open_one_is_not():
    optional = {**CITY, "required": ["city"]}
    odd = {**CITY, "properties": {**CITY["properties"], "city": {"minLength": 1}}}

    def is_strict(form):
        return OutputSchema(form).response_format()["json_schema"]["strict"]

    assert is_strict(CITY)
    assert not is_strict(optional)
    assert not is_strict(odd)
    assert is_strict(City.model_json_schema()) is False


def test_the_response_format_has_a_name_and_the_whole_schema():
    form = OutputSchema(CITY, name="city").response_format()

    assert form["type"] == "json_schema"
    assert (form["json_schema"]["name"], form["json_schema"]["schema"]) == ("city", CITY)


def test_a_list_schema_is_described_in_the_prompt_only():
    form = OutputSchema(CITIES)

    assert form.response_format() is None
    assert json.dumps(CITIES) in form.instructions()


# Decoding


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\ufeff  {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"Here you are [1]:\n```json\n{TEXT}\n```\nI hope {{it}} helps.",
        f"Sure! {TEXT} Anything else?",
    ],
)
def test_json_is_found_in_a_code_fence_and_in_prose(text):
    assert OutputSchema(CITY).decode(text) == KYOTO


def test_a_list_is_found_in_prose_that_has_braces():
    assert OutputSchema(CITIES).decode(f"As in {{1}}: [{TEXT}]") == [KYOTO]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "The answer is empty."),
        ("Kyoto.", "The answer contains no JSON."),
        (f"{TEXT} or {TEXT}", "contains 2 JSON values"),
        ('{"city": "Kyoto", "people": }', "Expecting value (line 1, column 29)"),
        (f'{{"nested": {TEXT}, "city"', "The answer isn't valid JSON"),
        ('{"city": "Kyoto", "people": NaN}', "NaN isn't a JSON number"),
        ('So: {"city": "Kyoto", "people": -Infinity}', "-Infinity isn't a JSON number"),
        ('{"city": "Kyoto", "people": 1e999}', "too large"),
        ('{"city": "Kyoto", "people": ' + "9" * 400 + "}", "more than 300 digits"),
        ('{"city": ' + "[" * 200 + "]" * 200 + "}", "more than 50 levels"),
        ("[" * 100_000, "more than 50 levels"),
        ("x" * 1_000_001, "longer than 1,000,000 characters"),
    ],
)
def test_an_invalid_answer_is_rejected_with_a_helpful_message(text, words):
    assert words in complaint(CITY, text)


def test_only_the_first_violations_are_listed_with_path_and_reason():
    rows = [{"city": 1, "people": "many", "mayor": "x"}] * 3

    words = complaint(CITIES, json.dumps(rows))

    assert "[0].city: 1 is not of type 'string'" in words
    assert "[0].people: 'many' is not of type 'integer'" in words
    assert "[0]: unknown property 'mayor'" in words
    assert words.count("[") == 5


def test_a_violation_within_alternatives_names_the_nearest_one():
    form = {"properties": {"at": {"anyOf": [CITY, {"type": "null"}]}}}

    assert "at: 'people' is a required" in complaint(form, '{"at": {"city": "Kyoto"}}')


def test_a_huge_value_is_not_quoted_in_the_message():
    assert len(complaint({"type": "object"}, json.dumps(["x" * 100_000]))) < 400


def test_null_characters_and_surrogates_are_removed_from_strings():
    value = OutputSchema({}).decode('{"a\\u0000": "x\\ud800\\u0000y", "b": "two\nlines"}')

    assert value == {"a": "x\ufffdy", "b": "two\nlines"}
    json.dumps(value, ensure_ascii=False).encode()


def test_a_pattern_with_catastrophic_backtracking_is_fast():
    form = OutputSchema(
        {
            "pattern": "^(a+)+$",
            "patternProperties": {"^(a+)+$": {"type": "null"}},
            "additionalProperties": {"pattern": "^(b+)+$"},
        }
    )
    began = process_time()

    with pytest.raises(OutputDecodingFailed, match="doesn't match"):
        form.decode(json.dumps({"a" * 50_000 + "!": "b" * 50_000 + "!"}))

    assert process_time() - began < 5


def test_properties_that_match_no_pattern_are_additional():
    form = {"patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}

    assert OutputSchema(form).decode('{"x_1": 1}') == {"x_1": 1}
    assert "unknown property 'y'" in complaint(form, '{"y": 1}')
    assert "x_1: 'a' is not of type" in complaint(form, '{"x_1": "a"}')


def test_unique_items_are_compared_quickly():
    form = OutputSchema({"uniqueItems": True})
    many = [{"n": n} for n in range(50_000)]
    began = process_time()

    assert form.decode(json.dumps(many)) == many
    assert process_time() - began < 5
    assert form.decode("[1, true, [1], {}]")
    assert "duplicate" in complaint({"uniqueItems": True}, '[{"a": 1}, {"a": 1.0}]')


def test_exploding_alternatives_are_rejected(monkeypatch):
    monkeypatch.setattr(json_schema, "MAX_CHECKS", 20_000)
    node = {
        "oneOf": [
            {"properties": {"of": {"$ref": "#/$defs/node"}, "kind": {"const": kind}}}
            for kind in "abc"
        ]
    }
    form = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    deep = {"kind": "c"}
    for _ in range(30):
        deep = {"of": deep, "kind": "c"}

    assert "too large to check" in complaint(form, json.dumps(deep))


def test_text_full_of_opening_braces_is_read_quickly():
    began = process_time()
    for text in ("{" * 900_000, '{"a":' * 900, "[{" * 400_000, '{"' + '\\"' * 400_000):
        assert complaint(CITY, text)

    assert process_time() - began < 5


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.none() | st.booleans() | NUMBERS | TEXTS


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_any_json_value_is_returned_unchanged(value):
    text = json.dumps({"value": value})

    decoded = OutputSchema({"type": "object"}).decode(f"Well:\n{text}\nThat is it.")

    assert decoded == {"value": value}


def test_a_pydantic_model_validates_the_answer_and_returns_plain_data():
    form = OutputSchema(City)

    assert form.decode('{"city": "Kyoto", "founded": 794}') == {"city": "Kyoto", "founded": 794}
    with pytest.raises(OutputDecodingFailed, match="founded: Input should be greater"):
        form.decode('{"city": "Kyoto", "founded": -1}')
    with pytest.raises(OutputDecodingFailed, match="mayor: Extra inputs"):
        form.decode('{"city": "Kyoto", "founded": 1, "mayor": "x"}')


# Rendering


def html(value):
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(to_markdown(value))


def test_rows_are_a_table_with_numbers_to_the_right():
    assert to_markdown([KYOTO, {"city": "a|b\n*c*", "people": 2}]) == (
        "| city | people |\n| --- | ---: |\n| Kyoto | 1440000 |\n| a\\|b \\*c\\* | 2 |"
    )


def test_fields_are_rendered_as_a_nested_list():
    value = {"name": "Kyoto", "is_old": True, "mayor": None, "wards": ["Kita", {"no": [1]}]}

    assert to_markdown(value) == (
        "- **name:** Kyoto\n"
        "- **is_old:** true\n"
        "- **mayor:** —\n"
        "- **wards:**\n"
        "  - Kita\n"
        "  - - **no:**\n"
        "      - 1"
    )


def test_a_table_within_a_field_is_a_table():
    assert html({"cities": [KYOTO]}).count("<table>") == 1
    assert html([[KYOTO], 1]).count("<table>") == 1


def test_strings_are_escaped():
    hostile = "# head\n- item\n1. one\n---\n[x](javascript:1) **b** <b> `c` _i_ __s__ &lt;"

    for value in ({"a": hostile}, [hostile], {"**k**": 1, "x": [{"[y]": hostile, "n": 1}]}):
        rendered = html(value)
        for tag in ("<h", "<a", "<em", "<code", "<b>", "<ol"):
            assert tag not in rendered
        assert "&amp;lt;" in rendered


def test_long_lists_are_truncated_with_a_note():
    assert to_markdown([{"n": n} for n in range(1_105)]).endswith("| 99 |\n\n… and 1,005 more")
    assert to_markdown(list(range(102))).endswith("- 99\n- … and 2 more")


@pytest.mark.parametrize(
    ("value", "text"),
    [("**as it is**", "**as it is**"), (3, "3"), (None, "—"), ([], "—"), (False, "false")],
)
def test_a_single_value_is_rendered_as_text(value, text):
    assert to_markdown(value) == text


# The output step


class Stage:
    """The output step of a run, with a scripted model."""

    def __init__(self, llm, dialect="native", form=CITY, words="", **options):
        self.llm = llm
        self.guardrails = options.pop("guardrails", Guardrails())
        self.planner = ReActPlanner(llm, "scripted", dialect=dialect, **options)
        self.trail = RunState.start("agent", "Where?")
        self.trail.state.add_message("user", "Where?")
        self.heard = []
        self.phase = OutputStep(OutputSchema(form), self.trail, self.listen, words)

    def listen(self, step):
        fallback = FallbackStrategy(retry=NEVER)
        planners = [self.planner]
        emit = self.trail.emit
        self.heard.append(ThoughtModelCall(planners, self.guardrails, fallback, emit, step))
        return self.heard[-1]

    def recorded(self, request, planner):
        return {"model": planner.model, "messages": request.messages}

    async def events(self):
        return [event async for event in self.phase.events()]

    async def fails(self, kind):
        """Return the events before the failure, and the error."""
        events = []
        try:
            async for event in self.phase.events():
                events.append(event)
        except kind as error:
            return events, error
        pytest.fail("it did not fail")


@pytest.fixture
def stage(dialect):
    def build(*script, **options):
        said = [Says(answer=says) if isinstance(says, str) else says for says in script]
        return Stage(ScriptedModel(*said, dialect=dialect), dialect, **options)

    return build


def kinds(events):
    return [event.type.value for event in events]


def steps(events):
    return [(e.data["kind"], e.data["status"]) for e in events if e.type == "step"]


async def test_the_final_request_has_the_schema_and_no_tools(stage):
    on = stage(TEXT, words="It is Kyoto.", parameters={"tool_choice": "auto", "seed": 1})
    await on.events()

    request = on.llm.requests[0]
    assert on.phase.value == KYOTO
    assert on.phase.plan.final_answer == "- **city:** Kyoto\n- **people:** 1440000"
    assert request["tools"] is None
    assert "tool_choice" not in request
    assert request["seed"] == 1
    assert request["response_format"] == OutputSchema(CITY).response_format()


async def test_the_final_request_has_the_draft_and_then_the_instructions(stage):
    on = stage(TEXT, words="It is Kyoto.")
    await on.events()

    question, words, wish = on.llm.requests[0]["messages"]
    assert question["content"] == "Where?"
    assert words["content"].endswith("It is Kyoto.")
    assert wish == {"role": "user", "content": OutputSchema(CITY).instructions()}


async def test_without_tools_question_and_schema_are_one_message(stage):
    on = stage(TEXT)
    await on.events()

    (question,) = on.llm.requests[0]["messages"]
    assert question["content"].startswith("Where?\n\nNow write")


async def test_the_output_step_is_not_saved_in_the_conversation(stage):
    on = stage("No.", TEXT, words="It is Kyoto.")
    await on.events()

    assert on.trail.state.get_messages() == [{"role": "user", "content": "Where?"}]
    assert on.trail.turn == 0


async def test_json_is_streamed_but_not_as_the_answer(stage):
    events = await stage(TEXT).events()

    said = "".join(e.data["content"] for e in events if e.type == "thought_delta")
    assert json.loads(said) == KYOTO
    assert "delta" not in kinds(events)
    assert [k for k in kinds(events) if k != "thought_delta"] == [
        "step_started",
        "usage",
        "step",
    ]


async def test_an_invalid_answer_is_a_failed_step_that_the_model_is_sent(stage):
    on = stage('{"city": "Kyoto"}', TEXT)
    events = await on.events()

    sentence = "The answer doesn't match its schema: 'people' is a required property."
    failed = next(e.data for e in events if e.type == "step")
    assert steps(events) == [("answer", "failed"), ("answer", "done")]
    assert (failed["error"], failed["thought"]) == (sentence, '{"city": "Kyoto"}')
    said, wish = on.llm.requests[1]["messages"][-2:]
    assert said == {"role": "assistant", "content": '{"city": "Kyoto"}'}
    assert wish["content"].startswith(sentence)


async def test_after_two_retries_it_fails_and_keeps_the_text(stage):
    on = stage("One.", "Two.", "Three.")
    events, error = await on.fails(OutputDecodingFailed)

    assert steps(events) == [("answer", "failed")] * 3
    assert str(error) == "The answer contains no JSON."
    assert "".join(on.heard[-1].text_parts) == "Three."
    assert on.trail.progress.used.completion_tokens > 0
    on.llm.assert_used_up()


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{json.dumps(KYOTO, indent=2)}\n```",
        f"<think>Is it {{}}?</think>{TEXT}",
        f"Thought: easy.\nFinal Answer: {TEXT}",
        f"Action: none\nAction Input: {TEXT}",
    ],
)
async def test_a_model_without_tool_support_can_return_plain_json(text):
    on = Stage(ScriptedModel(Says(answer=text)), "react", words="It is Kyoto.")
    await on.events()

    assert on.phase.value == KYOTO
    assert "Action Input" not in json.dumps(on.llm.requests[0]["messages"])


async def test_fields_named_like_react_labels_are_kept_as_fields():
    form = {"type": "object", "required": ["thought", "action", "observation"]}
    value = {"thought": "a", "action": "b", "observation": "c"}
    on = Stage(ScriptedModel(Says(answer=json.dumps(value, indent=2))), "react", form)
    await on.events()

    assert on.phase.value == value


async def test_a_reply_with_only_a_thought_is_retried():
    on = Stage(ScriptedModel(Says(answer="Thought: hm."), Says(answer=TEXT)), "react")
    events = await on.events()

    assert steps(events) == [("answer", "failed"), ("answer", "done")]


async def test_replies_with_only_thoughts_keep_the_draft_answer():
    said = [Says(answer="Thought: hm.")] * 3
    on = Stage(ScriptedModel(*said), "react", words="It is Kyoto.")
    _, error = await on.fails(OutputDecodingFailed)

    assert str(error) == "The answer contains no JSON."
    assert on.heard[-1].text_parts == ["It is Kyoto."]


async def test_a_tool_call_that_was_not_offered_is_the_answer():
    on = Stage(ScriptedModel(Says(calls=(Call("json_tool_call", KYOTO),))))
    await on.events()

    assert on.phase.value == KYOTO
    assert on.phase.plan.calls == ()


async def test_a_truncated_answer_has_a_caveat():
    class Cut:
        async def stream(self, **request):
            yield delta(content=TEXT[:-3])
            yield finish("length")

    _, error = await Stage(Cut()).fails(OutputDecodingFailed)

    assert str(error) == "The answer was cut off at the model's output limit."


async def test_a_provider_that_rejects_the_response_format_gets_a_prompt_instead(stage):
    on = stage(ModelError("'response_format' is not supported."), TEXT)
    events = await on.events()

    assert steps(events) == [("answer", "failed"), ("answer", "done")]
    assert "response_format" in on.llm.requests[0]
    assert "response_format" not in on.llm.requests[1]
    assert on.phase.value == KYOTO


async def test_a_provider_failure_keeps_the_draft_answer(stage):
    on = stage(RateLimited(), words="It is Kyoto.")
    await on.fails(RateLimited)

    assert on.heard[-1].text_parts == ["It is Kyoto."]


async def test_an_error_unrelated_to_the_response_format_ends_the_run(stage):
    on = stage(ModelError("No."), ModelError("No."))
    events, _ = await on.fails(ModelError)

    assert steps(events) == [("answer", "failed")]


@pytest.mark.parametrize("spelling", ["secret", "\\u0073ecret"])
async def test_a_guardrail_blocks_escaped_json_text(stage, spelling):
    rule = Pattern(pattern="secret", action=GuardrailAction.BLOCK)
    text = '{"city": "a ' + spelling + '", "people": 1}'
    on = stage(text, guardrails=Guardrails(blocked_patterns=[rule]))
    events = await on.events()

    assert on.phase.finding.action is GuardrailAction.BLOCK
    assert steps(events) == [("answer", "blocked")]
    assert "secret" not in json.dumps([e.to_dict() for e in events if e.type == "step"])


async def test_a_long_schema_trims_old_messages_but_not_the_question(stage):
    form = {**CITY, "description": "x" * 4_000}
    on = stage("No.", TEXT, form=form, words="It is Kyoto.", window=2_100)
    on.trail.state.clear()
    for _ in range(20):
        on.trail.state.add_message("user", "Old news. " * 40)
        on.trail.state.add_message("assistant", "I see.")
    on.trail.state.add_message("user", "Where?")
    events = await on.events()

    for request in on.llm.requests:
        contents = [message["content"] for message in request["messages"]]
        assert "Where?" in contents
        assert 1_000 < len("".join(contents)) / 4 < 2_000
    assert "status" in kinds(events)
