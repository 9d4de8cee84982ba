"""Tokenizes text for search: Latin words as they are, Japanese as character pairs.

Japanese has no visible word boundaries, so overlapping pairs are used.
"""

import re
import unicodedata

from agents.engine.text import CJK, HANGUL, HIRAGANA, KANJI, KATAKANA, STOP_WORDS, bigrams
from agents.models import Document

MAX_TERMS = 64

KANA = re.compile(f"[{HIRAGANA}ァ-ヺー]")
HIRAGANA_RUN = re.compile(f"[{HIRAGANA}]+")
CJK_RUN = re.compile(f"[{CJK}]+")
WORD = re.compile(
    rf"[{HIRAGANA}]+|[{KATAKANA}{KANJI}{HANGUL}]+|[^\W_{CJK}](?:[^\W{CJK}]*[^\W_{CJK}])?"
)
ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")


def index_terms(text: str) -> str:
    """Return the text as index terms."""
    return CJK_RUN.sub(
        lambda run: f" {' '.join(bigrams(run[0]))} {run[0][-1]} ", normalize(text)
    )


def to_phrase(term: str) -> str:
    """Return a search term as a phrase of index terms."""
    return " ".join(bigrams(term)) if CJK_RUN.match(term) and len(term) > 1 else term


def is_single_cjk(term: str) -> bool:
    """Whether it is a single Japanese character, which can only be the start of a pair."""
    return len(term) == 1 and is_japanese(term)


def is_japanese(text: str) -> bool:
    return CJK_RUN.search(normalize(text)) is not None


def detect_language(text: str) -> str:
    latin_words = re.findall(r"[a-z]+", text.lower())
    if len(KANA.findall(text)) * 5 > len(text) - sum(map(len, latin_words)):
        return Document.Language.JAPANESE
    if sum(latin_word in STOP_WORDS for latin_word in latin_words) * 6 > len(latin_words):
        return Document.Language.ENGLISH
    return ""


def normalize(text: str) -> str:
    """Normalize width, case and accents of Latin letters."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", ACCENTS.sub("", decomposed))
