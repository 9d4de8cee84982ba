"""One concept has one word: no text of the product uses one that docs/vocabulary.md retires."""

import re
from pathlib import Path

import pytest
from django.utils.translation.trans_real import gettext_module

CATALOGUE = Path("locale/ja/LC_MESSAGES/django.mo")
ROW = re.compile(r"^\| .* \| (?P<retired>[^|]*) \|$", re.MULTILINE)
NOT_OURS = ("LiteLLM", "Final Answer")  # others call it so
JA = "[ぁ-んァ-ヶー一-龠々]"
TYPOGRAPHY = {
    "a half-width question mark": rf"{JA}\?",
    "a space beside Latin letters": rf"{JA} [A-Za-z0-9]|[A-Za-z0-9] {JA}",
    "another range mark": "〜",
    "ほかの, すべて, ください": r"(?<!その)他の|全て|下さい",
}


def words_to_retire() -> list[str]:
    text = Path("docs/vocabulary.md").read_text()
    return [
        word for row in ROW.finditer(text) for word in re.findall("`([^`]+)`", row["retired"])
    ]


def catalogue() -> dict[str, str]:
    """Return the texts in English with their Japanese, without Django's own."""
    with CATALOGUE.open("rb") as file:
        entries = gettext_module.GNUTranslations(file)._catalog
    texts = {}
    for key, japanese in entries.items():
        english = key[0] if isinstance(key, tuple) else key
        texts[english.rpartition("\x04")[2]] = japanese
    texts.pop("", None)
    return texts


def test_the_page_retires_words():
    assert len(words_to_retire()) > 30


@pytest.mark.parametrize("word", words_to_retire())
def test_a_retired_word_is_in_no_text(word):
    is_english = word.isascii()
    pattern = rf"\b{re.escape(word)}\b" if is_english else re.escape(word)
    found = [
        text
        for english, japanese in catalogue().items()
        if re.search(pattern, text := english if is_english else japanese, re.IGNORECASE)
        and not any(name in english for name in NOT_OURS)
    ]

    assert found == []


@pytest.mark.parametrize("rule", TYPOGRAPHY)
def test_japanese_follows_the_typography(rule):
    found = [text for text in catalogue().values() if re.search(TYPOGRAPHY[rule], text)]

    assert found == []
