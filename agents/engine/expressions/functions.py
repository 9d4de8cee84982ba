"""The operators and functions of expressions, and their limits.

Inputs and outputs are numbers, text, lists, mappings, true, false and null. Results and scans
are limited, so no expression can fill the memory or block the server.
"""

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadExpression
from ..sentences import Sentence as _

MAX_RESULT_CHARS = 2_000_000
MAX_SCANNED_ITEMS = 300_000
MAX_NUMBER = 10**18
MAX_DECIMALS = 15
NUMBER_TOO_LARGE = _("This number is too large.")


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
                    _(
                        "The result is longer than %(limit)s characters.",
                        limit=f"{MAX_RESULT_CHARS:,}",
                    )
                )
            if isinstance(item, Mapping):
                waiting += [*item.keys(), *item.values()]
            elif is_list(item):
                waiting += item
        return value

    def count_items(self, *values: Any) -> None:
        """Count the items of these lists; raise BadExpression if too many were scanned."""
        self.items_left -= sum(len(value) for value in values if is_list(value))
        if self.items_left < 0:
            raise BadExpression(
                _(
                    "The expression processes more than %(limit)s items.",
                    limit=f"{MAX_SCANNED_ITEMS:,}",
                )
            )


def get_item(of: Any, key: Any) -> Any:
    """Return the item at this key or index, or None if it or its container is missing."""
    if isinstance(of, Mapping):
        return of.get(key) if isinstance(key, str) else None
    if not is_list(of):
        return None
    if isinstance(key, str):
        is_index = key.isascii() and key.isdigit() and len(key) < 10
    else:
        is_index = is_number(key) and math.isfinite(key) and key == int(key)
    return of[int(key)] if is_index and -len(of) <= int(key) < len(of) else None


def to_text(value: Any) -> str:
    """Return text unchanged and any other value as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        raise BadExpression(_("This is nested too deeply to convert to text.")) from None


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
        raise BadExpression(_("These values are nested too deeply to compare.")) from None


def is_member(item: Any, container: Any) -> bool:
    """Whether a list, text or mapping contains the item; null contains nothing."""
    if container is None:
        return False
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    if isinstance(container, Mapping):
        return isinstance(item, str) and item in container
    if is_list(container):
        return any(is_equal(item, member) for member in container)
    raise BadExpression(
        _(
            "Can't search for %(item)s in %(whole)s.",
            item=type_name(item),
            whole=type_name(container),
        )
    )


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
    (lambda value: isinstance(value, bool), _("true or false")),
    (is_number, _("a number")),
    (lambda value: isinstance(value, str), "text"),
    (lambda value: isinstance(value, Mapping), _("a mapping")),
    (is_list, _("a list")),
)


def _arithmetic(sign: str, work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(left: Any, right: Any) -> Any:
        if not (is_number(left) and is_number(right)):
            raise BadExpression(
                _(
                    "Can't apply %(sign)s to %(left)s and %(right)s.",
                    sign=sign,
                    left=type_name(left),
                    right=type_name(right),
                )
            )
        try:
            return _check_finite(work(left, right))
        except ZeroDivisionError:
            raise BadExpression(_("Division by zero.")) from None
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
            _(
                "Can't compare %(left)s with %(right)s using %(sign)s.",
                left=type_name(left),
                right=type_name(right),
                sign=sign,
            )
        )

    return compare


_sum = _arithmetic("+", operator.add)

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "<": _comparison("<", operator.lt),
    "<=": _comparison("<=", operator.le),
    ">": _comparison(">", operator.gt),
    ">=": _comparison(">=", operator.ge),
    "in": is_member,
    "not in": lambda item, container: not is_member(item, container),
    "+": add,
    "-": _arithmetic("-", operator.sub),
    "*": _arithmetic("*", operator.mul),
    "/": _arithmetic("/", operator.truediv),
    "%": _arithmetic("%", operator.mod),
}

SCANNING_OPERATORS = {"==", "!=", "in", "not in"}  # operators that scan lists


def _len(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str | Mapping) or is_list(value):
        return len(value)
    raise BadExpression(
        _("len() needs text, a list or a mapping, not %(given)s.", given=type_name(value))
    )


def _require_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadExpression(
            _("%(name)s() needs text, not %(given)s.", name=name, given=type_name(value))
        )
    return value


def _to_number(value: Any) -> Any:
    """Convert numeric text to a number; null stays null."""
    if value is None or is_number(value):
        return value
    for convert in (int, float) if isinstance(value, str) and len(value) <= 30 else ():
        try:
            return _check_finite(convert(value))
        except ValueError:
            continue
    raise BadExpression(_("%(words)s isn't a number.", words=repr(to_text(value)[:40])))


def _total(value: Any) -> Any:
    total: Any = 0
    for member in _members("sum", (value,)):
        total = _sum(total, member)
    return total


def _extreme(name: str, sign: str, values: tuple[Any, ...]) -> Any:
    """Return the value that precedes all others by this operator, or None."""
    members = iter(_members(name, values))
    best = next(members, None)
    for member in members:
        best = member if OPERATORS[sign](member, best) else best
    return best


def _members(name: str, values: tuple[Any, ...]) -> Sequence[Any]:
    if len(values) != 1:
        return values
    if values[0] is None:
        return ()
    if not is_list(values[0]):
        raise BadExpression(
            _("%(name)s() needs a list, not %(given)s.", name=name, given=type_name(values[0]))
        )
    members: Sequence[Any] = values[0]
    return members


def _round(value: Any, decimals: Any = 0) -> Any:
    if not is_number(value):
        raise BadExpression(_("round() needs a number, not %(given)s.", given=type_name(value)))
    if not isinstance(decimals, int) or not 0 <= decimals <= MAX_DECIMALS:
        raise BadExpression(
            _("round() supports 0 to %(limit)s decimal places.", limit=MAX_DECIMALS)
        )
    return round(_check_finite(value), decimals) if decimals else round(_check_finite(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function for expressions, with its number of arguments and an example."""

    work: Callable[..., Any]
    example: str
    gives: str
    min_arguments: int = 1
    max_arguments: int = 1
    scans: bool = False  # whether it scans the lists it is given


FUNCTIONS: Mapping[str, Function] = {
    "len": Function(work=_len, example="len(['a', 'b'])", gives="2"),
    "lower": Function(
        work=lambda value: _require_text("lower", value).lower(),
        example="lower('Tokyo')",
        gives="'tokyo'",
    ),
    "upper": Function(
        work=lambda value: _require_text("upper", value).upper(),
        example="upper('Tokyo')",
        gives="'TOKYO'",
    ),
    "contains": Function(
        work=lambda container, item: is_member(item, container),
        example="contains('green tea', 'tea')",
        gives="true",
        min_arguments=2,
        max_arguments=2,
        scans=True,
    ),
    "number": Function(work=_to_number, example="number('6') + 1", gives="7"),
    "text": Function(work=to_text, example="text(6) + ' items'", gives="'6 items'"),
    "sum": Function(work=_total, example="sum([1, 2, 3])", gives="6", scans=True),
    "min": Function(
        work=lambda *values: _extreme("min", "<", values),
        example="min(4, 2, 8)",
        gives="2",
        max_arguments=20,
        scans=True,
    ),
    "max": Function(
        work=lambda *values: _extreme("max", ">", values),
        example="max([4, 2, 8])",
        gives="8",
        max_arguments=20,
        scans=True,
    ),
    "round": Function(work=_round, example="round(2.345, 1)", gives="2.3", max_arguments=2),
}
