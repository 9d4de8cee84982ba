import ast
import math
import re
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.tool import Tool, specification
from agents.tools.calculator import CalculationError, CalculatorTool, calculate, format_number
from tests.examples import many

WORKED_OUT = {
    "2 + 3 * 4": "14",
    "(2 + 3) * 4": "20",
    "7 / 2": "3.5",
    "4 / 2": "2",
    "-7 // 2": "-4",
    "7 % 3": "1",
    "7 % -3": "-2",
    "7%-3": "-2",
    "-7 % 3": "2",
    "2 ** 3 ** 2": "512",
    "-2 ** 2": "-4",
    "(-2) ** 2": "4",
    "2 ** -1": "0.5",
    "2 ** 0.5": "1.4142135623731",
    "+-+3": "-3",
    "0.1 + 0.2": "0.3",
    "10 / 3": "3.33333333333333",
    "-0.0": "0",
    "0 * -1.5": "0",
    "1e3": "1000",
    "1e22": "1e+22",
    "9007199254740991.0": "9007199254740991",
    "2 ** 64": "18446744073709551616",
    "10 ** 30 + 1": "1000000000000000000000000000001",
    "0 ** 0": "1",
    "0x1F + 1_000": "1031",
    "98765432109876.54*10": "987654321098765.4",
    "98765432109876.54 * 1.08": "106666666678666.6632",
    "1.1 * 1.1": "1.21",
    "1 - 0.9": "0.1",
    "1.0 % 0.1": "0",
    "123456789.123456789 + 0.000000001": "123456789.12345679",
    "1.0000000000000001": "1.0000000000000001",
    "0.1 ** 20": "1e-20",
    "1.234567890123456789e300": "1.234567890123456789e+300",
    "2 ** -3": "0.125",
    "16 ** 0.5": "4",
    "0.25 ** 0.5": "0.5",
    "27 ** (1 / 3)": "3",
    "1 / 3 * 3": "1",
    "(2 ** 0.5) ** 2": "2",
    "-(2 ** 0.5) // 1": "-2",
    "-(2 ** 0.5) % 1": "0.585786437626905",
    "1e300 ** 0.5": "1e+150",
    "1.0001 ** 3650": "1.44048772076092",
    "1,234.5 * 2": "2469",
    "1,234,567 + 1": "1234568",
    "12.5%": "0.125",
    "3480 * 12.5%": "435",
    "3480 * 12.5 %": "435",
    "100 * (1 + 5%)": "105",
    "10% * 5": "0.5",
    "10% + 5": "5.1",
    "10%+5": "5.1",
    "5%+10%": "0.15",
    "10% + 5% - 1%": "0.14",
    "1 + 10%": "1.1",
    "200 + 10% * 200": "220",
    "-10%": "-0.1",
    "6 × 7 ÷ 2 − 1": "20",
    "２＋３＊（４－１）": "11",
    "１，２３４．５＋１": "1235.5",
    "2 + 2 =": "4",
    "2 + 2 = ?": "4",
    "=2+2": "4",
    "1\n + 1": "2",
    "1" + "+1" * 249: "250",
    "\u00a01\u3000+ 1": "2",
}
REFUSED = {
    "": "Enter an expression",
    "   ": "Enter an expression",
    "1 / 0": "zero",
    "1 // 0": "zero",
    "1 % 0": "zero",
    "0 ** -1": "zero",
    "0.0 ** -1": "zero",
    "9**9**9": "too large",
    "9**9**9**9": "too large",
    "(9**99)**99": "too large",
    "(10**1000)*(10**1000)": "too large",
    "-(2**4000) * 2**4000": "too large",
    "1e308 * 10": "too large",
    "1e999": "too large",
    "10**400 / 3": "too large",
    "2.0 ** 99999": "too large",
    "2**-99999999": "close to zero",
    "1.5**99999": "too large",
    "(2**0.5) / 0": "zero",
    "0 / (2**0.5) / 0": "zero",
    "(2**0.5 - 2**0.5) ** -0.5": "zero",
    "(2**0.5) ** 99999": "too large",
    "(2**0.5) ** -99999": "close to zero",
    "1e-300 * 1e-300": "close to zero",
    "(-8) ** 0.5": "negative",
    "True + 1": "Only numbers",
    "1j * 1j": "Only numbers",
    "'a' * 9": "Only numbers",
    "b'a'": "Only numbers",
    "...": "Only numbers",
    "None": "Only numbers",
    "~1": "Only numbers",
    "1 << 99999": "Only numbers",
    "1 & 2": "Only numbers",
    "1 and 2": "Only numbers",
    "not 1": "Only numbers",
    "[1][0]": "Only numbers",
    "{1}": "Only numbers",
    "1 if 1 else 2": "Only numbers",
    "lambda: 1": "Only numbers",
    "f'{1}'": "Only numbers",
    "x + 1": "'x'",
    "nan": "'nan'",
    "π * 2": "'π'",
    "abs(-1)": "Functions",
    "2(3)": "Use \\* to multiply",
    "__import__('os').system('id')": "Functions",
    "(1).__class__": "Attributes",
    "1 < 2": "Comparisons",
    "2 == 2": "Comparisons",
    "2 ^ 10": "\\*\\*",
    "1,23": "Commas",
    "1.234,56": "Commas",
    "12.5% of 3480": "12.5 / 100",
    "200+10%": r"200 \+ 10% is ambiguous. Write either 200 \* \(1 \+ 10 / 100\)",
    "200+10%+5%": r"200 \+ 10% is ambiguous",
    "200 + -10%": r"200 \+ -10% is ambiguous",
    "200 - 12.5%": r"or 200 - 12.5 / 100",
    "(3 * 5 + 10%) * 2": r"15 \+ 10%",
    "5% + 200 + 10%": r"200.05 \+ 10%",
    "3 @ 4": "isn't an arithmetic expression",
    "10@100": "isn't an arithmetic expression",
    "1e-999": "close to zero",
    "1e-999999999": "close to zero",
    "1e999999999": "too large",
    "1.5 ** 99999999": "too large",
    "1.5 ** -99999999": "close to zero",
    "2 +": "isn't an arithmetic expression",
    "2 3": "isn't an arithmetic expression",
    "5²": "isn't an arithmetic expression",
    "√4": "isn't an arithmetic expression",
    "١ + ١": "isn't an arithmetic expression",
    "007": "isn't an arithmetic expression",
    "1; 2": "isn't an arithmetic expression",
    "1 # and more\n + 1": "isn't an arithmetic expression",
    "x := 1": "isn't an arithmetic expression",
    "1 + \x00": "isn't an arithmetic expression",
    "\ud800": "isn't an arithmetic expression",
    "(" * 240 + "1" + ")" * 240: "isn't an arithmetic expression",
    "-" * 499 + "1": "nested",
    "1+" * 300 + "1": "characters",
    "9" * 1_000_000: "characters",
}


