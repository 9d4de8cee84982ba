"""Splits names, descriptions and questions into words, in English and Japanese."""

import re

from agents.engine.text import KANJI, KATAKANA, STOP_WORDS, bigrams, fold

MAX_CHARS = 4_000
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUNS = re.compile(f"[a-z0-9]+|[{KATAKANA}]{{2,}}|[{KANJI}]+")
_KATAKANA = re.compile(f"[{KATAKANA}]")
# Words of any description; they say nothing about which tool is meant.
_COMMON = """
doing down he her him his just let like off once out over please she some too up use used uses
using very via want while need needs given e g optional
"""
# Words of any request; they say little about which tool is meant.
_WEAK = """
make give get take put let show tell see go come know look keep new one two all any every back
way thing things now today yesterday tomorrow week month year day time last next much many more
most still already again also another other same people person everyone someone anyone have got
set turn run how long here ahead great good right able help try first second company item number
"""
COMMON_WORDS = STOP_WORDS | frozenset(_COMMON.split())
WEAK_WORDS = frozenset(_WEAK.split())
# The stems of `engine.text` are shorter: `evaluate_tools` finds fewer tools with them.
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
    return fold(_CAMEL.sub(" ", text[:MAX_CHARS])).replace("・", " ")


def runs(text: str) -> list[str]:
    """Return the words of plain text: Latin words, katakana and kanji, in their order."""
    return _RUNS.findall(text)


def stem(word: str) -> str:
    """Return an English word without its ending, so that lists, listed and listing are one."""
    if not word.isascii() or len(word) <= MIN_STEM or word.endswith(("ss", "us", "is")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(instead) >= MIN_STEM:
            word = word[: -len(ending)] + instead
            break
    # Endings add and remove a final e and a doubled consonant.
    if len(word) > MIN_STEM and word.endswith("e"):
        word = word[:-1]
    is_doubled = len(word) > MIN_STEM and word[-1] == word[-2] and word[-1] not in "sloaeu"
    return word[:-1] if is_doubled else word


def terms(text: str) -> list[str]:
    """Return what a text is found by: stems, katakana words, kanji words and their pairs."""
    index_terms: list[str] = []
    for run in runs(text):
        if run.isascii():
            if run not in COMMON_WORDS:
                index_terms.append(stem(run))
            continue
        index_terms.append(run)
        if len(run) > 2 and not _KATAKANA.match(run):
            index_terms += bigrams(run)
    return index_terms
