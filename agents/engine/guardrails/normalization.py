"""Normalizes text the way a reader sees it and maps each character to its source.

A text has three readings. The first is its source: one form per letter, nothing invisible. The
second is the rendered text: Markdown, character references and percent escapes are resolved,
whitespace is collapsed. The third replaces lookalike letters of other alphabets.
`StreamNormalizer` reads text that is still being streamed.
"""

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html.entities import html5
from typing import Any

from .confusables import fold, foldable_positions

READING_COUNT = 3
BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # blank characters with a width
SPACE = " \t\n\r\v\f\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000" + BLANK
# Most invisible characters; inside a gap they don't split it.
INVISIBLE = (
    "\0-\b\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ue000-\uf8ff\ufe00-\ufe0f\ufeff\ufff0-\ufffc\ufffe\uffff\U000e0000-\U000e0fff"
)
LINE_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
HANGUL_JOINERS = range(0x1160, 0x1200)  # letters that combine with the preceding Hangul letter

# Unicode's Default_Ignorable_Code_Point beyond format characters, object replacement characters
# and noncharacters.
IGNORABLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
    (0xFFFC, 0xFFFC),
    (0xFDD0, 0xFDEF),
)

MAX_LABEL_CHARS = 300
MAX_URL_CHARS = 2_000
MAX_TITLE_CHARS = 200
MAX_GAP_CHARS = 50
MAX_HELD_CHARS = MAX_LABEL_CHARS + MAX_URL_CHARS + MAX_TITLE_CHARS + 3 * MAX_GAP_CHARS + 16
MAX_COMBINING_MARKS = 500
_LABEL = rf"[^\[\]\n]{{0,{MAX_LABEL_CHARS}}}"
# A link target in CommonMark syntax. Rendered pages accept the same links: see markdown.
# Only single characters are repeated possessively: a possessive group matches wrongly before
# Python 3.11.5. Each character fits one alternative only, so little is ever tried twice.
_GAP = rf"[ \t\r\n]{{0,{MAX_GAP_CHARS}}}+"
_REQUIRED_GAP = rf"[ \t\r\n]{{1,{MAX_GAP_CHARS}}}+"
_URL_CHAR = r"(?:\\.|[^\s()\\])"
_URL_CHARS = rf"{_URL_CHAR}{{0,{MAX_URL_CHARS}}}"
_NESTED_URL = rf"(?:{_URL_CHAR}|\({_URL_CHARS}\)){{0,{MAX_URL_CHARS}}}"
_BRACKETED_URL = rf"<(?:\\.|[^<>\n\\]){{0,{MAX_URL_CHARS}}}"
_URL = rf"(?:{_BRACKETED_URL}>|(?!<)(?:{_URL_CHAR}|\({_NESTED_URL}\)){{0,{MAX_URL_CHARS}}})"
_TITLES = [
    rf"{a}(?:\\[\s\S]|[^{a}{b}\\]){{0,{MAX_TITLE_CHARS}}}"
    for a, b in ('""', "''", ("\\(", "\\)"))
]
_TITLE = rf"(?:{_TITLES[0]}\"|{_TITLES[1]}'|{_TITLES[2]}\))"
_LINK_TARGET = rf"\]\({_GAP}{_URL}(?:{_REQUIRED_GAP}{_TITLE})?{_GAP}\)"
_PARTIAL_TARGET = (
    rf"\]\({_GAP}(?:{_BRACKETED_URL}\\?|{_URL}(?:\\|\({_NESTED_URL}(?:\\|\({_URL_CHARS}\\?)?"
    rf"|{_REQUIRED_GAP}(?:{'|'.join(_TITLES)})\\?|(?:{_REQUIRED_GAP}{_TITLE})?{_GAP})?)"
)
LINK_TARGET = re.compile(_LINK_TARGET)
# Text that renders differently from its source. Every part is possessive or bounded, so
# matching stays linear.
MARKUP_TOKEN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])|(?P<broken>\\)(?=[\r\n])"
    r"|(?P<reference>&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|%(?P<percent>[2-7][0-9A-Fa-f])"
    r"|(?P<marks>\*++|_++|`++|~~++)"
    rf"|(?P<link>!?\[(?={_LABEL}\][(\[])|{_LINK_TARGET}|\]\[{_LABEL}\])|(?P<bracket>!?[\[\]])"
    rf"|(?P<gap>(?:[{SPACE}][{SPACE}{INVISIBLE}]++|\n(?=>)|[{BLANK}\v\f\x1c-\x1f\x85\u2028\u2029]))"
    rf"(?P<quotes>(?:>[>{SPACE}]*+)?)"
)
# The end of a text that may become such a token, or a longer one, with more text.
PARTIAL_TOKEN = re.compile(
    r"(?:\\|&[#A-Za-z0-9]{0,33}|%[2-7]?|(?<!\*)\*++|(?<!_)_++|(?<!`)`++|(?<!~)~++"
    rf"|!(?:\[{_LABEL}\]?)?|\[{_LABEL}\]?|\](?:\[{_LABEL})?|{_PARTIAL_TARGET})\Z"
)
# Where a token can start: much faster to search than the token itself.
_TOKEN_START_CHARS = rf"\\&%*_`~\[\]{BLANK}\v\f\x1c-\x1f\x85\u2028\u2029"
TOKEN_START = re.compile(
    f"[{_TOKEN_START_CHARS}{SPACE}](?:(?<=[{_TOKEN_START_CHARS}])|(?=[{SPACE}{INVISIBLE}>]))|!(?=\\[)"
)
MARKUP_CHARS = re.compile(f"[{_TOKEN_START_CHARS}]")
WIDE_GAP = re.compile(f"[{SPACE}][{SPACE}{INVISIBLE}>]")
PARTIAL_GAP = re.compile(f"(?<![{SPACE}{INVISIBLE}>])[{SPACE}{INVISIBLE}>]++\\Z")
STRUCK_THROUGH = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0e31-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
    "\u302a-\u302f\u3099\u309a\ufe20-\ufe2f\U00013440-\U00013455]"
    "(?<=[0-9A-Za-z\u00c0-\u024f\u1e00-\u1eff].)"
)


