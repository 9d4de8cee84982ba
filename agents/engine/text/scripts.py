"""Characters of Chinese, Japanese and Korean, for classes in regular expressions.

Documents are indexed with them: after a change, every index has to be built again.
"""

import re
from itertools import pairwise

HIRAGANA = "ぁ-ゟ"
KATAKANA = "゠-ヿㇰ-ㇿ"
KANJI = "々〆㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
HANGUL = "가-힣"
JAPANESE = f"{HIRAGANA}{KATAKANA}{KANJI}"
CJK = f"{JAPANESE}{HANGUL}"
# Letters, punctuation and full-width forms that are written without spaces between them.
UNSPACED = f"\u3000-\u303f{JAPANESE}\uff00-\uffef"

_JAPANESE_CHARACTER = re.compile(f"[{JAPANESE}]")


def is_japanese(text: str) -> bool:
    """Whether the text has Japanese letters."""
    return _JAPANESE_CHARACTER.search(text) is not None


def bigrams(text: str) -> list[str]:
    """Return overlapping pairs of characters, in place of words without visible ends."""
    return [first + second for first, second in pairwise(text)]
