"""What the signs and functions of an expression do, and how much they may make.

Only numbers, text, lists, mappings, true, false and null go in and come out, and what is made
or looked through in one go has an end: nothing here can be talked into filling the memory, or
into keeping everybody else waiting.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadExpression

MOST_CHARACTERS = 2_000_000
MOST_LOOKED_AT = 300_000
LARGEST = 10**18
MOST_DECIMALS = 15
TOO_LARGE = "This number is too large."


@dataclass(slots=True)
class Room:
    """How much may still be made, in characters, and how many items looked at."""

    left: int = MOST_CHARACTERS
    looks: int = MOST_LOOKED_AT

    def take(self, value: Any) -> Any:
        """The value itself; raises BadExpression if there is no room for it."""
        waiting = [value]
        while waiting:
            one = waiting.pop()
            self.left -= len(one) + 2 if isinstance(one, str) else 4
            if self.left < 0:
                raise BadExpression(f"This makes more than {MOST_CHARACTERS:,} characters.")
            waiting += _parts(one)
        return value

    def look(self, *values: Any) -> None:
        """Go through these, item by item; raises BadExpression if that was done enough."""
        self.looks -= sum(len(value) for value in values if is_list(value))
        if self.looks < 0:
            raise BadExpression(f"This looks at more than {MOST_LOOKED_AT:,} items.")


def part(of: Any, key: Any) -> Any:
    """What is there under this name or number; nothing is null, and so is what is in it."""
    if isinstance(of, Mapping):
        return of.get(key) if isinstance(key, str) else None
    if not is_list(of):
        return None
    index = _index(key)
    return of[index] if index is not None and -len(of) <= index < len(of) else None


def text(value: Any) -> str:
    """A value as it stands in a text: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        raise BadExpression("This is nested too deeply to be written as text.") from None


def is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    try:
        return bool(left == right)
    except RecursionError:
        raise BadExpression("These are nested too deeply to be compared.") from None


def within(item: Any, whole: Any) -> bool:
    """Whether a list has the item, a text the words or a mapping the name; null has nothing."""
    if whole is None:
        return False
    if isinstance(whole, str) and isinstance(item, str):
        return item in whole
    if isinstance(whole, Mapping):
        return isinstance(item, str) and item in whole
    if is_list(whole):
        return any(equal(item, one) for one in whole)
    raise BadExpression(f"{kind(item)} cannot be looked for in {kind(whole)}.")


def add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if is_list(left) and is_list(right):
        return [*left, *right]
    return _sum(left, right)


def kind(value: Any) -> str:
    """What it is, in a word, for a sentence."""
    for test, word in KINDS:
        if test(value):
            return word
    return type(value).__name__


KINDS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda value: value is None, "null"),
    (lambda value: isinstance(value, bool), "true or false"),
    (is_number, "a number"),
    (lambda value: isinstance(value, str), "text"),
    (lambda value: isinstance(value, Mapping), "a mapping"),
    (is_list, "a list"),
)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return list(value) if is_list(value) else []


def _index(key: Any) -> int | None:
    if isinstance(key, str):
        return int(key) if key.isascii() and key.isdigit() and len(key) < 10 else None
    is_whole = is_number(key) and math.isfinite(key) and key == int(key)
    return int(key) if is_whole else None