@dataclass(slots=True, kw_only=True)
class NormalizedText:
    """Characters with their start and end in the original text.

    Several characters can share a position, such as the letters of a ligature.
    """

    text: str = ""
    starts: Any = field(default_factory=list)  # list of positions, or a range
    ends: Any = field(default_factory=list)
    changes: list[int] = field(default_factory=list)  # positions of replaced characters

    def add(self, text: str, start: int, end: int | None = None) -> None:
        """Append characters at one position or, without `end`, at consecutive positions."""
        self.text += text
        if end is None:
            self.starts.extend(range(start, start + len(text)))
            self.ends.extend(range(start + 1, start + len(text) + 1))
        else:
            self.starts.extend([start] * len(text))
            self.ends.extend([end] * len(text))

    def join(self, following: "NormalizedText") -> None:
        self.text += following.text
        self.starts += following.starts
        self.ends += following.ends

    def drop(self, count: int) -> None:
        self.text = self.text[count:]
        del self.starts[:count], self.ends[:count]

    def has_same_positions(self, other: "NormalizedText") -> bool:
        """Whether all characters have the same positions as in the other text."""
        return list(self.starts) == list(other.starts) and list(self.ends) == list(other.ends)

    def split(self, index: int) -> "NormalizedText":
        """Remove and return everything from this index on."""
        tail = NormalizedText(
            text=self.text[index:], starts=self.starts[index:], ends=self.ends[index:]
        )
        self.text = self.text[:index]
        del self.starts[index:], self.ends[index:]
        return tail


