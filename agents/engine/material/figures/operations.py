"""Operations by which a figure follows from operands: sums, differences, ratios, products."""

from collections.abc import Iterator, Sequence

from .operands import Computation, Operand, format_sum
from .target import Target
from .units import dimension_of, factor_between, is_alike, is_same_unit

MAX_ALIKE = 6
CURRENCIES = frozenset("$¥€£")


def explain_by_pair(
    target: Target,
    first: Sequence[Operand],
    second: Sequence[Operand],
    cues: frozenset[str],
    *,
    is_far: bool = False,
) -> Computation | None:
    """Return the operation on an operand of each sequence that makes the figure."""
    figure = target.figure
    is_sentence = first is second and figure.digits > 1 and len(first) <= MAX_ALIKE
    is_difference = "difference" in cues
    is_sum = "sum" in cues
    is_average = "average" in cues
    lowest = target.lowest
    highest = target.highest
    own_units = {"", figure.unit}
    for a, b in _nearest_pairs(first, second):
        if target.remaining <= 0:
            return None
        if a.value == b.value:
            continue
        high, low = (a, b) if a.value > b.value else (b, a)
        place = high.place or low.place
        unit = a.unit or b.unit
        # Of one certain unit, two digits are no chance.
        is_certain = figure.digits > 3 or (
            figure.digits > 1 and a.unit == b.unit == figure.unit != ""
        )
        has_unit = not target.is_share or unit in {"%", figure.unit}
        if has_unit and is_alike(a.unit, b.unit):
            is_other = unit not in own_units
            value = high.value - low.value
            is_near = is_other or lowest <= value <= highest
            if is_near and (is_difference or is_certain) and target.matches(value, unit):
                return Computation(f"{high.text} − {low.text}", place=place)
            value = high.value + low.value
            is_near = is_other or lowest <= value <= highest
            is_tried = is_sum or is_certain or (is_sentence and a.unit == b.unit)
            if is_near and is_tried and target.matches(value, unit):
                return Computation(f"{a.text} + {b.text}", place=place)
            if is_average and target.matches((a.value + b.value) / 2, unit):
                return Computation(f"({a.text} + {b.text}) ÷ 2", place=place)
        if target.is_share:
            formula = _ratio(target, high, low)
        else:
            formula = _product(target, high, low, cues, is_far=is_far)
        if formula:
            return Computation(formula, place=place)
    return None


def _nearest_pairs(
    first: Sequence[Operand], second: Sequence[Operand]
) -> Iterator[tuple[Operand, Operand]]:
    """Yield all pairs, those of the first operands first."""
    if first is second:
        for size, operand in enumerate(first):
            for other in first[:size]:
                yield other, operand
        return
    for size in range(max(len(first), len(second))):
        if size < len(first):
            for operand in second[:size]:
                yield first[size], operand
        if size < len(second):
            for operand in first[: size + 1]:
                yield operand, second[size]


def _ratio(target: Target, high: Operand, low: Operand) -> str:
    """Return the share or change in percent, or how many times one is the other."""
    factor = factor_between(low.unit, high.unit)
    if factor is not None and factor != 1.0:
        low = low._replace(value=low.value * factor)
        high, low = (high, low) if high.value >= low.value else (low, high)
    is_comparable = factor is not None or is_alike(high.unit, low.unit)
    if not is_comparable or not low.value:
        return ""
    unit = target.figure.unit
    ratio = high.value / low.value
    if high.unit == "%":
        is_change = low.unit == unit == "%" and target.matches(100 * (ratio - 1), "%")
        return f"({high.text} − {low.text}) ÷ {low.text}" if is_change else ""
    if unit != "%":
        return f"{high.text} ÷ {low.text}" if target.matches(ratio, unit) else ""
    if target.matches(100 / ratio, "%"):
        return f"{low.text} ÷ {high.text}"
    if target.matches(100 * (ratio - 1), "%"):
        return f"({high.text} − {low.text}) ÷ {low.text}"
    if target.matches(100 - 100 / ratio, "%"):
        return f"({high.text} − {low.text}) ÷ {high.text}"
    return f"{high.text} ÷ {low.text}" if target.matches(100 * ratio, "%") else ""


