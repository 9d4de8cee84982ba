"""Adds up or averages the numbers of a panel's answers, in exact decimals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Literal

from ...sentences import Sentence as _
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
        texts = dict[str, str]()
        for name, numbers in self.numbers.items():
            first, *further = numbers.values()
            texts[name] = "" if further else format_quantity(first.value, first.unit)
        return {
            "operation": self.operation,
            "numbers": texts,
            "results": [result.to_dict() for result in self.results[:MAX_FIELDS]],
            "left_out": list(self.left_out),
            "output": self.output,
        }


class NotNumeric(ValueError):
    """Raised with a sentence where answers can't be calculated with."""


def calculate(operation: Operation, answers: Sequence[AnswerValue]) -> Arithmetic:
    """Add up or average the answers' numbers; those without one are left out."""
    numbers = _common_fields(answers) or _single_numbers(answers)
    if not numbers:
        raise NotNumeric(_("No answer has a clear number."))
    if len(numbers) == 1:
        raise NotNumeric(_("Only %(name)s gave a clear number.", name=next(iter(numbers))))
    paths = list(next(iter(numbers.values())))
    results = tuple(_result(operation, path, numbers) for path in paths)
    outputs = [answer.output for answer in answers if answer.name in numbers]
    return Arithmetic(
        operation=operation,
        numbers=numbers,
        results=results,
        left_out=tuple(answer.name for answer in answers if answer.name not in numbers),
        output=_merged_output(outputs, results),
    )


def _common_fields(answers: Sequence[AnswerValue]) -> dict[str, Numbers]:
    """Return the numeric fields that all structured answers have in common."""
    numbers = {
        answer.name: fields
        for answer in answers
        if isinstance(answer.output, dict) and (fields := dict(_number_fields(answer.output)))
    }
    if not numbers:
        return {}
    first, *further = numbers.values()
    common = [path for path in first if all(path in fields for fields in further)]
    if not common:
        return {}
    return {name: {path: fields[path] for path in common} for name, fields in numbers.items()}


def _number_fields(value: Any, path: Path = WHOLE) -> list[tuple[Path, Quantity]]:
    if isinstance(value, dict) and len(path) < MAX_DEPTH:
        return [
            number
            for key, item in value.items()
            for number in _number_fields(item, (*path, key))
        ]
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return []
    if abs(value) >= 10**MAX_DIGITS:
        return []
    return [(path, Quantity(Decimal(str(value))))]  # the digits as they were written


def _single_numbers(answers: Sequence[AnswerValue]) -> dict[str, Numbers]:
    """Return the number of each answer that has exactly one."""
    numbers: dict[str, Numbers] = {}
    for answer in answers:
        fields = _number_fields(answer.output)
        number = fields[0][1] if len(fields) == 1 else None
        if answer.output is None:
            number = read_quantity(answer.text)
        if number is not None:
            numbers[answer.name] = {WHOLE: number}
    return numbers


def _result(operation: Operation, path: Path, numbers: Mapping[str, Numbers]) -> FieldResult:
    terms = [fields[path] for fields in numbers.values()]
    units = list(dict.fromkeys(term.unit for term in terms))
    if len(units) > 1:
        unit_list = ", ".join(unit or "none" for unit in units)
        raise NotNumeric(_("The numbers have different units: %(units)s.", units=unit_list))
    total = sum((Fraction(term.value) for term in terms), Fraction(0))
    exact = total / len(terms) if operation == "average" else total
    value, is_rounded = _decimal(exact, [term.value for term in terms])
    texts = [format_quantity(term.value) for term in terms]
    working = " + ".join(f"({text})" if text[0] == "-" else text for text in texts)
    if operation == "average":
        working = f"({working}) ÷ {len(terms)}"
    working += f" {'≈' if is_rounded else '='} {format_quantity(value, units[0])}"
    return FieldResult(path=path, value=value, unit=units[0], working=working)


def _decimal(exact: Fraction, numbers: Sequence[Decimal]) -> tuple[Decimal, bool]:
    """Return the value exactly if it has few digits, else rounded; and whether it is."""
    digits = max(max(0, -int(number.as_tuple().exponent)) for number in numbers)
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


def _merged_output(outputs: Sequence[Any], results: Sequence[FieldResult]) -> Any:
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
    first, *further = outputs
    merged: dict[str, Any] = {}
    for key, value in first.items():
        counterparts = [output.get(key) for output in further]
        if isinstance(value, dict) and all(isinstance(item, dict) for item in counterparts):
            merged[key] = _agreed([value, *counterparts])
        elif all(key in output and output[key] == value for output in further):
            merged[key] = value
    return merged


def _json_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