class StreamNormalizer:
    """Normalizes a text while it is streamed: its source, or the text `as_rendered`."""

    def __init__(self, *, as_rendered: bool = False) -> None:
        self.plain = NormalizedText()
        self._as_rendered = as_rendered
        self._markup = ""
        self._position = 0  # of the first character of pending markup
        self._last = " "  # the character before it
        self._in_word = False  # whether a bracket was opened inside a word
        self._changes: list[int] = []
        self._open = NormalizedText()  # the last letter: a combining mark may follow

    def feed(self, piece: str, *, is_over: bool = False) -> None:
        """Normalize the next piece, except for its end while that is still ambiguous."""
        letters = self._open
        if self._as_rendered:
            letters.join(self._render(piece, is_over))
        else:
            letters.add(piece, self._position)
            self._position += len(piece)
        text = letters.text
        classes = "" if _is_simple(text) else text.translate(_CLASS_TABLE)
        # The last letter stays open: a combining mark may follow.
        if is_over:
            cut = len(text)
        elif classes:
            cut = max(classes.rfind("l"), classes.rfind("n"), 0)
        else:
            cut = max(len(text) - 1, 0)
        if len(text) - cut > MAX_COMBINING_MARKS:
            cut = len(text)  # more combining marks than any real letter has
        self._open = letters.split(cut)
        if classes[:cut].strip("l"):
            letters = _compose(letters, classes[:cut], self._as_rendered)
        self.plain.join(letters)

    @property
    def end(self) -> int:
        """Position up to which the text was read."""
        return self._open.starts[0] if self._open.starts else self._position

    def _render(self, piece: str, is_over: bool) -> NormalizedText:
        text = self._markup + piece
        base = self._position
        copied = 0  # how much of the text was rendered
        token_end = 0
        texts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []

        def copy(until: int) -> None:
            texts.append(text[copied:until])
            starts.extend(range(base + copied, base + until))
            ends.extend(range(base + copied + 1, base + until + 1))

        cut = len(text) if is_over else _decided_end(text)
        for candidate in TOKEN_START.finditer(text):
            start = candidate.start()
            if start >= cut:
                break
            token = MARKUP_TOKEN.match(text, start) if start >= token_end else None
            if token is None:
                continue
            token_end = end = token.end()
            previous = text[start - 1] if start else self._last
            following = text[end : end + 1] or " "
            if token["bracket"]:
                form = self._render_bracket(token["bracket"], previous, following)
            else:
                form = _render_token(token, previous, following)
            if form is None:
                continue
            if form == " " and token["quotes"]:
                end = token.start("quotes")
            copy(start)
            if is_over:
                self._changes.append(base + start)
            texts.append(form)
            starts += [base + start] * len(form)
            ends += [base + end] * len(form)
            copied = end
        done = max(copied, cut)
        copy(done)
        self._last = text[done - 1] if done else self._last
        self._markup = text[done:]
        self._position = base + done
        return NormalizedText(text="".join(texts), starts=starts, ends=ends)

    def _render_bracket(self, bracket: str, previous: str, following: str) -> str | None:
        """Drop a bracket inside a word: it may be a link with its target elsewhere."""
        if bracket != "]":
            self._in_word = previous.isalnum()
            return "" if self._in_word else None
        is_in_word = self._in_word or following.isalnum()
        self._in_word = False
        return "" if is_in_word else None


def normalize(text: str) -> NormalizedText:
    """Return the normalized source of a text."""
    if _is_simple(text):
        return NormalizedText(text=text, starts=range(len(text)), ends=range(1, len(text) + 1))
    return _normalize_text(text, as_rendered=False)


def readings(text: str) -> list[NormalizedText]:
    """Return all distinct readings of a text; all but the first have their `changes`."""
    source = rendered = normalize(text)
    distinct = [source]
    has_strikethrough = not source.text.isascii() and STRUCK_THROUGH.search(source.text)
    if has_strikethrough or MARKUP_CHARS.search(text) or WIDE_GAP.search(text):
        rendered = _normalize_text(text, as_rendered=True)
        if rendered.text != source.text or not rendered.has_same_positions(source):
            distinct.append(rendered)
    folded = fold(rendered.text)
    if folded != rendered.text:
        changes = sorted([*rendered.changes, *foldable_positions(rendered.text)])
        distinct.append(replace(rendered, text=folded, changes=changes))
    return distinct


def _normalize_text(text: str, *, as_rendered: bool) -> NormalizedText:
    normalizer = StreamNormalizer(as_rendered=as_rendered)
    normalizer.feed(text, is_over=True)
    normalized = normalizer.plain
    if as_rendered:
        struck = [match.start() for match in STRUCK_THROUGH.finditer(text)]
        normalized.changes = [
            bisect_left(normalized.starts, position)
            for position in sorted([*normalizer._changes, *struck])
        ]
    return normalized


def _decided_end(text: str) -> int:
    """Return the position before which all tokens are complete."""
    gap = PARTIAL_GAP.search(text)
    token = PARTIAL_TOKEN.search(text, max(0, len(text) - MAX_HELD_CHARS))
    end = min((match.start() for match in (gap, token) if match), default=len(text))
    return end if len(text) - end <= MAX_HELD_CHARS else len(text)


