"""Text that is compared and shortened."""

import pytest

from agents.engine.text import fold, shorten, shorten_line, shorten_middle, stem, truncate


def test_width_case_and_spaces_make_no_difference():
    assert fold("  Ｓtraße\u3000ﾃｽﾄ\n") == fold("STRASSE テスト") == "strasse テスト"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("one two", "one two"),
        ("one two three four", "one two…"),
        ("onetwothreefour", "onetwothree…"),
        ("税込みの売上は前年の二倍になりました", "税込みの売上は前年の二…"),
    ],
)
def test_a_long_text_ends_at_a_whole_word_if_it_has_any(text, short):
    assert shorten(text, 12) == short


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 40])
@pytest.mark.parametrize("text", ["a b\n\nc d " * 9, "あ" * 60, " " * 60])
def test_a_shortened_text_is_never_longer_than_its_limit(text, limit):
    assert len(shorten(text, limit)) <= limit
    assert len(shorten_line(text, limit)) <= limit


def test_the_beginning_of_a_text_ends_with_a_paragraph_if_one_ends_there():
    assert truncate(f"{'x' * 95}\n\nsecond paragraph", 100) == "x" * 95


def test_the_end_of_a_text_stays_if_its_middle_is_cut():
    assert shorten_middle("0123456789", 4) == "01…89"
    assert shorten_middle("0123", 4) == "0123"


def test_forms_of_a_word_have_one_stem():
    assert {stem(word) for word in ("setting", "settings", "set")} == {"set"}
