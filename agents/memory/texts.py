"""The text of a note: on one line, compared, and checked for what must not be saved."""

import re
import unicodedata
from hashlib import blake2b

from django.utils.translation import gettext as _

from agents.db.sanitize import sanitize_text
from agents.engine.guardrails import strip_invisible
from agents.engine.material import find_instructions
from agents.engine.privacy import PiiKind, find, mask, mask_secrets
from agents.engine.text import (
    HIRAGANA,
    JAPANESE,
    STOP_WORDS,
    bigrams,
    fold,
    shorten_line,
    stem,
)
from agents.models import Experience, Memory

from .errors import NoteRejected

# What a user can tell about themselves; numbers and keys are never saved.
ALLOWED_KINDS = {PiiKind.EMAIL, PiiKind.PHONE, PiiKind.ADDRESS, PiiKind.BIRTH_DATE}
# Marks of the prompt, which a note can't contain. Other angle brackets are part of queries.
MARKS = re.compile(
    r"[<＜]\s*(?:/\s*)?[a-z]+(?:_[a-z]+)*\s*[>＞]|\bexperiences\s*[>＞]", re.IGNORECASE
)
BRACKETS = re.compile("[<>＜＞]")
QUESTION_ENDS = re.compile(r"(?<=[.?!。？！])\s")
HIRAGANA_LETTER = re.compile(f"[{HIRAGANA}]")
HIRAGANA_RUN = re.compile(f"[{HIRAGANA}]+")
_LETTERS = rf"[^\W_{JAPANESE}]+"
WORD = re.compile(rf"[{JAPANESE}]+|{_LETTERS}(?:['’]{_LETTERS})?")
POSSESSIVE = re.compile("['’]s$")
# Words of any memory; they say little about what it is about.
_COMMON_WORDS = """
    am he her his she please remember user just like likes want wants always never i'm i've
    don't use uses"""
COMMON_WORDS = STOP_WORDS | frozenset(_COMMON_WORDS.split())


def clean(text: str, max_chars: int) -> str:
    """Return the text on one line, without invisible characters and marks of the prompt."""
    visible = MARKS.sub(" ", strip_invisible(sanitize_text(text)))
    printable = "".join(c for c in visible if unicodedata.category(c)[0] != "C" or c.isspace())
    return shorten_line(printable, max_chars)


def clean_memory(text: str, max_chars: int = Memory.MAX_CHARS) -> str:
    """Return a memory's text on one line, without angle brackets."""
    return clean(BRACKETS.sub(" ", MARKS.sub(" ", text)), max_chars)


def quote(text: str) -> str:
    """Return the text between quotation marks, as it is put into a prompt."""
    quoted = unicodedata.normalize("NFC", clean(text, Experience.MAX_CHARS))
    return '"' + quoted.replace('"', "'") + '"'


def check_memory(text: str, *, is_own: bool) -> str:
    """Return the cleaned text; raise NoteRejected for secrets and personal numbers.

    Contact details are saved only if users give them themselves.
    """
    cleaned = clean_memory(text)
    if not cleaned or not any(c.isalnum() for c in cleaned):
        raise NoteRejected(_("Enter what to save to memory."))
    if len(clean_memory(text, 10 * Memory.MAX_CHARS)) > Memory.MAX_CHARS:
        sentence = _("Use %(most)d characters or fewer.")
        raise NoteRejected(sentence % {"most": Memory.MAX_CHARS})
    if mask_secrets(cleaned) != cleaned:
        raise NoteRejected(_("Passwords, keys and tokens aren't saved to memory."))
    kinds = {span.kind for span in find(cleaned)}
    if kinds - ALLOWED_KINDS:
        raise NoteRejected(_("Card, account, ID and similar numbers aren't saved to memory."))
    if kinds and not is_own:
        raise NoteRejected(_("Contact details are saved only if you give them yourself."))
    return cleaned


def masked(text: str) -> str:
    """Return the text without personal data and secrets."""
    return mask(mask_secrets(text)).text


def gist(question: str) -> str:
    """Return what a question asks, short and without personal data.

    Of a long message it is the beginning and the last sentence, which is usually the question.
    """
    max_chars = Experience.MAX_QUESTION_CHARS
    line = masked(clean(question, 4_000))
    if len(line) <= max_chars:
        return line
    last = QUESTION_ENDS.split(line)[-1]
    if len(last) <= max_chars // 2:
        return f"{clean(line, max_chars - len(last) - 2)} {last}"
    return clean(line, max_chars)


def lesson(text: str) -> str:
    """Return a lesson as it is saved; raise NoteRejected."""
    cleaned = clean(masked(clean(text, 4_000)), Experience.MAX_CHARS)
    if not any(c.isalnum() for c in cleaned):
        raise NoteRejected(_("Enter the lesson."))
    check_lesson(cleaned)
    return cleaned


def check_lesson(text: str) -> None:
    """Raise NoteRejected if the text addresses a model instead of describing a lesson."""
    if instructions := find_instructions(text):
        sentence = _(
            "This looks like instructions to a model: “%(text)s”. Describe the lesson instead."
        )
        raise NoteRejected(sentence % {"text": instructions[:80]})


def digest(text: str) -> str:
    """Return the same value for texts that differ only in case, width and punctuation."""
    letters = "".join(c for c in fold(text) if c.isalnum())
    return blake2b(letters.encode(), digest_size=32).hexdigest()


def normalize_subject(text: str) -> str:
    """Return a subject as it is compared: in small letters, with single spaces."""
    return re.sub(r"[_\W]+", " ", fold(clean_memory(text, 80))).strip()


def words(text: str) -> set[str]:
    """Return the words that carry meaning; of Japanese, pairs of characters."""
    terms: set[str] = set()
    for word in WORD.findall(fold(text)):
        if re.match(f"[{JAPANESE}]", word):
            # Pairs of hiragana are mostly endings.
            pairs = {pair for pair in bigrams(word) if not HIRAGANA_RUN.fullmatch(pair)}
            terms |= pairs or {word}
            continue
        word = POSSESSIVE.sub("", word)
        if word not in COMMON_WORDS and (len(word) > 1 or word.isdigit()):
            terms.add(stem(word))
    return terms


def keywords(text: str) -> set[str]:
    """Return the words that can say what a text is about: no numbers, no Japanese endings."""
    return {
        word for word in words(text) if not word.isdigit() and not HIRAGANA_LETTER.search(word)
    }


def sequence(text: str) -> list[str]:
    """Return every word in order, to compare texts word by word."""
    return WORD.findall(fold(text).replace("’", "'"))
