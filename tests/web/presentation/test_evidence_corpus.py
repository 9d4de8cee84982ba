"""The evidence of 300 answers stays as good as it was measured (docs/quality.md)."""

from collections import Counter

from tests.quality.evidence import answers, count


def test_inventions_are_marked_and_right_figures_are_not():
    counts = sum((count(entry) for entry in answers()), Counter())
    invented = counts[True, True] / (counts[True, True] + counts[True, False])
    right = counts[False, True] / (counts[False, True] + counts[False, False])

    assert invented >= 0.96
    assert right <= 0.055
