"""Operations over a few operands: sums, differences, ratios, products."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from .index import Place
from .operands import Operand, Trial, format_sum
from .target import Target
from .units import dimension_of, factor_between, is_alike, is_same_unit

MAX_ALIKE = 6
CURRENCIES = frozenset("$¥€£")


def pairs(
    first: Sequence[Operand],
    second: Sequence[Operand],
    target: Target,
    cues: frozenset[str],
    *,
    is_far: bool = False,
) -> Iterator[Trial]:
    """Yield what an operation makes of an operand of each sequence."""
    figure = target.figure
    is_sentence = first is second and figure.digits > 1 and len(first) <= MAX_ALIKE
    tried: set[tuple[float, float]] = set()
    for a in first:
        for b in second:
            if a.value == b.value:
                continue
            high, low = (a, b) if a.value > b.value else (b, a)
            values = (low.value, high.value)
            if values in tried:
                continue
            tried.add(values)
            place = high.place or low.place
            unit = a.unit or b.unit
            # Of one certain unit, three digits are no chance.
            is_certain = figure.digits > 3 or (
                figure.digits > 2 and a.unit == b.unit == figure.unit != ""
            )
            has_unit = not target.is_share or unit in {"%", figure.unit}
            if has_unit and is_alike(a.unit, b.unit):
                if "difference" in cues or is_certain:
                    formula = f"{high.text} − {low.text}"
                    yield Trial(high.value - low.value, unit, formula, place=place)
                if "sum" in cues or is_certain or (is_sentence and a.unit == b.unit):
                    formula = f"{a.text} + {b.text}"
                    yield Trial(a.value + b.value, unit, formula, place=place)
                if "average" in cues:
                    formula = f"({a.text} + {b.text}) ÷ 2"
                    yield Trial((a.value + b.value) / 2, unit, formula, place=place)
            if target.is_share:
                yield from _ratios(high, low, figure.unit, place)
            else:
                yield from _products(high, low, target, cues, place, is_far=is_far)


def _ratios(high: Operand, low: Operand, unit: str, place: Place | None) -> Iterator[Trial]:
    """Yield shares and changes in percent, or how many times one is the other."""
    factor = factor_between(low.unit, high.unit)
    if factor is not None and factor != 1.0:
        low = low._replace(value=low.value * factor)
        high, low = (high, low) if high.value >= low.value else (low, high)
    is_comparable = factor is not None or is_alike(high.unit, low.unit)
    if not is_comparable or not low.value or high.unit == "%":
        return
    ratio = high.value / low.value
    if unit != "%":
        yield Trial(ratio, unit, f"{high.text} ÷ {low.text}", place=place)
        return
    yield Trial(100 * low.value / high.value, "%", f"{low.text} ÷ {high.text}", place=place)
    change = 100 * (high.value - low.value)
    difference = f"({high.text} − {low.text})"
    yield Trial(change / low.value, "%", f"{difference} ÷ {low.text}", place=place)
    yield Trial(change / high.value, "%", f"{difference} ÷ {high.text}", place=place)
    yield Trial(100 * ratio, "%", f"{high.text} ÷ {low.text}", place=place)


def _products(
    high: Operand,
    low: Operand,
    target: Target,
    cues: frozenset[str],
    place: Place | None,
    *,
    is_far: bool,
) -> Iterator[Trial]:
    """Yield products, quotients, and percentages of an amount."""
    figure = target.figure
    if high.unit and low.unit:
        dimensions = {dimension_of(high.unit), dimension_of(low.unit)}
        if not {"", dimension_of(figure.unit)} & dimensions:
            return
    if "%" in {high.unit, low.unit}:
        percentage, amount = (high, low) if high.unit == "%" else (low, high)
        if amount.unit != "%" and (figure.digits > 2 or not is_far):
            share = amount.value * percentage.value / 100
            unit = amount.unit
            formula = f"{amount.text} × {percentage.text}"
            yield Trial(share, unit, formula, place=place)
            formula = f"{amount.text} × (100% − {percentage.text})"
            yield Trial(amount.value - share, unit, formula, place=place)
            formula = f"{amount.text} × (100% + {percentage.text})"
            yield Trial(amount.value + share, unit, formula, place=place)
        return
    is_certain = figure.digits > 3
    is_money = high.unit == low.unit and high.unit in CURRENCIES
    if not is_money and ("product" in cues or is_certain):
        formula = f"{high.text} × {low.text}"
        product = high.value * low.value
        yield Trial(product, figure.unit, formula, place=place)
        if target.kind.is_large:  # of millions
            yield Trial(1e6 * product, figure.unit, formula, place=place)
        if "year" in cues:
            yield Trial(12 * product, figure.unit, f"12 × {formula}", place=place)
    if ("rate" in cues or is_certain) and low.value:
        formula = f"{high.text} ÷ {low.text}"
        yield Trial(high.value / low.value, figure.unit, formula, place=place)
        if high.value:
            formula = f"{low.text} ÷ {high.text}"
            yield Trial(low.value / high.value, figure.unit, formula, place=place)


def sums(operands: Sequence[Operand], cues: frozenset[str]) -> Iterator[Trial]:
    """Yield the sums of all operands and of three or more neighboring ones."""
    size = len(operands)
    slices = [(0, size), *((i, j) for i, j in combinations(range(size + 1), 2) if j - i > 2)]
    for start, end in dict.fromkeys(slices):
        summands = operands[start:end]
        units = {operand.unit for operand in summands if dimension_of(operand.unit)}
        if len(summands) < 3 or len(units) > 1:
            continue
        unit = next(iter(units), "")
        total = sum(operand.value for operand in summands)
        formula = format_sum([operand.text for operand in summands])
        place = summands[0].place
        yield Trial(total, unit, formula, place=place)
        if "average" in cues:
            formula = f"({formula}) ÷ {len(summands)}"
            yield Trial(total / len(summands), unit, formula, place=place)


def column_totals(column: Sequence[Operand]) -> Iterator[Trial]:
    """Yield what can be below the values of a column: their sum or their average."""
    total = sum(operand.value for operand in column)
    unit = column[-1].unit
    formula = format_sum([operand.text for operand in column])
    size = len(column)
    yield Trial(total, unit, formula, "sum", size, place=column[0].place)
    yield Trial(total / size, unit, "", "average", size, place=column[0].place)


def shares(amount: Operand, totals: Sequence[Operand]) -> Iterator[Trial]:
    """Yield what percentage of each total an amount is."""
    for total in totals:
        if total.value and abs(amount.value) <= abs(total.value):
            formula = f"{amount.text} ÷ {total.text}"
            yield Trial(100 * amount.value / total.value, "%", formula, place=amount.place)


def scaled(
    operands: Sequence[Operand], scales: Sequence[Operand], unit: str
) -> Iterator[Trial]:
    """Yield what belongs to an amount that the question names, such as 10 servings."""
    amounts = [operand for operand in operands if is_same_unit(operand.unit, unit)]
    for scale in scales if amounts else ():
        for base in operands:
            if base.unit and scale.unit and not is_same_unit(base.unit, scale.unit):
                continue
            for amount in amounts:
                if amount is not base:
                    formula = f"{amount.text} × {scale.text} ÷ {base.text}"
                    value = amount.value * scale.value / base.value
                    yield Trial(value, amount.unit, formula, place=amount.place)
