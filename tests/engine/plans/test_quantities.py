"""Numbers in text answers: read only where they are unambiguous."""

import pytest

from agents.engine.plans.merging.quantities import format_quantity, read_quantity

CLEAR = {
    "It is 42.": "42",
    "The total is $1,234.50.": "$1,234.50",
    "-$5": "-$5",
    "About 1.2 million people": "1,200,000 people",
    "12 percent": "12%",
    "12パーセントです": "12%",
    "売上は１億2,300万円です。": "¥123,000,000",
    "3万5千円": "¥35,000",
    "合計は 12 個": "12 個",
    "−42": "-42",
    "60 km/h": "60 km/h",
    "£20 per month": "£20/month",
    "Q3 total: 42 [1]": "42",
    "COVID-19 had 42 cases, the 2nd wave": "42",
    "In 2025 we sold **1,300** of 2,000.": "1,300",
    "The result is **42** (`6 * 7`).": "42",
    "5 USD": "$5",
    "42. That is all of them.": "42",
}
UNCLEAR = (
    *("no number", "1,23", "1.234,5", "40-45", "40〜45人", "at least 40", "40以上", "40+"),
    *("In 2025 it was 42", "2025-11-17", "2025年11月17日", "1/2", "3分の1", "12:30", "5k"),
    *("10^6", "3 × 4", "▲42", "**40** or **45**", "1" * 40, "x" * 30_000),
)


@pytest.mark.parametrize(("text", "shown"), CLEAR.items())
def test_a_clear_number_is_read_with_its_unit(text, shown):
    found = read_quantity(text)

    assert found is not None
    assert format_quantity(found.value, found.unit) == shown


@pytest.mark.parametrize("text", UNCLEAR)
def test_an_unclear_number_is_none(text):
    assert read_quantity(text) is None
