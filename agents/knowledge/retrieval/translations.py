"""Words that have the same meaning in English and Japanese, to search across languages.

`translations.tsv` has an English word and its Japanese ones per line: mostly loan words in
katakana, and common words of computing and business.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agents.engine.text import KATAKANA, stem

from .tokenizer import normalize

TABLE = Path(__file__).with_name("translations.tsv")
SCRIPTS = re.compile(f"[{KATAKANA}]+|[^{KATAKANA}]+")
MAX_ALTERNATIVES = 6


@cache
def _tables() -> tuple[dict[str, list[str]], dict[str, list[str]], int]:
    """Return English stems to Japanese, Japanese to English, and the longest word's length."""
    to_japanese: dict[str, list[str]] = defaultdict(list)
    to_english: dict[str, list[str]] = defaultdict(list)
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        english, _, japanese = line.partition("\t")
        for japanese_word in map(normalize, japanese.split()):
            for english_word in english.split(","):
                to_japanese[stem(english_word)].append(japanese_word)
                to_english[japanese_word].append(english_word)
    longest = max(map(len, to_english), default=0)
    return dict(to_japanese), dict(to_english), longest


def translate(term: str) -> list[str]:
    """Return what a word is called in the other language, and other spellings of it."""
    to_japanese, to_english, _ = _tables()
    if term not in to_english:
        return list(dict.fromkeys(to_japanese.get(stem(term), ())))[:MAX_ALTERNATIVES]
    english = to_english[term]
    spellings = [spelling for name in english for spelling in to_japanese[stem(name)]]
    alternatives = dict.fromkeys([*english, *spellings])
    alternatives.pop(term, None)
    return list(alternatives)[:MAX_ALTERNATIVES]


def split_words(run: str) -> Iterator[tuple[str, bool]]:
    """Split Japanese without spaces by the longest known words; say which ones are known."""
    _, to_english, longest = _tables()
    for text in SCRIPTS.findall(run):
        start = unknown_start = 0
        while start < len(text):
            for end in range(start + longest, start + 1, -1):
                if text[start:end] in to_english:
                    if start > unknown_start:
                        yield text[unknown_start:start], False
                    yield text[start:end], True
                    start = unknown_start = end
                    break
            else:
                start += 1
        if start > unknown_start:
            yield text[unknown_start:start], False
