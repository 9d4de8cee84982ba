"""The figure to explain: which computed values are this figure, and how many may be tried."""

from .cues import hedged_forms
from .index import SCALED, TOLERANCE
from .parsing import Figure
from .units import dimension_of, factor_between

RATIO_UNITS = {"x", "倍", "time", "fold"}
MIN_TRIALS = 8
MAX_TRIALS = 200
NEAR = 2.0  # times another value


class Target:
    """A figure with the ranges of values that it can stand for.

    With many trials nearly every number is some result of two others, so there are as many as
    it takes for one match by chance.
    """

    def __init__(self, figure: Figure, sentence: str, *, is_scaled: bool = False) -> None:
        self.figure = figure
        self.is_share = figure.unit == "%" or figure.unit in RATIO_UNITS
        self._is_scaled = is_scaled  # results have thousands or millions
        self._forms = hedged_forms(figure, sentence)
        self._ranges: dict[str, list[tuple[float, float]]] = {}
        self._limit = MAX_TRIALS
        if self._forms and self._forms[0].margin:
            form = self._forms[0]
            spread = 50 if figure.unit == "%" else form.value / 2
            limit = round(spread / (8 * form.margin))
            self._limit = min(MAX_TRIALS, max(MIN_TRIALS, limit))
        self.remaining = self._limit
        ranges = [*self._ranges_in(""), *self._ranges_in(figure.unit)]
        # Values of its own unit beyond these are far from it; most trials are.
        self.lowest = min((lowest for lowest, _highest in ranges), default=0.0) / NEAR
        self.highest = max((highest for _lowest, highest in ranges), default=0.0) * NEAR

    def renew(self) -> None:
        """Allow as many trials again, with other operands."""
        self.remaining = self._limit

    def matches(self, value: float, unit: str) -> bool:
        """Whether a value is this figure; not if too many values were near it."""
        ranges = self._ranges.get(unit)
        if ranges is None:
            ranges = self._ranges[unit] = self._ranges_in(unit)
        value = abs(value)
        for lowest, highest in ranges:
            if lowest <= NEAR * value and value <= NEAR * highest:
                self.remaining -= 1
                if lowest <= value <= highest:
                    return self.remaining >= 0
        return False

    def _ranges_in(self, other_unit: str) -> list[tuple[float, float]]:
        ranges: list[tuple[float, float]] = []
        for form in self._forms:
            unit = form.unit
            if unit == SCALED and self._is_scaled and not other_unit:
                unit = ""
            if unit.startswith("×") or (unit == "" and self.figure.unit == "%"):
                continue
            factor = 1.0
            if dimension_of(unit) and dimension_of(other_unit):
                unit_factor = factor_between(other_unit, unit)
                if unit_factor is None:
                    return ranges
                factor = unit_factor
            elif other_unit and "%" in {unit, other_unit}:
                return ranges
            margin = form.margin * (1 + TOLERANCE) + TOLERANCE
            ranges.append(((form.value - margin) / factor, (form.value + margin) / factor))
        return ranges
