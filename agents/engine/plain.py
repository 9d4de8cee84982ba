"""Texts as a reader takes them: one form for each letter, nothing that cannot be seen."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

UNSEEN = re.compile("VARIATION SELECTOR|COMBINING GRAPHEME JOINER|HANGUL .*FILLER")
VOWELS_AND_TAILS = range(0x1160, 0x1200)  # letters that join the Hangul letter before them


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """`places` says where each of its characters stood in the text, and where that ended.

    Several may have stood in one place, as the letters of a ligature did: they begin and end
    together. Without `places` everything stands where it stood.
    """

    text: str
    places: Sequence[int] | None = None

    def place(self, at: int) -> int:
        return at if self.places is None else self.places[at]

    def first(self, at: int) -> int:
        """The first character that stood in the place of this one."""
        while self.places is not None and at > 0 and self._is_together(at):
            at -= 1
        return at

    def after(self, at: int) -> int:
        """This character, if it is the first of its place; else the first of the next one."""
        while self.places is not None and at > 0 and self._is_together(at):
            at += 1
        return at

    def _is_together(self, at: int) -> bool:
        places = self.places or ()
        return at < len(self.text) and places[at] == places[at - 1]


def plain(text: str) -> Plain:
    if text.isascii():
        return Plain(text=text)
    forms: list[str] = []
    places: list[int] = []
    for place, letters in _letters(text):
        form = _form(letters) if len(letters) < 4 else _formed(letters)
        forms.append(form)
        places += [place] * len(form)
    return Plain(text="".join(forms), places=[*places, len(text)])


def _letters(text: str) -> Iterator[tuple[int, str]]:
    """Each letter with all marks upon it, and where it stood."""
    begun, letters = 0, ""
    for at, character in enumerate(text):
        match _part(character):
            case "letter":
                if letters:
                    yield begun, letters
                begun, letters = at, character
            case "mark":
                begun = begun if letters else at
                letters += character
    if letters:
        yield begun, letters


@lru_cache(maxsize=65_536)
def _part(character: str) -> str:
    if character.isascii():
        return "letter"
    if unicodedata.category(character) == "Cf" or UNSEEN.search(
        unicodedata.name(character, "")
    ):
        return "unseen"
    first = unicodedata.normalize("NFKC", character)[0]
    is_mark = unicodedata.category(first)[0] == "M" or ord(first) in VOWELS_AND_TAILS
    return "mark" if is_mark else "letter"


def _formed(letters: str) -> str:
    form = unicodedata.normalize("NFKC", letters)
    # Half a character is none that RE2 takes.
    return "".join("\ufffd" if unicodedata.category(c) == "Cs" else c for c in form)


_form = lru_cache(maxsize=65_536)(_formed)
