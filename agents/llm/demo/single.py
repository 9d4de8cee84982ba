"""One value of a form: the first of what is known that its rules allow."""

import re
from collections.abc import Iterable, Iterator
from math import ceil, floor
from typing import Any, Final

from agents.engine.json_schema import violations

from .known import Known
from .parts import Part
from .rows import is_number

NOTHING: Final = object()

_RULES = {
    *("type", "enum", "const", "pattern", "minLength", "maxLength", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}
_FORMATS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:.+"),
    "email": re.compile(r"\S+@\S+"),
    "uri": re.compile(r"[a-z]+:\S+"),
}
_UNKNOWN = frozenset(("unknown", "other", "none", "n/a", "不明", "その他"))


def found(part: Part, name: str, known: Known) -> Any:
    """What is known of a field of this name."""
    chosen = known.mentioned(part.get("enum", ()))
    dates = known.dates() if part.get("format") == "date" else ()
    return fitting(part, [*chosen, *dates, *known.facts(name)])


def forced(part: Part, known: Known) -> Any:
    """What stands where something must and nothing is known."""
    empty = list(_empty(part))
    guesses = () if part.get("format") in _FORMATS else known.guesses()
    value = fitting(part, [*guesses, *empty])
    return empty[0] if value is NOTHING else value


def fitting(part: Part, values: Iterable[Any]) -> Any:
    """The first of the values that fits, as it is, or as text, or cut to its length."""
    longest = part.get("maxLength")
    forms = (form for value in values for form in _forms(value, longest))
    return next((form for form in forms if _fits(part, form)), NOTHING)


def _fits(part: Part, value: Any) -> bool:
    if isinstance(value, float) and not is_number(value):
        return False
    form = _FORMATS.get(part.get("format", "")) if isinstance(value, str) else None
    if form is not None and not form.fullmatch(value):
        return False
    return not violations({rule: part[rule] for rule in _RULES & part.keys()}, value)


def _forms(value: Any, longest: int | None) -> Iterator[Any]:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    yield value
    if is_number(value):
        yield f"{value:.12g}" if isinstance(value, float) else str(value)
    if isinstance(value, str) and longest is not None and len(value) > longest > 0:
        yield f"{value[: longest - 1]}…"


def _empty(part: Part) -> Iterator[Any]:
    """The closest to nothing that such a value can be; the first of them in any case."""
    if "const" in part:
        yield part["const"]
    yield from sorted(part.get("enum", ()), key=_says_something)
    match part.get("type"):
        case "boolean":
            yield False
        case "number" | "integer":
            yield from _numbers(part)
        case _:
            yield ""
            yield "—" * part.get("minLength", 0)


def _says_something(choice: Any) -> bool:
    return choice is not None and str(choice).lower() not in _UNKNOWN


def _numbers(part: Part) -> Iterator[float]:
    yield 0
    bounds = [part[rule] for rule in part if rule.endswith("imum") and is_number(part[rule])]
    step = part.get("multipleOf", 1)
    for bound in bounds:
        yield from (bound, floor(bound / step) * step, ceil(bound / step) * step)
        yield from (floor(bound / step + 1) * step, ceil(bound / step - 1) * step)
    yield sum(bounds) / max(1, len(bounds))
