"""Minimum certainties of the former scale."""

from importlib import import_module

import pytest

to_probability = import_module("agents.migrations.0025_search_certainty").to_probability


@pytest.mark.parametrize(
    ("former", "probability"),
    [(None, None), (0.0, 0.0), (0.2, 0.04), (0.4, 0.04), (0.7, 0.4), (3.0, 1.0)],
)
def test_a_minimum_means_what_it_meant_before(former, probability):
    assert to_probability(former) == probability