def _arithmetic(sign: str, work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def worked_out(left: Any, right: Any) -> Any:
        if not (is_number(left) and is_number(right)):
            raise BadExpression(f"{kind(left)} {sign} {kind(right)} cannot be worked out.")
        try:
            return _finite(work(left, right))
        except ZeroDivisionError:
            raise BadExpression("This divides by zero.") from None
        except OverflowError:
            raise BadExpression(TOO_LARGE) from None

    return worked_out


def _finite(number: Any) -> Any:
    is_whole = isinstance(number, int)
    if abs(number) > LARGEST if is_whole else not math.isfinite(number):
        raise BadExpression(TOO_LARGE)
    return number


def _ordered(sign: str, work: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(left: Any, right: Any) -> bool:
        is_text = isinstance(left, str) and isinstance(right, str)
        if is_text or (is_number(left) and is_number(right)):
            return work(left, right)
        raise BadExpression(f"{kind(left)} {sign} {kind(right)} cannot be compared.")

    return compared


_sum = _arithmetic("+", lambda left, right: left + right)

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _ordered("<", lambda left, right: left < right),
    "<=": _ordered("<=", lambda left, right: left <= right),
    ">": _ordered(">", lambda left, right: left > right),
    ">=": _ordered(">=", lambda left, right: left >= right),
    "in": within,
    "not in": lambda left, right: not within(left, right),
    "+": add,
    "-": _arithmetic("-", lambda left, right: left - right),
    "*": _arithmetic("*", lambda left, right: left * right),
    "/": _arithmetic("/", lambda left, right: left / right),
    "%": _arithmetic("%", lambda left, right: left % right),
}

LOOKING = {"==", "!=", "in", "not in"}  # the signs that go through lists


def _len(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str | Mapping) or is_list(value):
        return len(value)
    raise BadExpression(f"len() is of text, a list or a mapping, and not of {kind(value)}.")


def _lower(value: Any) -> str:
    return _words("lower", value).lower()


def _upper(value: Any) -> str:
    return _words("upper", value).upper()


def _words(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadExpression(f"{name}() is of text, and not of {kind(value)}.")
    return value


def _contains(whole: Any, item: Any) -> bool:
    return within(item, whole)


def _number(value: Any) -> Any:
    """Text that is written like a number; null stays null."""
    if value is None or is_number(value):
        return value
    for read in (int, float) if isinstance(value, str) and len(value) <= 30 else ():
        try:
            return _finite(read(value))
        except ValueError:
            continue
    raise BadExpression(f"{text(value)[:40]!r} is not a number.")


def _total(value: Any) -> Any:
    total: Any = 0
    for one in _members("sum", (value,)):
        total = _sum(total, one)
    return total


def _least(*values: Any) -> Any:
    return _chosen("min", "<", values)


def _most(*values: Any) -> Any:
    return _chosen("max", ">", values)


def _chosen(name: str, sign: str, values: tuple[Any, ...]) -> Any:
    """The one that stands before all others by this sign; null where there is none."""
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
        raise BadExpression(f"{name}() is of a list, and not of {kind(values[0])}.")
    members: Sequence[Any] = values[0]
    return members


def _round(value: Any, decimals: Any = 0) -> Any:
    if not is_number(value):
        raise BadExpression(f"round() is of a number, and not of {kind(value)}.")
    if not isinstance(decimals, int) or not 0 <= decimals <= MOST_DECIMALS:
        raise BadExpression(f"round() keeps 0 to {MOST_DECIMALS} decimals.")
    return round(_finite(value), decimals) if decimals else round(_finite(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One that expressions may call, how many values it takes, and what that looks like."""

    work: Callable[..., Any]
    example: str
    gives: str
    least: int = 1
    most: int = 1
    looks: bool = False  # whether it goes through the lists that it is given


FUNCTIONS: Mapping[str, Function] = {
    "len": Function(work=_len, example="len(['a', 'b'])", gives="2"),
    "lower": Function(work=_lower, example="lower('Tokyo')", gives="'tokyo'"),
    "upper": Function(work=_upper, example="upper('Tokyo')", gives="'TOKYO'"),
    "contains": Function(
        work=lambda whole, item: within(item, whole),
        example="contains('green tea', 'tea')",
        gives="true",
        least=2,
        most=2,
        looks=True,
    ),
    "number": Function(work=_number, example="number('6') + 1", gives="7"),
    "text": Function(work=text, example="text(6) + ' items'", gives="'6 items'"),
    "sum": Function(work=_total, example="sum([1, 2, 3])", gives="6", looks=True),
    "min": Function(work=_least, example="min(4, 2, 8)", gives="2", most=20, looks=True),
    "max": Function(work=_most, example="max([4, 2, 8])", gives="8", most=20, looks=True),
    "round": Function(work=_round, example="round(2.345, 1)", gives="2.3", most=2),
}
