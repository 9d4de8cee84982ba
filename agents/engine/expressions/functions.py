"""The operators and functions of expressions, and their limits.

Inputs and outputs are numbers, text, lists, mappings, true, false and null. Results and scans
are limited, so no expression can fill the memory or block the server.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadExpression

MAX_RESULT_CHARS = 2_000_000
MAX_SCANNED_ITEMS = 300_000
MAX_NUMBER = 10**18
MAX_DECIMALS = 15
NUMBER_TOO_LARGE = "This number is too large."


@dataclass(slots=True)
class EvaluationBudget:
    """Remaining characters that may be created and items that may be scanned."""

    chars_left: int = MAX_RESULT_CHARS
    items_left: int = MAX_SCANNED_ITEMS

    def take(self, value: Any) -> Any:
        """Return the value; raise BadExpression if it exceeds the remaining size."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            self.chars_left -= len(item) + 2 if isinstance(item, str) else 4
            if self.chars_left < 0:
                raise BadExpression(
                    f"The result is longer than {MAX_RESULT_CHARS:,} characters."
                )
            waiting += _children(item)
        return value

    def count_items(self, *values: Any) -> None:
        """Count the items of these lists; raise BadExpression if too many were scanned."""
        self.items_left -= sum(len(value) for value in values if is_list(value))
        if self.items_left < 0:
            raise BadExpression(
                f"The expression processes more than {MAX_SCANNED_ITEMS:,} items."
            )


def get_item(of: Any, key: Any) -> Any:
    """Return the item at this key or index, or None if it or its container is missing."""
    if isinstance(of, Mapping):
        return of.get(key) if isinstance(key, str) else None
    if not is_list(of):
        return None
    index = _to_index(key)
    return of[index] if index is not None and -len(of) <= index < len(of) else None


def to_text(value: Any) -> str:
    """Return text unchanged and any other value as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        raise BadExpression("This is nested too deeply to convert to text.") from None


def is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    try:
        return bool(left == right)
    except RecursionError:
        raise BadExpression("These values are nested too deeply to compare.") from None


def is_member(item: Any, whole: Any) -> bool:
    """Whether a list, text or mapping contains the item; null contains nothing."""
    if whole is None:
        return False
    if isinstance(whole, str) and isinstance(item, str):
        return item in whole
    if isinstance(whole, Mapping):
        return isinstance(item, str) and item in whole
    if is_list(whole):
        return any(is_equal(item, one) for one in whole)
    raise BadExpression(f"Can't search for {type_name(item)} in {type_name(whole)}.")


def add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if is_list(left) and is_list(right):
        return [*left, *right]
    return _sum(left, right)


def type_name(value: Any) -> str:
    """Return the type's name for messages."""
    for test, name in TYPE_NAMES:
        if test(value):
            return name
    return type(value).__name__


TYPE_NAMES: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda value: value is None, "null"),
    (lambda value: isinstance(value, bool), "true or false"),
    (is_number, "a number"),
    (lambda value: isinstance(value, str), "text"),
    (lambda value: isinstance(value, Mapping), "a mapping"),
    (is_list, "a list"),
)


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return list(value) if is_list(value) else []


def _to_index(key: Any) -> int | None:
    if isinstance(key, str):
        return int(key) if key.isascii() and key.isdigit() and len(key) < 10 else None
    is_whole = is_number(key) and math.isfinite(key) and key == int(key)
    return int(key) if is_whole else None


