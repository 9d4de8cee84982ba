"""A calculator that can do nothing else and can't take long.

Numbers are exact where possible: integers and fractions. Roots and overly long fractions are
rounded, and the result says so.
"""

import ast
import math
import operator
import re
import sys
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from typing import Any, NamedTuple

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolInput, ToolResult, text_argument

MAX_CHARS = 500
MAX_DEPTH = 250
MAX_BITS = 4096
MAX_EXACT_DIGITS = 40
ROUNDED_DIGITS = 15
MAX_VALUE = Fraction(sys.float_info.max)
MIN_VALUE = Fraction(5e-324)

# Inexact results are computed with extra digits, so that the written ones are right.
ROUNDING_CONTEXT = Context(
    prec=ROUNDED_DIGITS + 35,
    Emax=sys.float_info.max_10_exp,
    Emin=-323,
    traps=[InvalidOperation, DivisionByZero, Overflow],
)

Number = int | Fraction | Decimal

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: Fraction(left) / Fraction(right),
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
UNARY_OPERATORS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
UNKNOWN_NAME = _("Names like %(name)s aren't supported. Write the number itself.")
HINTS: dict[type[ast.AST], str] = {
    ast.Call: _("Functions aren't supported. Use * to multiply and ** 0.5 for a square root."),
    ast.Attribute: _("Attributes aren't supported. Use numbers and + - * / // % **."),
    ast.Compare: _("Comparisons aren't supported. Calculate both sides and compare them."),
    ast.BitXor: _("^ isn't a power. Use **, e.g. 2 ** 10."),
    ast.Tuple: _("Commas only separate thousands, e.g. 1,234.5. Use a point for decimals."),
}
# Not NFKC: it would read 5² as 52.
CHARACTER_MAP: dict[int, str | int] = {
    **{wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "×⋅·∙∗✕"), "*"),
    **dict.fromkeys(map(ord, "÷∕"), "/"),
    **dict.fromkeys(map(ord, "−–"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2009\u202f\u3000\t\r\n"), " "),
    ord("#"): "?",  # otherwise the rest would be a comment, silently ignored
    ord("@"): "?",  # marks a percentage in the parsed text
}
THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
# `7 % -3` is a remainder: before a minus, only `10% - 3` is a percentage.
PERCENT = re.compile(
    r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)(?:%(?= [+-] |\s*\+)|\s*%(?=\s*(?:$|[*/)])))"
)
TOO_SMALL = _("The result is too close to zero to represent.")
PERCENT_OF = re.compile(r"%\s*of\b", re.IGNORECASE)


class CalculationError(ToolError):
    message = _("This can't be calculated.")


class CalculatorTool:
    name = "calculator"
    description: str = _(
        "Calculates one arithmetic expression and returns the number. "
        "Use it for every calculation: decimals are exact, and a rounded result says so. "
        "Numbers, parentheses and + - * / // (whole division) "
        "% (remainder) ** (power); no names, no functions. "
        "Write a percentage as 12.5 / 100 * 3480 and a square root as 2 ** 0.5."
    )
    parameters = {
        "type": "object",
        "properties": {
            "expression": {
                "type": "string",
                "description": _("For example (12.5 + 3) * 4 ** 2"),
            }
        },
        "required": ["expression"],
    }
    effect = "read"

    async def execute(self, input: ToolInput, /) -> ToolResult:
        try:
            result = evaluate(text_argument(input, "expression"))
        except CalculationError as error:
            return ToolResult(error=str(error), mendable=True)
        note = (
            _("rounded to %(digits)s significant digits", digits=ROUNDED_DIGITS)
            if result.is_rounded
            else ""
        )
        return ToolResult(result.text, note=note, is_data=True)


class CalculationResult(NamedTuple):
    """A formatted number, and whether it was rounded."""

    text: str
    is_rounded: bool


def calculate(text: str) -> str:
    """Return the formatted value of an expression; raise CalculationError."""
    return evaluate(text).text


def evaluate(text: str) -> CalculationResult:
    """Evaluate an expression; raise CalculationError."""
    try:
        return format_number(_Evaluator(text).result())
    except ZeroDivisionError:
        raise CalculationError(_("Division by zero.")) from None
    except (OverflowError, Overflow):
        raise CalculationError(_("A number in this calculation is too large.")) from None
    except (RecursionError, MemoryError):
        raise CalculationError(_("This is nested too deeply. Calculate it in parts.")) from None


