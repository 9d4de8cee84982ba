"""The figure to explain: which results of an operation are this figure."""

from collections.abc import Iterable, Iterator

from .index import TOLERANCE
from .operands import Trial
from .parsing import Figure
from .units import dimension_of, factor_between
from .wording import hedged_forms

RATIO_UNITS = {"x", "倍", "time", "fold"}


class Target:
    """A figure with the ranges of values that it can stand for.

    Thousands of trials are compared with them, so they are computed once for each unit.
    """

    def __init__(self, figure: Figure, sentence: str) -> None:
        self.figure = figure
        self.is_share = figure.unit == "%" or figure.unit in RATIO_UNITS
        self._forms = hedged_forms(figure, sentence)
        self._ranges: dict[str, list[tuple[float, float]]] = {}

    def first_match(self, trials: Iterable[Trial]) -> Trial | None:
        """Return the first trial that is this figure."""
        ranges_by_unit = self._ranges
        for trial in trials:
            unit = trial.unit
            if unit not in ranges_by_unit:
                ranges_by_unit[unit] = list(self._ranges_in(unit))
            value = abs(trial.value)
            for lowest, highest in ranges_by_unit[unit]:
                if lowest <= value <= highest:
                    return trial
        return None

    def _ranges_in(self, trial_unit: str) -> Iterator[tuple[float, float]]:
        for form in self._forms:
            unit = form.unit
            if unit.startswith("×") or (unit == "" and self.figure.unit == "%"):
                continue
            factor = 1.0
            if dimension_of(unit) and dimension_of(trial_unit):
                unit_factor = factor_between(trial_unit, unit)
                if unit_factor is None:
                    return
                factor = unit_factor
            elif trial_unit and "%" in {unit, trial_unit}:
                return
            margin = form.margin * (1 + TOLERANCE) + TOLERANCE
            yield (form.value - margin) / factor, (form.value + margin) / factor
