"""Words and phrases in rules: what is a match, and that they are as safe as expressions."""

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine import BadPattern, GuardrailAction, Guardrails
from agents.engine.guardrails.checks import Pattern
from agents.engine.guardrails.words import MAX_PHRASE_CHARS, MAX_WORDS_CHARS, compile_words
from tests.engine.guardrails.test_guardrails import CUTS, TEXTS, stream_text
from tests.examples import many


def masked(words, text):
    rule = Pattern(pattern=words, is_words=True, name="x", action=GuardrailAction.MASK)
    return Guardrails(blocked_patterns=[rule]).inspect(text, "output").text


@pytest.mark.parametrize(
    ("words", "text", "result"),
    [
        ("cat", "cat concat cats Cat. CAT's", "‹x› concat cats ‹x›. ‹x›'s"),
        ("café", "un CAFÉ, cafés", "un ‹x›, cafés"),
        ("cat", "catá ácat cat2 cat_a", "catá ácat cat2 cat_a"),
        ("straße", "STRASSE, strasse, Straße", "‹x›, ‹x›, ‹x›"),
        ("strasse", "Straße", "‹x›"),
        ("İzmir", "İzmir", "‹x›"),
        ("Ωmega", "ωMEGA", "‹x›"),
        ("ﬁsh", "FISH ｆｉｓｈ", "‹x› ‹x›"),
        ("ｱｲｳ", "アイウエオ", "‹x›エオ"),
        ("東京", "東京都と東京", "‹x›都と‹x›"),
        ("한국", "한국은", "‹x›은"),
        ("AI", "最新AI技術 MAIN", "最新‹x›技術 MAIN"),
        ("new york", "New  York, new\nyork, newyork", "‹x›, ‹x›, newyork"),
        ("c++\n$1", "C++11 costs $1.", "‹x›11 costs ‹x›."),
        ("new york\nnew", "a new yorker", "a ‹x› yorker"),
        ("new york\nyork", "xnew york", "xnew ‹x›"),
        ("new york\nnew", "in new york", "in ‹x›"),
        ("foo", "foo foo,foo", "‹x› ‹x›,‹x›"),
        ("a.c\n(x", "abc a.c (x", "abc ‹x› ‹x›"),
        ("secret", "s\u200becret s\u0435cret **sec**ret", "‹x› ‹x› **‹x›"),
        ("\n  falcon \n\n", "falcon", "‹x›"),
    ],
)
def test_words_are_found_regardless_of_case_and_width(words, text, result):
    assert masked(words, text) == result


WORDS = ["abc", "cab", "a b", "bc", "ca", "x", "株式", "é", "ab", "fi", "㍿", "b a b", "+"]
MORE_TEXTS = st.lists(
    st.sampled_from([*WORDS, "AB", "É", " ", ".", "\n", "a", "b", "c", "の", "  "]), max_size=25
).map("".join)


@pytest.mark.slow
@many(400)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), TEXTS | MORE_TEXTS, CUTS)
def test_streamed_words_are_masked_as_in_the_whole_text(words, text, cuts):
    rule = Pattern(
        pattern="\n".join(words), is_words=True, name="x", action=GuardrailAction.MASK
    )
    guardrails = Guardrails(blocked_patterns=[rule])

    shown = stream_text(guardrails.screen_output(), text, cuts)

    assert shown == guardrails.inspect(text, "output").text


ALPHABET = "ab 株é."


@many(300)
@given(
    st.lists(st.text(ALPHABET, min_size=1, max_size=4), min_size=1, max_size=4),
    st.text(ALPHABET, max_size=20),
)
def test_the_matches_are_those_of_a_slow_and_plain_search(words, text):
    words = [" ".join(word.split()) for word in words if word.strip()]
    if not words:
        return
    longest_first = sorted(dict.fromkeys(words), key=len, reverse=True)
    expected = []
    position = 0
    while position < len(text):
        ends = (_end_of(word, text, position) for word in longest_first)
        end = next((end for end in ends if end is not None), None)
        if end is not None:
            expected.append(text[position:end])
        position = end or position + 1

    found = [text[m.start() : m.end()] for m in compile_words("\n".join(words)).finditer(text)]

    assert found == expected


def _end_of(word, text, position):
    pattern = re.escape(word).replace(r"\ ", r"\s{1,2}")
    match = re.compile(pattern).match(text, position)
    if match is None:
        return None
    is_cut_off = position > 0 and _is_letter(word[0]) and _is_letter(text[position - 1])
    after = text[match.end() : match.end() + 1]
    continues = bool(after) and _is_letter(word[-1]) and _is_letter(after)
    return None if is_cut_off or continues else match.end()


def _is_letter(character):
    return character != "株" and unicodedata.category(character)[0] in "LMN"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "Enter at least one word"),
        (" \n\u200b\n", "Enter at least one word"),
        ("a" * (MAX_PHRASE_CHARS + 1), "is too long"),
        ("word\n" * MAX_WORDS_CHARS, "Word lists can be up to 8000"),
    ],
)
def test_an_unusable_list_is_rejected_with_the_reason(words, reason):
    with pytest.raises(BadPattern, match=reason):
        Pattern(pattern=words, is_words=True).try_out()


def test_a_full_list_is_accepted_and_fast_on_long_hostile_text():
    words = "\n".join(f"{chr(0x4E00 + n % 500)}word{n}" for n in range(700))
    Pattern(pattern=words, is_words=True).try_out()
    guardrails = Guardrails(None, None, [Pattern(pattern=f"{words}\na a a", is_words=True)])

    began = time.thread_time()
    for text in ("xa a a" * 10_000, "一word" * 10_000, "a" * 60_000):
        guardrails.inspect(text, "output")

    assert time.thread_time() - began < 5