def _arithmetic(sign: str, work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        if not (is_number(left) and is_number(right)):
            raise BadExpression(
                f"Can't apply {sign} to {type_name(left)} and {type_name(right)}."
            )
        try:
            return _check_finite(work(left, right))
        except ZeroDivisionError:
            raise BadExpression("Division by zero.") from None
        except OverflowError:
            raise BadExpression(NUMBER_TOO_LARGE) from None

    return compute


def _check_finite(number: Any) -> Any:
    is_whole = isinstance(number, int)
    if abs(number) > MAX_NUMBER if is_whole else not math.isfinite(number):
        raise BadExpression(NUMBER_TOO_LARGE)
    return number


def _comparison(sign: str, work: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(left: Any, right: Any) -> bool:
        is_text = isinstance(left, str) and isinstance(right, str)
        if is_text or (is_number(left) and is_number(right)):
            return work(left, right)
        raise BadExpression(
            f"Can't compare {type_name(left)} with {type_name(right)} using {sign}."
        )

    return compare


_sum = _arithmetic("+", lambda left, right: left + right)

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "<": _comparison("<", lambda left, right: left < right),
    "<=": _comparison("<=", lambda left, right: left <= right),
    ">": _comparison(">", lambda left, right: left > right),
    ">=": _comparison(">=", lambda left, right: left >= right),
    "in": is_member,
    "not in": lambda left, right: not is_member(left, right),
    "+": add,
    "-": _arithmetic("-", lambda left, right: left - right),
    "*": _arithmetic("*", lambda left, right: left * right),
    "/": _arithmetic("/", lambda left, right: left / right),
    "%": _arithmetic("%", lambda left, right: left % right),
}

SCANNING_OPERATORS = {"==", "!=", "in", "not in"}  # operators that scan lists


def _len(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str | Mapping) or is_list(value):
        return len(value)
    raise BadExpression(f"len() needs text, a list or a mapping, not {type_name(value)}.")


def _lower(value: Any) -> str:
    return _require_text("lower", value).lower()


def _upper(value: Any) -> str:
    return _require_text("upper", value).upper()


def _require_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadExpression(f"{name}() needs text, not {type_name(value)}.")
    return value


def _contains(whole: Any, item: Any) -> bool:
    return is_member(item, whole)


def _to_number(value: Any) -> Any:
    """Convert numeric text to a number; null stays null."""
    if value is None or is_number(value):
        return value
    for convert in (int, float) if isinstance(value, str) and len(value) <= 30 else ():
        try:
            return _check_finite(convert(value))
        except ValueError:
            continue
    raise BadExpression(f"{to_text(value)[:40]!r} isn't a number.")


def _total(value: Any) -> Any:
    total: Any = 0
    for one in _members("sum", (value,)):
        total = _sum(total, one)
    return total


def _min(*values: Any) -> Any:
    return _extreme("min", "<", values)


def _max(*values: Any) -> Any:
    return _extreme("max", ">", values)


def _extreme(name: str, sign: str, values: tuple[Any, ...]) -> Any:
    """Return the value that precedes all others by this operator, or None."""
    members = iter(_members(name, values))
    best = next(members, None)
    for one in members:
        best = one if OPERATORS[sign](one, best) else best
    return best


def _members(name: str, values: tuple[Any, ...]) -> Sequence[Any]:
    if len(values) != 1:
        return values
    if values[0] is None:
        return ()
    if not is_list(values[0]):
        raise BadExpression(f"{name}() needs a list, not {type_name(values[0])}.")
    members: Sequence[Any] = values[0]
    return members


def _round(value: Any, decimals: Any = 0) -> Any:
    if not is_number(value):
        raise BadExpression(f"round() needs a number, not {type_name(value)}.")
    if not isinstance(decimals, int) or not 0 <= decimals <= MAX_DECIMALS:
        raise BadExpression(f"round() supports 0 to {MAX_DECIMALS} decimal places.")
    return round(_check_finite(value), decimals) if decimals else round(_check_finite(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function for expressions, with its number of arguments and an example."""

    work: Callable[..., Any]
    example: str
    gives: str
    least: int = 1
    most: int = 1
    scans: bool = False  # whether it scans the lists it is given


FUNCTIONS: Mapping[str, Function] = {
    "len": Function(work=_len, example="len(['a', 'b'])", gives="2"),
    "lower": Function(work=_lower, example="lower('Tokyo')", gives="'tokyo'"),
    "upper": Function(work=_upper, example="upper('Tokyo')", gives="'TOKYO'"),
    "contains": Function(
        work=lambda whole, item: is_member(item, whole),
        example="contains('green tea', 'tea')",
        gives="true",
        least=2,
        most=2,
        scans=True,
    ),
    "number": Function(work=_to_number, example="number('6') + 1", gives="7"),
    "text": Function(work=to_text, example="text(6) + ' items'", gives="'6 items'"),
    "sum": Function(work=_total, example="sum([1, 2, 3])", gives="6", scans=True),
    "min": Function(work=_min, example="min(4, 2, 8)", gives="2", most=20, scans=True),
    "max": Function(work=_max, example="max([4, 2, 8])", gives="8", most=20, scans=True),
    "round": Function(work=_round, example="round(2.345, 1)", gives="2.3", most=2),
}