def format_number(value: Number) -> CalculationResult:
    """Format a number for people: 0.3, and every digit of 987654321098765.4."""
    if isinstance(value, int):
        return CalculationResult(str(value), is_rounded=False)
    decimal = _exact_decimal(value) if isinstance(value, Fraction) else None
    if decimal is None:
        return CalculationResult(_format_float(float(value)), is_rounded=True)
    sign, digits, _exponent = decimal.as_tuple()
    significant = "".join(map(str, digits)).strip("0")
    if len(significant) <= ROUNDED_DIGITS:
        text = _format_float(float(decimal))
    elif -7 <= decimal.adjusted() < MAX_EXACT_DIGITS:
        text = format(decimal, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa = f"{significant[0]}.{significant[1:]}"
        text = f"{'-' * sign}{mantissa}e{decimal.adjusted():+03d}"
    return CalculationResult(text, is_rounded=False)


def _exact_decimal(value: Fraction) -> Decimal | None:
    """Return the fraction as a decimal, if it is finite and short enough."""
    other_factors = value.denominator
    places = 0
    for prime in (2, 5):
        power = 0
        while other_factors % prime == 0:
            other_factors //= prime
            power += 1
        places = max(places, power)
    if other_factors != 1:
        return None
    digits = value.numerator * (10**places // value.denominator)
    decimal = Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -places))
    significant = len(str(abs(digits)).rstrip("0"))
    return decimal if significant <= MAX_EXACT_DIGITS else None


def _format_float(value: float) -> str:
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(float(f"{value:.{ROUNDED_DIGITS}g}"))


