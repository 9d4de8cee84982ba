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
            english, _, japanese = line.partition("|")
            self._add_english(f"#{number}", english)
            self._add_japanese(f"#{number}", japanese)
        for known in self._japanese.values():
            known.sort(key=lambda pair: -len(pair[0]))

    def _add_english(self, concept: str, phrases: str) -> None:
        for phrase in filter(None, map(str.strip, phrases.split(","))):
            key = tuple(words.stem(word) for word in words.runs(words.plain(phrase)))
            self._english.setdefault(key, []).append(concept)

    def _add_japanese(self, concept: str, phrases: str) -> None:
        for phrase in filter(None, map(str.strip, phrases.split(","))):
            known = self._japanese.setdefault(words.plain(phrase)[0], [])
            known.append((words.plain(phrase), concept))

    def concepts(self, text: str) -> Iterator[tuple[str, list[str]]]:
        """Yield each phrase of a plain text that has concepts, with them."""
        yield from self._in_english(text)
        if is_japanese(text):
            yield from self._in_japanese(text)

    def _in_english(self, text: str) -> Iterator[tuple[str, list[str]]]:
        stems = [words.stem(run) for run in words.runs(text) if run.isascii()]
        at = 0
        while at < len(stems):
            for length in range(min(MAX_PHRASE, len(stems) - at), 0, -1):
                phrase = tuple(stems[at : at + length])
                if phrase in self._english:
                    yield " ".join(phrase), self._english[phrase]
                    at += length - 1
                    break
            at += 1

    def _in_japanese(self, text: str) -> Iterator[tuple[str, list[str]]]:
        """Take the longest phrase at each place; what is inside it isn't one of its own."""
        at = 0
        while at < len(text):
            known = self._japanese.get(text[at], ())
            here = [pair for pair in known if text.startswith(pair[0], at)]
            if not here:
                at += 1
                continue
            phrase = here[0][0]
            yield phrase, [concept for known, concept in here if known == phrase]
            at += len(phrase)


@cache
def shipped() -> Lexicon:
    """Return the lexicon of the product."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return Lexicon([line for line in lines if line.strip() and not line.startswith("#")])
