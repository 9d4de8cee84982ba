"""The text of a memory: cleaned, compared, and checked for what must not be saved."""

import re
import unicodedata
from hashlib import blake2b

from django.utils.translation import gettext as _

from agents.db.sanitize import sanitize_text
from agents.engine.guardrails import strip_invisible
from agents.engine.privacy import PiiKind, find, mask_secrets
from agents.engine.text import HIRAGANA, JAPANESE, STOP_WORDS, bigrams, fold, stem
from agents.models import Memory

from .errors import MemoryRejected

# What a user can tell about themselves; numbers and keys are never saved.
ALLOWED_KINDS = {PiiKind.EMAIL, PiiKind.PHONE, PiiKind.ADDRESS, PiiKind.BIRTH_DATE}
TAGS = re.compile(r"[<>＜＞]")
MARKS = re.compile(r"user_profile|user_memory|project_instructions|project_memory", re.I)
HIRAGANA_RUN = re.compile(f"[{HIRAGANA}]+")
WORD = re.compile(rf"[{JAPANESE}]+|[^\W_]+(?:['’][^\W_]+)?")
POSSESSIVE = re.compile("['’]s$")
# Words of any memory; they say little about what it is about.
_COMMON_WORDS = """
    am he her his she please remember user just like likes want wants always never i'm i've
    don't use uses"""
COMMON_WORDS = STOP_WORDS | frozenset(_COMMON_WORDS.split())


def clean(text: str, most: int = Memory.MAX_CHARS) -> str:
    """Return the text on one line, without invisible characters and marks of the prompt."""
    visible = strip_invisible(sanitize_text(text))
    plain = MARKS.sub(" ", TAGS.sub(" ", visible))
    kept = "".join(c for c in plain if unicodedata.category(c)[0] != "C" or c.isspace())
    return " ".join(kept.split())[:most].strip()


def check(text: str, *, is_own: bool) -> str:
    """Return the cleaned text; raise MemoryRejected for secrets and personal numbers.

    Contact details are saved only if users give them themselves.
    """
    cleaned = clean(text)
    if not cleaned or not any(c.isalnum() for c in cleaned):
        raise MemoryRejected(_("Enter what should be remembered."))
    if len(clean(text, 10 * Memory.MAX_CHARS)) > Memory.MAX_CHARS:
        sentence = _("Use %(most)d characters or fewer.")
        raise MemoryRejected(sentence % {"most": Memory.MAX_CHARS})
    if mask_secrets(cleaned) != cleaned:
        raise MemoryRejected(_("Passwords, keys and tokens aren't saved to memory."))
    kinds = {span.kind for span in find(cleaned)}
    if kinds - ALLOWED_KINDS:
        raise MemoryRejected(_("Card, account, ID and similar numbers aren't saved to memory."))
    if kinds and not is_own:
        raise MemoryRejected(_("Contact details are saved only if you give them yourself."))
    return cleaned


def digest(text: str) -> str:
    """Return the same value for texts that differ only in case, width and punctuation."""
    letters = "".join(c for c in fold(text) if c.isalnum())
    return blake2b(letters.encode(), digest_size=32).hexdigest()


def normalize_subject(text: str) -> str:
    """Return a subject as it is compared: in small letters, with single spaces."""
    return re.sub(r"[_\W]+", " ", fold(clean(text, 80))).strip()


def words(text: str) -> set[str]:
    """Return the words that carry meaning; of Japanese, pairs of characters."""
    found: set[str] = set()
    for word in WORD.findall(fold(text)):
        if re.match(f"[{JAPANESE}]", word):
            # Pairs of hiragana are mostly endings.
            pairs = {pair for pair in bigrams(word) if not HIRAGANA_RUN.fullmatch(pair)}
            found |= pairs or {word}
            continue
        word = POSSESSIVE.sub("", word)
        if word not in COMMON_WORDS and (len(word) > 1 or word.isdigit()):
            found.add(stem(word))
    return found


def sequence(text: str) -> list[str]:
    """Return every word in order, to compare texts word by word."""
    return WORD.findall(fold(text).replace("’", "'"))
