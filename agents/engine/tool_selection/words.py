"""Splits names, descriptions and questions into words, in English and Japanese."""

import re
from unicodedata import normalize

MAX_CHARS = 4_000
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUNS = re.compile(
    r"[a-z0-9]+"
    r"|[\u30a1-\u30fa\u30fc]{2,}"  # katakana
    r"|[\u3400-\u4dbf\u4e00-\u9fff\u3005]+"  # kanji
)
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_STOP = """
a an and are as at be been but by can could did do does doing down for from had has have he her
him his i if in into is it its just let like may me my no not of off on once or our out over
please she should so some than that the their them then there these they this those to too up us
use used uses using very via want was we were what when where which while who whom whose why
will with would you your need needs given e g optional
"""
# Words of any request; they say little about which tool is meant.
_WEAK = """
make give get take put let show tell see go come know look keep new one two all any every back
way thing things now today yesterday tomorrow week month year day time last next much many more
most still already again also another other same people person everyone someone anyone have got
set turn run how long here ahead great good right able help try first second company item number
"""
STOP_WORDS = frozenset(_STOP.split())
WEAK_WORDS = frozenset(_WEAK.split())
_ENDINGS = (
    ("ations", "ate"),
    ("ation", "ate"),
    ("ies", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("ings", ""),
    ("ing", ""),
    ("ied", "y"),
    ("ed", ""),
    ("ers", "er"),
    ("s", ""),
)
MIN_STEM = 3


def plain(text: str) -> str:
    """Return the text in one notation: compatible characters, camelCase split, lower case."""
    return _CAMEL.sub(" ", normalize("NFKC", text[:MAX_CHARS])).lower()


def runs(text: str) -> list[str]:
    """Return the words of plain text: Latin words, katakana and kanji, in their order."""
    return _RUNS.findall(text)


def is_japanese(text: str) -> bool:
    return _JAPANESE.search(text) is not None


def stem(word: str) -> str:
    """Return an English word without its ending, so that lists, listed and listing are one."""
    if not word.isascii() or len(word) <= MIN_STEM or word.endswith(("ss", "us", "is")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= MIN_STEM:
            return _shorten(word[: -len(ending)] + instead)
    return _shorten(word)


def _shorten(word: str) -> str:
    """Drop a final e and a doubled consonant, which endings add and remove."""
    if len(word) > MIN_STEM and word.endswith("e"):
        word = word[:-1]
    is_doubled = len(word) > MIN_STEM and word[-1] == word[-2] and word[-1] not in "sloaeu"
    return word[:-1] if is_doubled else word


def terms(text: str) -> list[str]:
    """Return what a text is found by: stems, katakana words, kanji words and their pairs."""
    found: list[str] = []
    for run in runs(text):
        if run.isascii():
            if run not in STOP_WORDS:
                found.append(stem(run))
            continue
        found.append(run)
        if len(run) > 2 and not _is_katakana(run):
            found += [run[at : at + 2] for at in range(len(run) - 1)]
    return found


def _is_katakana(run: str) -> bool:
    return "\u30a1" <= run[0] <= "\u30fc"
