import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.errors import BadExpression
from agents.engine.expressions import interpolate, parse, references
from agents.engine.expressions.functions import FUNCTIONS
from agents.engine.suggestions import suggest
from tests.sampling import one_in

NAMES = {
    "steps": {
        "前処理": {"output": {"rows": [{"total": 12}, {"total": 30}]}, "status": "done"},
        "data in": {"output": "Tokyo"},
    },
    "parameters": {"month": "2026-11", "limit": 3},
    "item": {"name": "Ueno"},
    "index": 0,
    "output": {"ok": True},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps.前処理.output.rows[0].total", 12),
        ("steps.前処理.output.rows[-1].total > 12", True),
        ("steps.前処理.output.rows.1.total", 30),
        ('steps["data in"].output', "Tokyo"),
        ("parameters.month == '2026-11' and index == 0", True),
        ('item.name in ["Ueno", "Akihabara"]', True),
        ('"name" not in item', False),
        ("not output.ok or len(steps.前処理.output.rows) == 2", True),
        ("1 + 2 * 3 - 4 / 2", 5.0),
        ("-(2 + 3) % 4", 3),
        ("10 - 3 - 2", 5),
        ('"a" + "b" + text(3)', "ab3"),
        ("max(1, 5, 3) + min([4, 2]) + sum([1, 2.5])", 10.5),
        ("round(2.345, 1)", 2.3),
        ('number("42") + number("0.5")', 42.5),
        ('upper("é") + lower("ABC")', "Éabc"),
        ('contains(steps["data in"].output, "kyo")', True),
        ('text([1, "二", null])', '[1, "二", null]'),
        (r'"say \"yes\"\n"', 'say "yes"\n'),
        ("parameters.absent or 7", 7),
        ("true == 1", False),
        ("1 == 1.0", True),
        ('"1" == 1', False),
        ("[1] + [2, 3]", [1, 2, 3]),
        ("min([])", None),
    ],
)
def test_expressions_are_evaluated(text, value):
    assert parse(text).value(NAMES) == value


@pytest.mark.parametrize(
    "text",
    ["steps.nobody.output", "item.a.b[3].c", "output.ok.deep", "unheard", "item[0]", "index.x"],
)
def test_a_missing_path_is_null(text):
    assert parse(text).value(NAMES) is None


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", 0, "found the end"),
        ("1 +", 3, "found the end"),
        ("(1", 2, "Expected ')'"),
        ("a = 1", 2, suggest("", "==")),
        ("lenght([1])", 0, suggest("", "len")),
        ("len()", 0, "expected 1"),
        ("steps == 1", 0, "Specify a step"),
        ("steps[item].output", 6, "in quotes"),
        ("__import__('os')", 0, "Unknown function: '__import__'"),
        ("item.name.upper()", 15, "Unexpected"),
        ("'open", 0, "Expected a value"),
        ("a and", 5, "found the end"),
        ("9" * 30, 0, "too large"),
    ],
)
def test_a_syntax_error_has_a_position_and_a_reason(text, position, words):
    with pytest.raises(BadExpression) as caught:
        parse(text)

    assert words in str(caught.value)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('1 < "2"', "Can't compare a number with text using <."),
        ("null > 1", "Can't compare null with a number using >."),
        ('"x" * 1000000000', "Can't apply * to text and a number."),
        ('"%s" % 5', "Can't apply % to text and a number."),
        ('"a" + 1', "Can't apply + to text and a number."),
        ("1 / 0", "Division by zero."),
        ("1000000000 * 1000000000 * 1000000000", "This number is too large."),
        ("1 in 5", "Can't search for a number in a number."),
        ("sum(item)", "sum() needs a list, not a mapping."),
        ('number("ten")', "'ten' isn't a number."),
        ("len(5)", "len() needs text, a list or a mapping, not a number."),
        ("huge / 3", "This number is too large."),
    ],
)
def test_mixing_types_raises_a_clear_error(text, sentence):
    with pytest.raises(BadExpression) as caught:
        parse(text).value(NAMES | {"huge": 10**400})

    assert str(caught.value) == sentence


