"""The text of a memory: cleaned, compared, and checked for what must not be saved."""

import re
import unicodedata
from hashlib import blake2b

from django.utils.translation import gettext as _

from agents.db.sanitize import sanitize_text
from agents.engine.guardrails import strip_invisible
from agents.engine.privacy import PiiKind, find, mask_secrets
from agents.models import Memory

from .errors import MemoryRejected

# What a user can tell about themselves; numbers and keys are never saved.
ALLOWED_KINDS = {PiiKind.EMAIL, PiiKind.PHONE, PiiKind.ADDRESS, PiiKind.BIRTH_DATE}
TAGS = re.compile(r"[<>＜＞]")
MARKS = re.compile(r"user_profile|user_memory|project_instructions|project_memory", re.I)
JAPANESE = r"぀-ヿ㐀-䶿一-鿿々〆ヵヶー"
WORD = re.compile(rf"[{JAPANESE}]+|[^\W_]+(?:['’][^\W_]+)?")
_STOP_WORDS = """
    a an and am are as at be been but by can could did do does for from had has have he her
    his i if in is it its me my not of on or our please remember she so that the their them
    there they this to us user user's was we were what when where which who will with would
    you your about just like likes want wants always never i'm it's i've don't use
    uses"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
HIRAGANA = re.compile(r"[ぁ-ゖ]+")


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
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(c for c in folded if c.isalnum())
    return blake2b(letters.encode(), digest_size=32).hexdigest()


def normalize_subject(text: str) -> str:
    """Return a subject as it is compared: in small letters, with single spaces."""
    folded = unicodedata.normalize("NFKC", clean(text, 80)).casefold()
    return " ".join(re.sub(r"[_\W]+", " ", folded).split())


def words(text: str) -> set[str]:
    """Return the words that carry meaning; of Japanese, pairs of characters."""
    found: set[str] = set()
    for word in WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if re.match(f"[{JAPANESE}]", word):
            found |= _pairs(word)
        elif word not in STOP_WORDS and (len(word) > 1 or word.isdigit()):
            found.add(_stem(word))
    return found


def sequence(text: str) -> list[str]:
    """Return every word in order, to compare texts word by word."""
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))


def _pairs(word: str) -> set[str]:
    """Return pairs of characters, except of hiragana, which are mostly endings."""
    pairs = {word[at : at + 2] for at in range(len(word) - 1)}
    return {pair for pair in pairs if not HIRAGANA.fullmatch(pair)} or {word}


def _stem(word: str) -> str:
    """Cut common endings, so that “shops” matches “shop”."""
    for ending in ("ing", "ed", "es", "s", "'s", "’s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
