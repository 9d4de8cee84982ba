"""The text of an experience: on one line, masked, and checked for instructions."""

import re
import unicodedata

from django.utils.translation import gettext as _

from agents.db.sanitize import sanitize_text
from agents.engine.guardrails import strip_invisible
from agents.engine.material import find_instructions
from agents.engine.privacy import mask, mask_secrets
from agents.engine.text import shorten_line
from agents.memory import texts
from agents.models import Experience

from .errors import ExperienceRejected

# Marks of the prompt, which a lesson can't contain. Other angle brackets are part of queries.
MARKS = re.compile(
    r"[<＜]\s*(?:/\s*)?[a-z]+(?:_[a-z]+)*\s*[>＞]|\bexperiences\s*[>＞]", re.IGNORECASE
)
QUESTION_ENDS = re.compile(r"(?<=[.?!。？！])\s")

digest, words = texts.digest, texts.words


def clean(text: str, most: int) -> str:
    """Return the text on one line, without invisible characters and marks of the prompt."""
    visible = MARKS.sub(" ", strip_invisible(sanitize_text(text)))
    kept = "".join(c for c in visible if unicodedata.category(c)[0] != "C" or c.isspace())
    return shorten_line(kept, most)


def masked(text: str) -> str:
    """Return the text without personal data and secrets."""
    return mask(mask_secrets(text)).text


def gist(question: str) -> str:
    """Return what a question asks, short and without personal data.

    Of a long message it is the beginning and the last sentence, which is usually the question.
    """
    most = Experience.MAX_QUESTION_CHARS
    line = masked(clean(question, 4_000))
    if len(line) <= most:
        return line
    last = QUESTION_ENDS.split(line)[-1]
    if len(last) <= most // 2:
        return f"{clean(line, most - len(last) - 2)} {last}"
    return clean(line, most)


def lesson(text: str) -> str:
    """Return a lesson as it is saved; raise ExperienceRejected."""
    cleaned = clean(masked(clean(text, 4_000)), Experience.MAX_CHARS)
    if not any(c.isalnum() for c in cleaned):
        raise ExperienceRejected(_("Enter what was learned."))
    check(cleaned)
    return cleaned


def check(text: str) -> None:
    """Raise ExperienceRejected if the text addresses a model instead of describing a lesson."""
    if found := find_instructions(text):
        sentence = _(
            "This looks like instructions to a model: “%(text)s”. Describe the lesson."
        )
        raise ExperienceRejected(sentence % {"text": found[:80]})