class _Evaluator:
    """Evaluates a syntax tree, with its source at hand for exact digits."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARS:
            raise CalculationError(
                _(
                    "The expression is %(length)s characters long; the limit is %(limit)s.",
                    length=len(text),
                    limit=MAX_CHARS,
                )
            )
        # What people and models write becomes Python syntax.
        plain = text.translate(CHARACTER_MAP).strip().removeprefix("=")
        plain = re.sub(r"\s*=\s*\??$", "", plain).strip()
        plain = THOUSANDS.sub(lambda number: number[0].replace(",", ""), plain)
        self.text = PERCENT.sub(r"(\1@100)", plain)
        if not self.text:
            raise CalculationError(_("Enter an expression, e.g. 2 + 2."))
        if PERCENT_OF.search(self.text):
            raise CalculationError(
                _("Write a percentage as a fraction, e.g. 12.5 / 100 * 3480.")
            )
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError):
            raise CalculationError(
                _(
                    "%(text)s isn't an arithmetic expression. Use numbers, parentheses "
                    "and + - * / // %% **, e.g. (12.5 + 3) * 4.",
                    text=repr(text.strip()[:80]),
                )
            ) from None

    def result(self) -> Number:
        return self._evaluate(self.tree)

    def _evaluate(self, node: ast.expr, depth: int = 0) -> Number:
        if depth > MAX_DEPTH:
            raise RecursionError
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() as number):
                return _limit_size(number)
            case ast.Constant(value=float() as number):
                # As written; a float would have lost its last digits.
                if not math.isfinite(number):
                    raise OverflowError
                decimal = Decimal(ast.get_source_segment(self.text, node) or repr(number))
                if decimal and not number:
                    raise CalculationError(TOO_SMALL)
                return _limit_size(Fraction(decimal))
            case ast.UnaryOp(op=sign) if type(sign) in UNARY_OPERATORS:
                return _limit_size(
                    UNARY_OPERATORS[type(sign)](self._evaluate(node.operand, depth + 1))
                )
            case ast.BinOp(op=ast.MatMult()):
                return Fraction(self._evaluate(node.left, depth + 1)) / 100
            case ast.BinOp(op=operation) if type(operation) in OPERATORS:
                left = self._evaluate(node.left, depth + 1)
                right = self._evaluate(node.right, depth + 1)
                if isinstance(operation, ast.Add | ast.Sub) and _is_percentage(node.right):
                    _check_percentage(node, left, right)
                if isinstance(operation, ast.Pow):
                    return _limit_size(_power(left, right))
                if isinstance(left, Decimal) or isinstance(right, Decimal):
                    return _limit_size(
                        _apply_rounded(operation, _to_decimal(left), _to_decimal(right))
                    )
                return _limit_size(OPERATORS[type(operation)](left, right))
        if isinstance(node, ast.Name):
            raise CalculationError(UNKNOWN_NAME.fill(name=repr(node.id)))
        unknown = node.op if isinstance(node, ast.BinOp) else node
        plain = _("Only numbers, parentheses and + - * / // % ** are supported.")
        raise CalculationError(HINTS.get(type(unknown), plain))


def _is_percentage(node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


def _check_percentage(node: ast.BinOp, left: Number, share: Number) -> None:
    """Reject ambiguous percentages: `200 + 10%` may mean 220 or 200.1."""
    first = node.left
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add | ast.Sub):
        if not _is_percentage(first.right):
            break
        first = first.left
    if left == 1 or _is_percentage(first):
        return
    sign = "+" if isinstance(node.op, ast.Add) else "-"
    base = format_number(left).text
    percent = format_number(share * 100).text
    raise CalculationError(
        _(
            "%(expression)s is ambiguous. Write either %(first)s or %(second)s.",
            expression=f"{base} {sign} {percent}%",
            first=f"{base} * (1 {sign} {percent} / 100)",
            second=f"{base} {sign} {percent} / 100",
        )
    )


def _apply_rounded(operation: ast.operator, left: Decimal, right: Decimal) -> Decimal:
    if not right and isinstance(operation, ast.Div | ast.FloorDiv | ast.Mod):
        raise ZeroDivisionError
    match operation:
        case ast.Add():
            return ROUNDING_CONTEXT.add(left, right)
        case ast.Sub():
            return ROUNDING_CONTEXT.subtract(left, right)
        case ast.Mult():
            result = ROUNDING_CONTEXT.multiply(left, right)
        case ast.FloorDiv():
            return ROUNDING_CONTEXT.divide(left, right).to_integral_value(ROUND_FLOOR)
        case ast.Mod():
            quotient = ROUNDING_CONTEXT.divide(left, right).to_integral_value(ROUND_FLOOR)
            return ROUNDING_CONTEXT.subtract(left, ROUNDING_CONTEXT.multiply(right, quotient))
        case _:
            result = ROUNDING_CONTEXT.divide(left, right)
    if left and not result:
        raise CalculationError(TOO_SMALL)
    return result


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        exponent = exponent.numerator
    if isinstance(base, Decimal) or not isinstance(exponent, int):
        return _root(base, exponent)
    # Checked before, because the power itself is what would take forever.
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if bits * abs(exponent) <= MAX_BITS:
        return base**exponent if exponent >= 0 else Fraction(base) ** exponent
    if isinstance(base, int) and exponent > 0:
        raise OverflowError
    return _root(base, exponent)


def _root(base: Number, exponent: Number) -> Number:
    """Return a power, rounded unless it is provably exact."""
    if base < 0 and exponent != int(exponent):
        raise CalculationError(_("The root of a negative number isn't a real number."))
    if not base and exponent < 0:
        raise ZeroDivisionError
    rough = ROUNDING_CONTEXT.power(_to_decimal(base), _to_decimal(exponent))
    if base and not rough:
        raise CalculationError(TOO_SMALL)
    if isinstance(base, Decimal) or not isinstance(exponent, Fraction):
        return rough
    exact = Fraction(Decimal(f"{rough:.{ROUNDED_DIGITS}g}"))
    bits = max(exact.numerator.bit_length(), exact.denominator.bit_length())
    if exponent.denominator * bits > MAX_BITS or abs(exponent.numerator) > 64:
        return rough
    return exact if exact**exponent.denominator == base**exponent.numerator else rough


def _to_decimal(number: Number) -> Decimal:
    if isinstance(number, Decimal):
        return number
    return ROUNDING_CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


def _limit_size(number: Number) -> Number:
    """Return the number if it isn't too large; overly long fractions are rounded."""
    if isinstance(number, Decimal):
        return number
    if isinstance(number, int):
        if number.bit_length() > MAX_BITS:
            raise OverflowError
        return number
    if abs(number) > MAX_VALUE:
        raise OverflowError
    if 0 < abs(number) < MIN_VALUE:
        raise CalculationError(TOO_SMALL)
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    return _to_decimal(number) if bits > MAX_BITS else number
