"""Concepts that tools and questions share: words of one meaning, in English and Japanese."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agents.engine.text import is_japanese

from . import words

FILE = Path(__file__).with_name("lexicon.txt")
MAX_PHRASE = 4


class Lexicon:
    """Finds the concepts of a text: by words in English, anywhere in Japanese."""

    def __init__(self, lines: list[str]) -> None:
        self._english: dict[tuple[str, ...], list[str]] = {}
        self._japanese: dict[str, list[tuple[str, str]]] = {}
        for number, line in enumerate(lines):
            concept = f"#{number}"
            english, _, japanese = line.partition("|")
            for phrase in filter(None, map(str.strip, english.split(","))):
                key = tuple(words.stem(run) for run in words.runs(words.plain(phrase)))
                self._english.setdefault(key, []).append(concept)
            for phrase in filter(None, map(str.strip, japanese.split(","))):
                plain = words.plain(phrase)
                self._japanese.setdefault(plain[0], []).append((plain, concept))
        for entries in self._japanese.values():
            entries.sort(key=lambda entry: -len(entry[0]))

    def concepts(self, text: str) -> Iterator[tuple[str, list[str]]]:
        """Yield each phrase of a plain text that has concepts, with them."""
        stems = [words.stem(run) for run in words.runs(text) if run.isascii()]
        start = 0
        while start < len(stems):
            for length in range(min(MAX_PHRASE, len(stems) - start), 0, -1):
                phrase = tuple(stems[start : start + length])
                if phrase in self._english:
                    yield " ".join(phrase), self._english[phrase]
                    start += length - 1
                    break
            start += 1
        if not is_japanese(text):
            return
        # The longest phrase at each position; what is inside it isn't one of its own.
        start = 0
        while start < len(text):
            entries = self._japanese.get(text[start], ())
            matches = [entry for entry in entries if text.startswith(entry[0], start)]
            if not matches:
                start += 1
                continue
            longest = matches[0][0]
            yield longest, [concept for phrase, concept in matches if phrase == longest]
            start += len(longest)


@cache
def shipped() -> Lexicon:
    """Return the lexicon of the product."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return Lexicon([line for line in lines if line.strip() and not line.startswith("#")])
