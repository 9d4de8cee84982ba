"""A passage is marked in the rendered text, whatever Markdown is around it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.web.library.highlight import keep_short_cells, render_marked

TABLE = "| City | Limit |\n|---|---|\n| Kyoto | 18 |\n| Paris | 20 |\n"


def marked(text: str, passage: str) -> str:
    start = text.index(passage)
    html = render_marked(text, start, start + len(passage))
    return " ".join("".join(re.findall(r"<mark[^>]*>(.*?)</mark>", html, re.DOTALL)).split())


def test_a_sentence_is_marked():
    assert marked("Cold. Green tea is *hot*.", "Green tea is") == "Green tea is"


def test_a_passage_over_several_blocks_has_marks_in_each():
    text = "# Tea\n\nGreen tea.\n\n- hot\n- cold\n\nEnd."
    html = render_marked(text, 0, text.index("End"))

    assert html.count("<mark") == 4
    assert html.count('id="place"') == 1
    assert "<h2><mark" in html


def test_a_table_row_is_marked():
    assert marked(TABLE, "| Kyoto | 18 |") == "Kyoto18"
    assert marked(TABLE, TABLE) == "CityLimitKyoto18Paris20"


def test_the_row_that_a_table_is_cited_for_is_the_place():
    html = render_marked(TABLE, 0, len(TABLE), [TABLE.index("| Paris")])

    assert '<td><mark class="cited-row" id="place" tabindex="-1">Paris</mark></td>' in html
    assert html.count("<mark") == 6  # the other rows are marked, too
    assert html.count("id=") == 1


def test_dates_and_short_words_in_tables_stay_on_one_line():
    text = "| a | b | c |\n|---|---|---|\n| 17 Nov 2026 | Kyoto | a longer sentence |"
    html = keep_short_cells(render_marked(text, 0, len(text)))

    assert html.count('<td class="short">') == 2
    assert "<td><mark>a longer" in html


def test_code_is_marked():
    assert marked("```\nmake tea\n```\n", "```\nmake tea\n```") == "make tea"


def test_a_passage_that_ends_inside_a_link_is_marked_by_lines():
    text = "Look at [the tea](https://tea.example/green) soon."
    html = render_marked(text, 3, text.index("green"))

    assert '<a href="https://tea.example/green"' in html
    assert "<mark" in html


def test_nothing_is_marked_without_a_passage():
    for start, end in [(None, None), (0, 0), (5, 2), (0, 99)]:
        assert "<mark" not in render_marked("Tea.", start, end)


def test_signs_in_the_text_do_not_confuse_it():
    assert marked("\ue0f0 a \ue0f1 \ue0f2 tea", "tea") == "tea"


@given(st.text('ab# |-`[]()*\n>1.<&"日本', max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_marks_only_add_elements(text, start, end):
    html = render_marked(text, start, end)

    assert html.count("<mark") == html.count("</mark>")
    assert "\ue0f0" not in html
    assert "\ue0f1" not in html
    assert "<script" not in html


@pytest.mark.parametrize("attack", ["<img src=x onerror=alert(1)>", "[x](javascript:alert(1))"])
def test_text_of_a_document_is_never_html(attack):
    html = render_marked(f"Tea {attack} tea", 0, 5)

    assert "<img" not in html
    assert 'href="javascript' not in html
