"""The figure to explain: which results of an operation are this figure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from .index import TOLERANCE
from .operands import Trial
from .parsing import Figure
from .units import dimension_of, factor_between
from .wording import hedged_forms

RATIO_UNITS = {"x", "倍", "time", "fold"}


class Kind(NamedTuple):
    """What decides which operations are plausible for a figure."""

    unit: str
    digits: int  # 4 for more
    is_large: bool


class TrialIndex:
    """Trials by value, for figures that are compared with all of them."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self.by_unit: dict[str, list[tuple[float, int, Trial]]] = {}
        for rank, trial in enumerate(trials):
            self.by_unit.setdefault(trial.unit, []).append((abs(trial.value), rank, trial))
        for entries in self.by_unit.values():
            entries.sort(key=itemgetter(0, 1))


class Target:
    """A figure with the ranges of values that it can stand for.

    Thousands of trials are compared with them, so they are computed once for each unit.
    """

    def __init__(self, figure: Figure, sentence: str) -> None:
        self.figure = figure
        self.is_share = figure.unit == "%" or figure.unit in RATIO_UNITS
        self.kind = Kind(figure.unit, min(4, figure.digits), figure.step >= 1_000)
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

    def first_indexed(self, index: TrialIndex, limit: int) -> Trial | None:
        """Return the first of so many trials that is this figure."""
        first_rank = limit
        first_trial: Trial | None = None
        for unit, entries in index.by_unit.items():
            for lowest, highest in self._ranges_in(unit):
                start = bisect_left(entries, lowest, key=itemgetter(0))
                end = bisect_right(entries, highest, key=itemgetter(0))
                for _value, rank, trial in entries[start:end]:
                    if rank < first_rank:
                        first_rank = rank
                        first_trial = trial
        return first_trial

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
