"""Words and phrases of a rule, one per line.

Case and width don't matter. A word of an alphabetic script is only found as a whole word; one
of a script without spaces between words, such as Japanese, is found anywhere.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import re2

from agents.engine.errors import BadPattern

from ..sentences import Sentence as _
from .compilation import compile_re2
from .match_length import WORD_GAP, MatchBound, match_bound
from .normalization import normalize

MAX_WORDS_CHARS = 8_000
MAX_PHRASE_CHARS = 200  # an answer that streams is delayed by the longest
# Scripts that write words without spaces, or add endings to them.
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\x{30FC}"
)
# What can stand beside a whole word. RE2's own \b only knows ASCII.
_BOUNDARY = rf"(?:[{_UNSPACED}]|[^\pL\pM\pN_])"


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A match with the methods of RE2's."""

    first: int
    last: int

    def start(self) -> int:
        return self.first

    def end(self) -> int:
        return self.last


class WordList:
    """Finds the words in normalized text, as a compiled expression does.

    RE2 finds where words may be, in linear time; only there, each position is checked.
    """

    def __init__(self, words: Iterable[str]) -> None:
        # Of two words at one position, the longer one is found.
        self._words = sorted(words, key=len, reverse=True)
        self.pattern = f"(?i:{_any_of(self._words)})"
        self._candidates = compile_re2(self.pattern)

    @cached_property
    def reach(self) -> MatchBound:
        return match_bound(self.pattern)

    def finditer(self, text: str, position: int = 0) -> Iterator[WordMatch]:
        """Yield matches that don't overlap, from this position."""
        for candidate in self._candidates.finditer(text, position):
            # A word that isn't whole can hide another one that begins inside of it.
            for start in range(candidate.start(), candidate.end()):
                end = self._end_at(text, start) if start >= position else None
                if end is not None:
                    yield WordMatch(start, end)
                    position = end

    def _end_at(self, text: str, start: int) -> int | None:
        """Return where the word that begins here ends; None if none does."""
        is_free = start == 0 or _is_boundary(text[start - 1])
        regex = self._at_boundary if is_free else self._anywhere
        if regex is None:
            return None
        # One more character, to see that the word ends.
        found = regex.match(text[start : start + int(self.reach.max_length) + 1])
        if found is None:
            return None
        ends: list[int] = [found.end(group) for group in range(1, regex.groups + 1)]
        return start + max(ends)

    @cached_property
    def _at_boundary(self) -> Any:
        return _ending(self._words)

    @cached_property
    def _anywhere(self) -> Any:
        words = [word for word in self._words if _is_boundary(word[0])]
        return _ending(words) if words else None


def _ending(words: Iterable[str]) -> Any:
    """Compile an expression in which words that need it end at a boundary; it has no others."""
    whole: list[str] = []
    free: list[str] = []
    for word in words:
        (free if _is_boundary(word[-1]) else whole).append(word)
    parts = [f"({_any_of(whole)})(?:{_BOUNDARY}|\\z)"] if whole else []
    parts += [f"({_any_of(free)})"] if free else []
    return compile_re2(f"(?i:{'|'.join(parts)})")


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(_word_pattern, words))


def _word_pattern(word: str) -> str:
    """Return an expression for a word; with (?i) it matches what has the same case folding."""
    folded = WORD_GAP.join(_escape(piece) for piece in word.casefold().split(" "))
    folded = folded.replace("ss", "(?:ss|ß)")
    # Some letters fold to several, which RE2 doesn't do.
    is_longer = any(len(letter.casefold()) > 1 for letter in word)
    return f"(?:{folded}|{_escape(word)})" if is_longer else folded


def _escape(text: str) -> str:
    escaped = re2.escape(text)
    return escaped if isinstance(escaped, str) else escaped.decode()


@lru_cache(maxsize=4096)
def _is_boundary(character: str) -> bool:
    """Whether a word can begin or end beside this character."""
    return compile_re2(_BOUNDARY).fullmatch(character) is not None


@lru_cache(maxsize=256)
def compile_words(text: str) -> WordList:
    """Return the words of a text, one per line; raise BadPattern with the reason."""
    if len(text) > MAX_WORDS_CHARS:
        raise BadPattern(
            _("Word lists can be up to %(limit)s characters long.", limit=MAX_WORDS_CHARS)
        )
    lines = [" ".join(normalize(line).text.split()) for line in text.splitlines()]
    words = list(dict.fromkeys(filter(None, lines)))
    if not words:
        raise BadPattern(_("Enter at least one word."))
    longest = max(words, key=len)
    if len(longest) > MAX_PHRASE_CHARS:
        raise BadPattern(
            _(
                "“%(phrase)s…” is too long. Phrases can have up to %(limit)s characters.",
                phrase=longest[:40],
                limit=MAX_PHRASE_CHARS,
            )
        )
    return WordList(words)
