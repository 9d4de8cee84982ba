"""Citations of an answer: unknown numbers are removed, and nothing else is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.material.citations import (
    CITATION,
    check_citations,
    cited_numbers,
    listed_numbers,
)

KNOWN = {1, 2, 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Press Stop [7].", "Press Stop."),
        ("Both [1, 9] hold.", "Both [1] hold."),
        ("One [1], [9].", "One [1]."),
        ("None [9], [7] of them.", "None of them."),
        ("A range [2-5].", "A range [2, 3]."),
        ("A good range [1–3].", "A good range [1–3]."),
        ("止めます【9】。", "止めます。"),
        ("止めます[９]。", "止めます。"),
        ("止めます［1、9］。", "止めます［1］。"),
        ("See 【1†source】【9†source】.", "See 【1†source】."),
        ("- [9] A title\n- [1] Another", "- A title\n- [1] Another"),
    ],
)
def test_only_citations_without_a_source_are_removed(text, expected):
    checked = check_citations(text, KNOWN)

    assert checked.text == expected
    assert set(checked.removed).isdisjoint(KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "Call `rows[9]` twice.",
        "```python\nrows[9] = [7, 8]\n```",
        "~~~\n[9]\n~~~",
        "1. Step:\n   ```\n   x[9]\n   ```",
        "    rows[9]",
        "The vector $[7, 9]$ and $$[9]$$.",
        "[9](https://example.org)\n\n[9]: https://example.org",
        "https://example.org/a[9]",
        r"\[9\]",
        "In [2020-2024] and [1000].",
        "A footnote[^9] and a [word].",
        "A backwards range [9-7].",
        "",
    ],
)
def test_code_links_and_formulas_stay_as_they_are(text):
    assert check_citations(text, KNOWN).text == text


def test_a_quoted_list_is_no_citation():
    checked = check_citations("The ports are [7, 9] [8].", KNOWN, lambda text: text == "[7, 9]")

    assert checked.text == "The ports are [7, 9]."


def test_the_removed_numbers_are_listed_once_and_in_order():
    assert check_citations("a [9] b [7, 9] c [1]", KNOWN).removed == (9, 7)


WORDS = st.sampled_from(
    [
        "word",
        "です。",
        " ",
        "\n",
        "`a[9]`",
        "[9]",
        "[1]",
        "[1, 9]",
        "【7】",
        "[8-9]",
        ", ",
        "x[9]",
    ]
)


@given(st.lists(WORDS, max_size=30).map("".join), st.sets(st.integers(1, 9)))
def test_removing_citations_never_removes_text(text, citable):
    def without_citations(text):
        return re.sub(r"[\s,、;]", "", CITATION.sub("", text))

    checked = check_citations(text, citable)

    assert without_citations(checked.text) == without_citations(text)
    assert check_citations(checked.text, citable).text == checked.text


@given(st.text(alphabet="ab1279[]【】,-` \n$(:", max_size=60), st.sets(st.integers(1, 9)))
def test_any_text_keeps_its_letters(text, citable):
    checked = check_citations(text, citable)

    assert re.sub("[^ab$`(]", "", checked.text) == re.sub("[^ab$`(]", "", text)


def test_a_citation_has_the_numbers_of_its_ranges():
    assert cited_numbers(CITATION.search("[1, 3-5]")) == [1, 3, 4, 5]


def test_other_tools_list_results_by_number_or_position():
    heads = "[4] A page\ntext\n\n[5] Another\ntext"
    rows = '{"results": [{"title": "a"}, {"title": "b"}]}'

    assert listed_numbers([heads, rows, "plain [9]", "{broken"]) == {1, 2, 4, 5}
