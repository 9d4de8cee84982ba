import pytest
from django.urls import reverse
from django.utils import translation

from agents.web.presentation.formats.formatting import (
    cost,
    count,
    duration,
    format_json,
    is_scrollable,
)
from agents.web.presentation.formats.icons import cached_url, icon


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (None, "—"),
        (0, "0.00 s"),
        (420, "0.42 s"),
        (9_994, "9.99 s"),
        (12_345, "12.3 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min 00 s"),
        (65_000, "1 min 05 s"),
        (3_599_700, "1 h 00 min"),
        (7_620_000, "2 h 07 min"),
    ],
)
def test_durations_are_written_in_natural_units(milliseconds, written):
    assert duration(milliseconds) == written


def test_a_duration_is_written_in_the_readers_language():
    with translation.override("ja"):
        assert duration(420) == "0.42秒"


@pytest.mark.parametrize(
    ("dollars", "written"),
    [(None, "—"), (0, "$0"), (0.00001, "<$0.0001"), (0.0012, "$0.0012"), (1234.5, "$1,234.50")],
)
def test_an_unknown_cost_is_not_zero(dollars, written):
    assert cost(dollars) == written


def test_large_counts_are_grouped_and_none_is_a_dash():
    assert (count(1234), count(0), count(None)) == ("1,234", "—", "—")


def test_icons_are_hidden_from_screen_readers():
    assert 'aria-hidden="true"' in icon("tool")
    assert "#i-done" in icon("completed")


def test_long_or_multiline_text_is_scrollable():
    assert not is_scrollable("Why?", 120)
    assert is_scrollable("x" * 121, 120)
    assert is_scrollable("\n" * 7, 120)


def test_a_cached_url_has_its_numbers_in_their_places():
    for numbers in ([7, 12], [12, 7]):
        assert cached_url("trace:thread", *numbers) == reverse("trace:thread", args=numbers)


def test_json_takes_as_few_lines_as_fit():
    text = "x" * 66

    assert format_json({"あ": [1, {}], "b": text[:48]}).count("\n") == 0
    assert format_json({"a": {"b": [text]}, "c": [1]}) == (
        f'{{\n  "a": {{\n    "b": [\n      "{text}"\n    ]\n  }},\n  "c": [1]\n}}'
    )