def _render_token(token: re.Match[str], previous: str, following: str) -> str | None:
    """Return a token's rendered text, or None if it renders as written."""
    match token.lastgroup:
        case "escaped":
            return token["escaped"]
        case "reference":
            return _resolve_entity(token["reference"])
        case "percent":
            return chr(int(token["percent"], 16)) if token["percent"].lower() != "7f" else None
        case "marks":
            if previous.isspace() and following.isspace():
                return None
            is_in_word = previous.isalnum() and following.isalnum()
            return None if is_in_word and token["marks"][0] == "_" else ""
        case "link" | "broken":
            return ""
    gap = token["gap"]
    form = "\n" * min(len(LINE_BREAKS.findall(gap)), 2) or " "
    return None if form == gap and (form == " " or not token["quotes"]) else form


@lru_cache(maxsize=4096)
def _resolve_entity(reference: str) -> str | None:
    if not reference.startswith("&#"):
        return html5.get(reference[1:])
    digits = reference[2:-1]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


# Letters


class _ClassTable(dict[int, str]):
    """Classes: l unchanged letter, n other form, m combining mark, u invisible."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        is_control = category == "Cc" and character not in "\t\n\r\f"
        is_no_character = code & 0xFFFE == 0xFFFE
        if category in {"Cs", "Zl", "Zp"}:
            kind = "n"
        elif (
            category in {"Cf", "Co"}
            or is_control
            or is_no_character
            or character in BLANK
            or any(first <= code <= last for first, last in IGNORABLE)
        ):
            kind = "u"
        else:
            form = unicodedata.normalize("NFKC", character)
            is_same = (form == character and category != "Zs") or character == " "
            kind = "l" if is_same else "n"
            if unicodedata.category(form[0])[0] == "M" or ord(form[0]) in HANGUL_JOINERS:
                kind = "m"
        self[code] = kind
        return kind


_CLASS_TABLE = _ClassTable()
# Matches anything but common letters that need no normalization.
NOT_SIMPLE = re.compile(
    "[^\t\n\f\r\x20-\x7e\xa1-\xa7\xa9\xab\xac\xae\xb0\xb1\xb6\xb7\xbb\xbf-\u0131\u0391-\u03a1\u03a3-\u03ce"
    "\u0400-\u0481\u2010\u2012-\u2015\u2018-\u201f\u2022\u3001-\u3029\u3041-\u3096\u30a1-\u30fe\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3]"
)


def _is_simple(text: str) -> bool:
    return NOT_SIMPLE.search(text) is None


LETTER_RUNS = re.compile("(?P<same>l+(?![mu]))|[ln][mu]*|[mu]+")
# By category; RE2 rejects a lone surrogate.
REPLACEMENTS = {"Cs": "\ufffd", "Zs": " ", "Zl": "\n", "Zp": "\n"}


def _compose(letters: NormalizedText, classes: str, as_rendered: bool) -> NormalizedText:
    """Compose each letter with its combining marks into its usual form."""
    composed = NormalizedText()
    texts: list[str] = []
    for letter_run in LETTER_RUNS.finditer(classes):
        start, end = letter_run.span()
        if letter_run["same"]:
            texts.append(letters.text[start:end])
            composed.starts += letters.starts[start:end]
            composed.ends += letters.ends[start:end]
            continue
        visible_positions = [
            position for position in range(start, end) if classes[position] != "u"
        ]
        if not visible_positions:
            continue
        visible = "".join(letters.text[position] for position in visible_positions)
        compose = _compose_short_letter if len(visible) < 4 else _compose_letter
        letter = compose(visible, as_rendered)
        texts.append(letter)
        composed.starts += [letters.starts[visible_positions[0]]] * len(letter)
        composed.ends += [letters.ends[visible_positions[-1]]] * len(letter)
    composed.text = "".join(texts)
    return composed


def _compose_letter(letters: str, as_rendered: bool) -> str:
    form = "".join(
        REPLACEMENTS.get(unicodedata.category(character), character)
        for character in unicodedata.normalize("NFKC", letters)
    )
    if (
        as_rendered
        and all(unicodedata.category(mark)[0] == "M" for mark in form[1:])
        and form[1:]
    ):
        # A struck-through letter reads as the plain letter, even one with an accent.
        bare = unicodedata.normalize("NFD", form[0])[0]
        return bare if bare.isascii() and bare.isalnum() else form
    return form


_compose_short_letter = lru_cache(maxsize=65_536)(_compose_letter)
