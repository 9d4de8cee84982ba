"""Arithmetic that cannot do anything else, and cannot take long."""

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from agents.engine.errors import ToolError
from agents.engine.tool import ToolInput, ToolResult, argument

MAX_LENGTH = 500
MAX_DEPTH = 250
MAX_BITS = 4096

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
HINTS: dict[type[ast.AST], str] = {
    ast.Name: "Names such as {name!r} have no value here: write the number itself.",
    ast.Call: "Functions cannot be called here: write * to multiply, ** 0.5 for a square root.",
    ast.Attribute: "Attributes cannot be used here, only numbers and + - * / // % **.",
    ast.Compare: "Comparisons have no value here: calculate both sides and compare them.",
    ast.BitXor: "^ is not a power here: write **, as in 2 ** 10.",
    ast.Tuple: "A comma may only part thousands, as in 1,234.5; the decimal sign is a point.",
}
# Not NFKC: it would read 5² as 52.
SIGNS_PEOPLE_WRITE: dict[int, str | int] = {
    **{wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "×⋅·∙∗✕"), "*"),
    **dict.fromkeys(map(ord, "÷∕"), "/"),
    **dict.fromkeys(map(ord, "−–"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2009\u202f\u3000\t\r\n"), " "),
    ord("#"): "?",  # else the rest would be a comment, and left out without a word
}
THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
# `7 % -3` is a remainder: before a sign, only `10% - 3` is a percentage.
PERCENT = re.compile(
    r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)(?:%(?= [+-] )|\s*%(?=\s*(?:$|[*/)])))"
)
OF = re.compile(r"%\s*of\b", re.IGNORECASE)


class BadExpression(ToolError):
    """This cannot be worked out."""


class CalculatorTool:
    name = "calculator"
    description = (
        "Works out one arithmetic expression and returns the number. "
        "Use it for every calculation. Numbers, parentheses and + - * / // (whole division) "
        "% (remainder) ** (power); no names, no functions. "
        "Write 12.5% of 3480 as 12.5 / 100 * 3480 and a square root as 2 ** 0.5."
    )
    parameters = {
        "type": "object",
        "properties": {
            "expression": {"type": "string", "description": "For example (12.5 + 3) * 4 ** 2"}
        },
        "required": ["expression"],
    }
    effect = "read"

    async def execute(self, input: ToolInput, /) -> ToolResult:
        try:
            return ToolResult(calculate(argument(input, "expression")))
        except BadExpression as refusal:
            return ToolResult(error=str(refusal), mendable=True)


def calculate(text: str) -> str:
    """The value of an expression, written out; raises BadExpression where it has none."""
    try:
        return written(_value(_parsed(text)))
    except ZeroDivisionError:
        raise BadExpression("Division by zero has no result.") from None
    except OverflowError:
        raise BadExpression("A number in this calculation is too large.") from None
    except (RecursionError, MemoryError):
        raise BadExpression("This is nested too deeply: work it out in parts.") from None


def written(value: int | float) -> str:
    """A number as a person would write it: 0.3 and not 0.30000000000000004."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(float(f"{value:.15g}"))


def _parsed(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise BadExpression(
            f"This has {len(text)} characters; at most {MAX_LENGTH} can be worked out at once."
        )
    tidy = _tidied(text)
    if not tidy:
        raise BadExpression("There is nothing to work out: write an expression such as 2 + 2.")
    if OF.search(tidy):
        raise BadExpression("Write 12.5% of 3480 as 12.5 / 100 * 3480.")
    try:
        return ast.parse(tidy, mode="eval").body
    except (SyntaxError, ValueError):
        raise BadExpression(
            f"{text.strip()[:80]!r} is not an arithmetic expression: write numbers, "
            "parentheses and + - * / // % **, as in (12.5 + 3) * 4."
        ) from None


def _tidied(text: str) -> str:
    """What people and models write, as Python writes it."""
    plain = text.translate(SIGNS_PEOPLE_WRITE).strip().removeprefix("=")
    plain = re.sub(r"\s*=\s*\??$", "", plain).strip()
    plain = THOUSANDS.sub(lambda number: number[0].replace(",", ""), plain)
    return PERCENT.sub(r"(\1/100)", plain)


def _value(node: ast.expr, depth: int = 0) -> int | float:
    if depth > MAX_DEPTH:
        raise RecursionError
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=sign) if type(sign) in SIGNS:
            return _bounded(SIGNS[type(sign)](_value(node.operand, depth + 1)))
        case ast.BinOp(op=act) if type(act) in OPERATORS:
            return _result(act, _value(node.left, depth + 1), _value(node.right, depth + 1))
    raise BadExpression(_hint(node))


def _result(act: ast.operator, left: int | float, right: int | float) -> int | float:
    if isinstance(act, ast.Pow) and isinstance(left, int) and isinstance(right, int):
        # Before, and not after: the power itself is what would take for ever.
        _fits((abs(left).bit_length() - 1) * right)
    result = _bounded(OPERATORS[type(act)](left, right))
    if result == 0 and left and right and isinstance(act, ast.Mult | ast.Div | ast.Pow):
        raise BadExpression("The result is too close to zero to be told from it.")
    return result


def _bounded(number: Any) -> int | float:
    if isinstance(number, complex):
        raise BadExpression("A root of a negative number is no real number.")
    if isinstance(number, int):
        _fits(number.bit_length())
    elif not math.isfinite(number):
        raise OverflowError
    return number  # type: ignore[no-any-return]


def _fits(bits: int) -> None:
    if bits > MAX_BITS:
        raise OverflowError


def _hint(node: ast.expr) -> str:
    found = node.op if isinstance(node, ast.BinOp) else node
    plain = "Only numbers and + - * / // % ** with parentheses can be worked out here."
    return HINTS.get(type(found), plain).format(name=getattr(node, "id", ""))
