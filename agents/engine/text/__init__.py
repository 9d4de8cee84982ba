"""Text in English and Japanese: compared, split into words and shortened."""

from .folding import fold
from .formulas import FORMULA
from .scripts import (
    CJK,
    HANGUL,
    HIRAGANA,
    JAPANESE,
    KANJI,
    KATAKANA,
    UNSPACED,
    bigrams,
    is_japanese,
)
from .shortening import CUT_NOTE, cut_text, shorten, shorten_line, shorten_middle, truncate
from .stemming import STOP_WORDS, loose_terms, stem

__all__ = [
    "CJK",
    "CUT_NOTE",
    "FORMULA",
    "HANGUL",
    "HIRAGANA",
    "JAPANESE",
    "KANJI",
    "KATAKANA",
    "STOP_WORDS",
    "UNSPACED",
    "bigrams",
    "cut_text",
    "fold",
    "is_japanese",
    "loose_terms",
    "shorten",
    "shorten_line",
    "shorten_middle",
    "stem",
    "truncate",
]
