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
        for word in map(normalize, japanese.split()):
            for one in english.split(","):
                to_japanese[stem(one)].append(word)
                to_english[word].append(one)
    longest = max(map(len, to_english), default=0)
    return dict(to_japanese), dict(to_english), longest


def translate(word: str) -> list[str]:
    """Return what a word is called in the other language, and other spellings of it."""
    to_japanese, to_english, _ = _tables()
    if word in to_english:
        english = to_english[word]
        spellings = [other for one in english for other in to_japanese[stem(one)]]
        return [one for one in dict.fromkeys([*english, *spellings]) if one != word][
            :MAX_ALTERNATIVES
        ]
    return list(dict.fromkeys(to_japanese.get(stem(word), ())))[:MAX_ALTERNATIVES]


def split_words(run: str) -> Iterator[tuple[str, bool]]:
    """Split Japanese without spaces by the longest known words; say which ones are known."""
    for script in SCRIPTS.findall(run):
        yield from _longest_matches(script)


def _longest_matches(text: str) -> Iterator[tuple[str, bool]]:
    _, known, longest = _tables()
    at = unknown = 0
    while at < len(text):
        size = next((n for n in range(longest, 1, -1) if text[at : at + n] in known), 0)
        if size:
            if at > unknown:
                yield text[unknown:at], False
            yield text[at : at + size], True
            at = unknown = at + size
        else:
            at += 1
    if at > unknown:
        yield text[unknown:at], False