@pytest.mark.parametrize(("text", "value"), WORKED_OUT.items())
def test_common_notations_are_calculated(text, value):
    assert calculate(text) == value


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_other_input_is_rejected_with_the_reason(text, reason):
    with pytest.raises(CalculationError, match=reason):
        calculate(text)


def test_huge_results_are_rejected_before_calculation():
    started = time.process_time()

    for bomb in REFUSED:
        with pytest.raises(CalculationError):
            calculate(bomb)

    assert time.process_time() - started < 2


@pytest.mark.parametrize("input", ["6 * 7", {"expression": "6 * 7"}, {"input": "6 * 7"}])
async def test_the_input_can_be_text_or_arguments(input):
    result = await CalculatorTool().execute(input)

    assert result.output == "42"
    assert not result.is_error


async def test_a_rejection_is_an_error_the_model_can_fix():
    result = await CalculatorTool().execute({"expression": "9**9**9"})

    assert result.mendable
    assert result.text == "Error: A number in this calculation is too large."


async def test_arguments_of_the_wrong_type_are_rejected_without_an_exception():
    for input in ({}, {"expression": None}, {"expression": ["1"]}, {"expression": {}}):
        assert (await CalculatorTool().execute(input)).is_error


def test_the_tool_description_has_name_and_parameters():
    tool = CalculatorTool()

    assert isinstance(tool, Tool)
    assert specification(tool)["function"]["parameters"]["required"] == ["expression"]


@pytest.mark.parametrize(
    ("expression", "text"),
    {
        "10 / 4": "2.5",
        "98765432109876.54 * 10": "987654321098765.4",
        "10 / 3": "3.33333333333333 (rounded to 15 significant digits)",
        "2 ** 0.5": "1.4142135623731 (rounded to 15 significant digits)",
        "1.0001 ** 3650": "1.44048772076092 (rounded to 15 significant digits)",
    }.items(),
)
async def test_a_rounded_result_has_a_note(expression, text):
    result = await CalculatorTool().execute({"expression": expression})

    assert result.text == text
    assert result.output == text.partition(" ")[0]


NUMBERS = st.one_of(st.integers(0, 99).map(str), st.floats(0, 99).map("{:.3f}".format))
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        inner.map("({}) ** 2".format),
    ),
    max_leaves=12,
)


def outcome(text):
    """Return the value, or the error message."""
    try:
        return calculate(text)
    except CalculationError as refusal:
        return f"refused: {refusal}"


def exactly(text):
    """Return the value of an expression in fractions, computed by Python."""
    literal = re.compile(r"\d+(\.\d+)?(?!\d)")
    exact = re.sub(r"(?<!\*\* )\b" + literal.pattern, r"Fraction('\g<0>')", text)
    return eval(exact, {"Fraction": Fraction})


@given(EXPRESSIONS)
def test_it_agrees_with_fractions(text):
    try:
        expected = format_number(Fraction(exactly(text))).text
    except ZeroDivisionError:
        expected = "refused: Division by zero."

    assert outcome(text) in (expected, "refused: A number in this calculation is too large.")


@many(500)
@given(st.one_of(st.text(), st.text("0123456789.,+-*/%()eEx_ =^\n", max_size=60)))
def test_any_text_has_a_value_or_a_reason(text):
    found = outcome(text)

    assert found.startswith("refused: ") or math.isfinite(ast.literal_eval(found))
