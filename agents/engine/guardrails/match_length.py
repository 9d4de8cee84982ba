"""Computes how long a pattern's matches can be, so that streamed text can be released.

RE2 can't say whether the end of a text may start a match, so the maximum match length is
computed from the pattern. In doubt, a match counts as longer.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import re2

MatchExtent = Literal["characters", "word", "line", "text"]
# Separators. A separator that a pattern can't match also ends each of its matches.
BREAK_CHARS = frozenset(" \n。、")
QUANTIFIER = re.compile(r"[*+?]|\{(\d+)(,?)(\d*)\}")
FLAGS = re.compile(r"\(\?([imsU]*)(?:-[imsU]*)?([:)])")
GROUP_OPEN = re.compile(r"\(\?P?<\w+>|\(\?:|\(")
ESCAPE = re.compile(r"\\(?:[pPx]\{[^}]*\}|[pP].|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)", re.DOTALL)
CHARACTER_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
ATOM = re.compile(f"{QUOTED.pattern}|{CHARACTER_CLASS.pattern}|{ESCAPE.pattern}|.", re.DOTALL)
WORD_GAP = r"\s{1,2}"
SHORT_MATCH_CHARS = 40
ZERO_WIDTH = {"^", "$", r"\b", r"\B", r"\A", r"\z"}


MAX_BREAKS = 12


@dataclass(frozen=True, slots=True)
class MatchBound:
    """The maximum length of a match and how many of each separator it can contain."""

    max_length: float
    takes: Mapping[str, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.max_length, *sorted(self.takes.items())))

    @property
    def ending_breaks(self) -> frozenset[str]:
        """Separators that end every match."""
        return BREAK_CHARS - self.takes.keys()

    @property
    def ends(self) -> dict[str, int]:
        """Per separator, the number a match can contain; one more ends every match."""
        counts = {character: self.takes.get(character, 0) for character in BREAK_CHARS}
        return {character: int(n) for character, n in counts.items() if n <= MAX_BREAKS}

    @property
    def extent(self) -> MatchExtent:
        if math.isfinite(self.max_length) and self.max_length <= SHORT_MATCH_CHARS:
            return "characters"
        if " " not in self.takes:
            return "word"
        if math.isfinite(self.max_length):
            return "characters"
        return "line" if "\n" in self.ends else "text"

    def times(self, max_repeats: float) -> "MatchBound":
        if not max_repeats:
            return EMPTY_BOUND
        takes = {character: n * max_repeats for character, n in self.takes.items()}
        # Zero times endless is zero here.
        return MatchBound(self.max_length * max_repeats if self.max_length else 0, takes)

    def __add__(self, other: "MatchBound") -> "MatchBound":
        marks = self.takes.keys() | other.takes.keys()
        takes = {m: self.takes.get(m, 0) + other.takes.get(m, 0) for m in marks}
        return MatchBound(self.max_length + other.max_length, takes)

    def __or__(self, other: "MatchBound") -> "MatchBound":
        marks = self.takes.keys() | other.takes.keys()
        takes = {m: max(self.takes.get(m, 0), other.takes.get(m, 0)) for m in marks}
        return MatchBound(max(self.max_length, other.max_length), takes)


EMPTY_BOUND = MatchBound(0)
UNBOUNDED = MatchBound(math.inf, dict.fromkeys(BREAK_CHARS, math.inf))


@lru_cache(maxsize=1024)
def match_bound(pattern: str) -> MatchBound:
    """Return the bound of a pattern that RE2 has accepted."""
    parser = _BoundParser(pattern)
    try:
        bound = parser.alternatives()
    except RecursionError:
        return UNBOUNDED
    return bound if parser.position == len(pattern) else UNBOUNDED


@lru_cache(maxsize=1024)
def allow_line_breaks(pattern: str) -> str:
    """Let spaces between words in the pattern also match line breaks.

    Not between digits, where a line break separates numbers, and not in a repetition or
    character class, which is taken literally.
    """
    pieces = []
    copied = 0
    for token in ATOM.finditer(pattern):
        if token[0] != " ":
            continue
        start = token.start()
        previous = pattern[max(0, start - 2) : start]
        following = pattern[start + 1 : start + 2]
        is_after_letter = previous[-1:].isalpha() and previous[:-1] != "\\"
        is_between_words = is_after_letter or following.isalpha()
        if is_between_words and following not in {"*", "+", "?", "{"}:
            pieces += [pattern[copied:start], WORD_GAP]
            copied = token.end()
    return "".join([*pieces, pattern[copied:]])


class _BoundParser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.dot_takes = BREAK_CHARS - {"\n"}

    def alternatives(self) -> MatchBound:
        bound = self._parse_sequence()
        while self._accept("|"):
            bound |= self._parse_sequence()
        return bound

    def _parse_sequence(self) -> MatchBound:
        bound = EMPTY_BOUND
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            atom_bound = self._parse_atom()
            while quantifier := self._match(QUANTIFIER):
                low, comma, high = quantifier.groups()
                max_repeats = math.inf
                if low is None and quantifier[0] == "?":
                    max_repeats = 1
                elif high or (low is not None and not comma):
                    max_repeats = int(high or low)
                atom_bound = atom_bound.times(max_repeats)
                self._accept("?")
            bound += atom_bound
        return bound

    def _parse_atom(self) -> MatchBound:
        if quoted := self._match(QUOTED):
            return MatchBound(len(quoted[1]), count_breaks(quoted[1]))
        if flags := self._match(FLAGS):
            self.dot_takes |= {"\n"} if "s" in flags[1] else set()
            return self._parse_group() if flags[2] == ":" else EMPTY_BOUND
        if self._match(GROUP_OPEN):
            return self._parse_group()
        if token := self._match(CHARACTER_CLASS) or self._match(ESCAPE):
            atom = token[0]
        else:
            atom = self.pattern[self.position]
            self.position += 1
        if atom in ZERO_WIDTH:
            return EMPTY_BOUND
        breaks = self.dot_takes if atom == "." else _matched_breaks(atom)
        return MatchBound(1, dict.fromkeys(breaks, 1))

    def _parse_group(self) -> MatchBound:
        bound = self.alternatives()
        self._accept(")")
        return bound

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.pattern, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def _accept(self, character: str) -> bool:
        is_next = self.pattern.startswith(character, self.position)
        if is_next:
            self.position += 1
        return is_next


def count_breaks(text: str) -> dict[str, float]:
    """Count each separator in the text."""
    return {character: text.count(character) for character in BREAK_CHARS if character in text}


@lru_cache(maxsize=1024)
def _matched_breaks(atom: str) -> frozenset[str]:
    """Return the separators that a character or class matches, according to RE2."""
    options = re2.Options()
    options.log_errors = False
    try:
        regex = re2.compile(atom, options)
    except re2.error:
        return BREAK_CHARS
    return frozenset(character for character in BREAK_CHARS if regex.search(character))
