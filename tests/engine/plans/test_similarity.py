"""Answers that are equal except for how they are written."""

import pytest

from agents.engine.plans.merging.similarity import group_equal, normal_form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Yes.", "yes"),
        ("**42**", "42.00"),
        ("1,234.50 dollars", "1234.5 dollars"),
        ("Ｔｏｋｙｏ", "tokyo!"),
        ("売上は、１，０００円です。", "売上は1000円です"),
        ("- It is −5 °C", "it is -5 °C"),
        ({"total": 3.0, "of": "A"}, {"of": "a", "total": 3}),
        ("| a | b |", "a b"),
    ],
)
def test_wording_differences_are_normalized(one, other):
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "-5"),
        ("5", "5%"),
        ("5 $", "5 €"),
        ("1.5", "15"),
        ("10.10.0.1", "10.1.0.1"),
        ("1 2", "12"),
        ("now here", "nowhere"),
        ({"a": 1}, {"a": "1"}),
        ("が", "か"),
    ],
)
def test_different_content_stays_different(one, other):
    assert normal_form(one) != normal_form(other)


def test_equal_answers_are_grouped_largest_group_first():
    found = group_equal({"a": "No.", "b": "Yes", "c": "yes!"})

    assert found == [["b", "c"], ["a"]]