def _product(
    target: Target, high: Operand, low: Operand, cues: frozenset[str], *, is_far: bool
) -> str:
    """Return the product, the quotient, or the percentage of an amount."""
    figure = target.figure
    if high.unit and low.unit:
        dimensions = {dimension_of(high.unit), dimension_of(low.unit)}
        if not {"", dimension_of(figure.unit)} & dimensions:
            return ""
    if "%" in {high.unit, low.unit}:
        percentage, amount = (high, low) if high.unit == "%" else (low, high)
        if amount.unit != "%" and (figure.digits > 2 or not is_far):
            share = amount.value * percentage.value / 100
            for value, factor in (
                (share, percentage.text),
                (amount.value - share, f"(100% − {percentage.text})"),
                (amount.value + share, f"(100% + {percentage.text})"),
                (
                    amount.value / (1 + percentage.value / 100),
                    f"1 ÷ (100% + {percentage.text})",
                ),
            ):
                if target.matches(value, amount.unit):
                    return f"{amount.text} × {factor}"
        return ""
    is_certain = figure.digits > 3
    is_money = high.unit == low.unit and high.unit in CURRENCIES
    if not is_money and ("product" in cues or is_certain):
        product = high.value * low.value
        # 163 × 450 ml are a volume.
        unit = figure.unit
        if (high.unit or low.unit) and (dimension := dimension_of(unit)):
            units = [u for u in (high.unit, low.unit) if dimension_of(u) == dimension]
            unit = units[0] if len(units) == 1 else unit
        is_near = unit != figure.unit or target.lowest <= product <= target.highest
        if is_near and target.matches(product, unit):
            return f"{high.text} × {low.text}"
        if figure.step >= 1_000 and target.matches(1e6 * product, figure.unit):  # of millions
            return f"{high.text} × {low.text}"
        if "year" in cues and target.matches(12 * product, figure.unit):
            return f"12 × {high.text} × {low.text}"
    if ("rate" in cues or is_certain) and low.value:
        ratio = high.value / low.value
        is_near = target.lowest <= ratio <= target.highest
        if is_near and target.matches(ratio, figure.unit):
            return f"{high.text} ÷ {low.text}"
        if target.lowest < 1 and ratio and target.matches(1 / ratio, figure.unit):
            return f"{low.text} ÷ {high.text}"
    return ""


def explain_by_sum(
    target: Target, operands: Sequence[Operand], cues: frozenset[str]
) -> Computation | None:
    """Return the sum of all operands or of three or more neighboring ones."""
    for start in range(len(operands) - 2):
        total = 0.0
        unit = ""
        for end, operand in enumerate(operands[start:], start=start + 1):
            total += operand.value
            unit = unit or (operand.unit if dimension_of(operand.unit) else "")
            if not is_alike(unit, operand.unit) or target.remaining <= 0:
                break
            size = end - start
            if size > 2 and target.matches(total, unit):
                formula = format_sum([summand.text for summand in operands[start:end]])
                return Computation(formula, "sum", size, place=operand.place)
            if size > 2 and "average" in cues and target.matches(total / size, unit):
                return Computation("", "average", size, place=operand.place)
    return None


def explain_by_scale(
    target: Target, operands: Sequence[Operand], scales: Sequence[Operand]
) -> Computation | None:
    """Return what belongs to an amount that the question names, such as 10 servings."""
    unit = target.figure.unit
    amounts = [
        operand
        for operand in operands
        if is_same_unit(operand.unit, unit) or factor_between(operand.unit, unit)
    ]
    for scale in scales if amounts else ():
        for base in operands:
            if base.unit and scale.unit and not is_same_unit(base.unit, scale.unit):
                continue
            for amount in amounts:
                value = amount.value * scale.value / base.value
                if amount is not base and target.matches(value, amount.unit):
                    formula = f"{amount.text} × {scale.text} ÷ {base.text}"
                    return Computation(formula, place=amount.place)
    return None


def explain_by_share(
    target: Target, amounts: Sequence[Operand], totals: Sequence[Operand]
) -> Computation | None:
    """Return the amount and the total of which it is this percentage."""
    for amount in amounts:
        for total in totals:
            is_part = total.value and abs(amount.value) <= abs(total.value)
            if is_part and target.matches(100 * amount.value / total.value, "%"):
                return Computation(f"{amount.text} ÷ {total.text}", place=amount.place)
    return None
