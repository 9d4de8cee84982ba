"""Ratings and corrections as figures of runs."""

from collections.abc import Iterator, Sequence

from agents.metering.figures.catch_up import mark_stale

from ..models import Rating, Review


def count_feedback(runs: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield a run and the measure of each of its ratings and corrections."""
    ratings = Rating.objects.filter(run__in=runs)
    for run, is_good in ratings.values_list("run_id", "is_good"):
        yield run, "ratings_up" if is_good else "ratings_down"
    corrected = Review.objects.filter(run__in=runs).exclude(correction="")
    for run in corrected.values_list("run_id", flat=True):
        yield run, "corrected"


def on_feedback(instance: Rating | Review, **_signal: object) -> None:
    """Have the figures of the run counted again."""
    mark_stale([instance.run_id])