def test_an_expression_names_the_steps_it_needs():
    expression = parse('steps.a.output > steps["b c"].output[steps.d.output] and item.steps.x')

    assert expression.steps == {"a", "b c", "d"}
    assert expression.names == {"steps", "item"}


def test_python_attributes_and_builtins_are_out_of_reach():
    value = parse("item.__class__").value({"item": object()})
    of_text = parse("item.upper").value({"item": "text"})

    assert value is None
    assert of_text is None


@pytest.mark.parametrize(
    "text",
    [
        "(" * 400 + "1" + ")" * 400,
        "not " * 400 + "true",
        "-" * 1_900 + "1",
        "[" * 900 + "]" * 900,
        "a" + ".b" * 900,
        "1+" * 1_500 + "1",
    ],
)
def test_depth_and_length_are_limited(text):
    with pytest.raises(BadExpression, match="up to"):
        parse(text)


def test_a_long_chain_is_not_deep():
    assert parse("+".join(["1"] * 900)).value({}) == 900


@pytest.mark.parametrize("text", ["+".join(["item"] * 300), f"text([{'item,' * 300}item])"])
@pytest.mark.parametrize("item", ["x" * 500_000, ["x" * 100] * 5_000])
def test_the_size_of_results_is_limited(text, item):
    begun = time.process_time()

    with pytest.raises(BadExpression, match="longer than 2,000,000 characters"):
        parse(text).value({"item": item})

    assert time.process_time() - begun < 5


@given(st.text(max_size=60) | st.text(alphabet="steps.a[0]()'\"+-=<>${} not in,1", max_size=60))
def test_any_text_is_parsed_or_rejected(text):
    try:
        value = parse(text).value(NAMES)
    except BadExpression:
        return
    assert json.loads(json.dumps(value)) == value


def test_nested_arguments_are_filled():
    given = {
        "rows": "${steps.前処理.output.rows}",
        "deep": [{"city": 'In ${ steps["data in"].output }, ${parameters.month}.'}],
        "brace": "${'}' + text(1)}",
        "plain": 5,
    }

    assert interpolate(given, NAMES) == {
        "rows": [{"total": 12}, {"total": 30}],
        "deep": [{"city": "In Tokyo, 2026-11."}],
        "brace": "}1",
        "plain": 5,
    }


def test_a_double_dollar_is_escaped_and_null_becomes_empty_text():
    assert interpolate("$${HOME} costs $5", {}) == "${HOME} costs $5"
    assert interpolate("[${nothing}]", {}) == "[]"
    assert interpolate("${nothing}", {}) is None


def test_filled_values_are_not_expanded_again():
    assert interpolate("${item} ", {"item": "${index}", "index": 1}) == "${index} "


def test_references_are_found_in_arguments():
    value = {"a": ["${steps.x.output} and ${steps.y.output}", {"b": "$${steps.z}"}]}

    assert references(value) == {"x", "y"}


@pytest.mark.parametrize("template", ["${", "${1", "a ${1 +} b", "${}"])
def test_an_unclosed_template_is_rejected(template):
    with pytest.raises(BadExpression):
        references(template)


def test_the_size_of_filled_arguments_is_limited():
    with pytest.raises(BadExpression, match="longer than 2,000,000 characters"):
        interpolate(["${item}"] * 50, {"item": ["x" * 1_000] * 100})


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    one_in(
        4,
        [
            "-1 in output",
            "contains(output, -1)",
            "sum(output) < 0",
            "min(output) < 0",
            "[1] == output",
        ],
    ),
)
def test_the_number_of_scans_of_a_long_list_is_limited(look):
    names = {"output": list(range(60_000))}

    assert parse(" or ".join([look] * 4)).value(names) is False
    with pytest.raises(BadExpression, match="more than 300,000 items"):
        parse(" or ".join([look] * 80)).value(names)


def test_length_does_not_scan_the_list():
    assert parse(" and ".join(["len(output) > 3"] * 80)).value({"output": [0] * 60_000})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_every_function_is_correct(name):
    function = FUNCTIONS[name]

    assert f"{name}(" in function.example
    assert parse(function.example).value({}) == parse(function.gives).value({})
