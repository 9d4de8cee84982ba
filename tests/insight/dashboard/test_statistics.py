"""Intervals, percentiles and histograms."""

from random import Random

import pytest

from agents.engine import intervals
from agents.metering.figures import histograms


def test_wilsons_interval_is_the_known_one_and_stays_between_0_and_1():
    found = intervals.wilson(8, 10)
    assert (found.low, found.high) == pytest.approx((0.490, 0.943), abs=0.001)
    assert intervals.wilson(0, 5).low == 0
    assert intervals.wilson(5, 5).high == pytest.approx(1)
    assert intervals.wilson(0, 0) is None


def test_runs_of_one_chat_make_the_interval_wider():
    alone = intervals.clustered_mean([(1.0, 1), (0.0, 1)] * 20)
    together = intervals.clustered_mean([(5.0, 5), (0.0, 5)] * 4)

    assert alone[0] == together[0] == 0.5
    assert together[1] > 2 * alone[1]


def test_too_few_chats_have_no_interval():
    mean, error = intervals.clustered_mean([(1.0, 1), (0.0, 1)])
    assert intervals.around(mean, error) is None


def test_percentiles_are_within_five_percent():
    random = Random(3)
    values = [random.lognormvariate(8, 1.5) for _ in range(2_000)]
    found = histograms.of(values)
    for share in (0.5, 0.95):
        exact = sorted(values)[int(len(values) * share) - 1]
        assert histograms.percentile(found, share) == pytest.approx(exact, rel=0.05)


def test_histograms_are_stored_and_added_up():
    first, second = histograms.of([5, 5, 900]), histograms.of([5, 70_000])
    text = histograms.encode(first)
    histograms.add_encoded(second, text)
    assert histograms.decode(histograms.encode(second)) == first + histograms.of([5, 70_000])
    assert histograms.percentile({}, 0.5) is None
