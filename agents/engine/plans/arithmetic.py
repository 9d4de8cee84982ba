"""Adds up or averages the numbers of a panel's answers, in exact decimals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Literal

from .quantities import MAX_DIGITS, Quantity, format_quantity, read_quantity

Operation = Literal["sum", "average"]
Path = tuple[str, ...]
Numbers = dict[Path, Quantity]

WHOLE: Path = ()
ROUNDED_DIGITS = 4  # more than the numbers themselves have
MAX_EXACT_DIGITS = 15
MAX_FIELDS = 50
MAX_DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerValue:
    """One member's answer, as text and, if it is structured, as data."""

    name: str
    text: str
    output: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldResult:
    """The result for one field; the whole answer has no path."""

    path: Path
    value: Decimal
    unit: str
    working: str

    def to_dict(self) -> dict[str, str]:
        text = format_quantity(self.value, self.unit)
        return {"field": ".".join(self.path), "value": text, "working": self.working}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """The numbers of each member, the result of each field, and who is left out."""

    operation: Operation
    numbers: Mapping[str, Numbers]
    results: tuple[FieldResult, ...]
    left_out: tuple[str, ...]
    output: Any = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "numbers": {name: _shown(numbers) for name, numbers in self.numbers.items()},
            "results": [result.to_dict() for result in self.results[:MAX_FIELDS]],
            "left_out": list(self.left_out),
            "output": self.output,
        }


class NotNumeric(ValueError):
    """Raised with a sentence where answers can't be calculated with."""


def calculate(operation: Operation, answers: Sequence[AnswerValue]) -> Arithmetic:
    """Add up or average the answers' numbers; those without one are left out."""
    numbers = _common_fields(answers) or _single_numbers(answers)
    if len(numbers) < 2:
        raise NotNumeric(_too_few(numbers))
    paths = list(next(iter(numbers.values())))
    results = tuple(_result(operation, path, numbers) for path in paths)
    outputs = [answer.output for answer in answers if answer.name in numbers]
    return Arithmetic(
        operation=operation,
        numbers=numbers,
        results=results,
        left_out=tuple(answer.name for answer in answers if answer.name not in numbers),
        output=_output(outputs, results),
    )


def _common_fields(answers: Sequence[AnswerValue]) -> dict[str, Numbers]:
    """Return the numeric fields that all structured answers have in common."""
    found = {
        answer.name: fields
        for answer in answers
        if isinstance(answer.output, dict) and (fields := dict(_number_fields(answer.output)))
    }
    if not found:
        return {}
    first, *others = found.values()
    common = [path for path in first if all(path in fields for fields in others)]
    if not common:
        return {}
    return {name: {path: fields[path] for path in common} for name, fields in found.items()}


def _number_fields(value: Any, path: Path = WHOLE) -> list[tuple[Path, Quantity]]:
    if isinstance(value, dict) and len(path) < MAX_DEPTH:
        return [
            item for key, part in value.items() for item in _number_fields(part, (*path, key))
        ]
    number = _number(value)
    return [] if number is None else [(path, Quantity(number))]


def _number(value: Any) -> Decimal | None:
    """Return a JSON number as its digits were written."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return Decimal(str(value)) if abs(value) < 10**MAX_DIGITS else None


def _single_numbers(answers: Sequence[AnswerValue]) -> dict[str, Numbers]:
    """Return the number of each answer that has exactly one."""
    found: dict[str, Numbers] = {}
    for answer in answers:
        fields = _number_fields(answer.output)
        number = fields[0][1] if len(fields) == 1 else None
        if answer.output is None:
            number = read_quantity(answer.text)
        if number is not None:
            found[answer.name] = {WHOLE: number}
    return found


def _too_few(numbers: Mapping[str, Numbers]) -> str:
    if numbers:
        return f"Only {next(iter(numbers))} gave a clear number."
    return "No answer has a clear number."


def _result(operation: Operation, path: Path, numbers: Mapping[str, Numbers]) -> FieldResult:
    terms = {name: fields[path] for name, fields in numbers.items()}
    units = list(dict.fromkeys(term.unit for term in terms.values()))
    if len(units) > 1:
        named = ", ".join(unit or "none" for unit in units)
        raise NotNumeric(f"The numbers have different units: {named}.")
    total = sum((Fraction(term.value) for term in terms.values()), Fraction(0))
    exact = total / len(terms) if operation == "average" else total
    value, is_rounded = _decimal(exact, [term.value for term in terms.values()])
    working = _working(operation, list(terms.values()), format_quantity(value, units[0]))
    working = working.replace(" = ", " ≈ ") if is_rounded else working
    return FieldResult(path=path, value=value, unit=units[0], working=working)


def _decimal(exact: Fraction, numbers: Sequence[Decimal]) -> tuple[Decimal, bool]:
    """Return the value exactly if it has few digits, else rounded."""
    digits = max(_decimals(number) for number in numbers)
    for places in range(digits, max(digits, MAX_EXACT_DIGITS) + 1):
        scaled = exact * 10**places
        if scaled.denominator == 1:
            return _scaled(scaled.numerator, places), False
    places = digits + ROUNDED_DIGITS
    return _scaled(round(exact * 10**places), places), True


def _scaled(number: int, places: int) -> Decimal:
    """Return number / 10**places, at full length regardless of the decimal context."""
    digits = tuple(int(digit) for digit in str(abs(number)))
    return Decimal((1 if number < 0 else 0, digits, -places))


def _decimals(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _working(operation: Operation, terms: Sequence[Quantity], result: str) -> str:
    shown = [format_quantity(term.value) for term in terms]
    added = " + ".join(f"({text})" if text[0] == "-" else text for text in shown)
    if operation == "average":
        added = f"({added}) ÷ {len(terms)}"
    return f"{added} = {result}"


def _output(outputs: Sequence[Any], results: Sequence[FieldResult]) -> Any:
    """Return structured answers with their results; other fields stay where all agree."""
    if not outputs or any(output is None for output in outputs):
        return None
    if results[0].path == WHOLE:
        return _json_number(results[0].value)
    merged = _agreed(outputs)
    for result in results:
        target = merged
        for key in result.path[:-1]:
            target = target.setdefault(key, {})
        target[result.path[-1]] = _json_number(result.value)
    return merged


def _agreed(outputs: Sequence[Any]) -> dict[str, Any]:
    first, *others = outputs
    merged: dict[str, Any] = {}
    for key, value in first.items():
        same = [other.get(key) for other in others]
        if isinstance(value, dict) and all(isinstance(other, dict) for other in same):
            merged[key] = _agreed([value, *same])
        elif all(key in other and other[key] == value for other in others):
            merged[key] = value
    return merged


def _json_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _shown(numbers: Numbers) -> str:
    first, *more = numbers.values()
    return "" if more else format_quantity(first.value, first.unit)
