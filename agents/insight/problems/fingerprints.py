"""Fingerprints: which occurrences have the same cause.

Secrets and personal data are removed first, then whatever differs between occurrences of one
cause: addresses, ids, times and numbers, in one pass of a combined regular expression. What is
left is the message of the problem, and part of its fingerprint.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agents.engine.privacy import mask, mask_secrets
from agents.engine.sentences import Sentence

from .models import MAX_SUBJECT_CHARS, MAX_TITLE_CHARS

# Increase it with every change that gives the same occurrence another fingerprint.
ALGORITHM = 3
MAX_READ_CHARS = 2_000
MIN_INPUT_CHARS = 4
MAX_INPUTS = 50
TRACEBACK = "Traceback (most recent call last)"
INPUT = "‹input›"
MODEL = "‹model›"

# In this order: an earlier one wins where both match.
PARTS = {
    "kept": r"\b(?:HTTP(?:/[\d.]+)?|status(?: code)?|error(?: code)?|exit code|errno|code)"
    r"[ :=#]{1,2}-?\d{1,5}\b",
    "masked": r"‹[^›]{1,40}›(?::\d{1,5}\b)?",
    "email": r"[\w.!#$%&'*+/=?^`{|}~-]+@[\w-]+(?:\.[\w-]+)+",
    "url": r"\b[a-z][a-z\d+.-]{1,12}://[^\s\"'<>)\]}]+",
    "ip": r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.])"
    r"|(?<![\w:])(?:[\da-f]{1,4}:){2,7}[\da-f]{0,4}(?![\w:])",
    # Only at the beginning of a name: from each of its dots, a long one would take seconds.
    "host": r"(?<![\w.-])(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+"
    r"(?:com|org|net|io|dev|ai|app|jp|local|internal|example|test|de|uk|fr|cn|edu|gov)\b(?::\d{1,5})?|\blocalhost(?::\d{1,5})?\b",
    "trace": r"\b00-[\da-f]{32}-[\da-f]{16}-0[01]\b",
    "uuid": r"\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b",
    "hash": r"\b(?:[\da-f]{64}|[\da-f]{40}|[\da-f]{32})\b",
    "date": r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? \d{1,2} [a-z]{3} \d{4}\b"
    r"|\d{4}年\d{1,2}月\d{1,2}日",
    "duration": r"(?<![\w.-])\d+(?:\.\d+)? ?(?:ms|µs|us|ns|s|sec|secs|seconds?|minutes?|mins?"
    r"|hours?|h|days?)\b",
    "path": r"(?<![\w.])(?:/[\w.@+-]+){2,}/?|\b[a-z]:\\[\w\\.@+-]+",
    "hex": r"\b0x[\da-f]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[\da-f]{7,128}\b",
    "number": r"(?<![\w.-])-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?%?(?![\w])",
    "value": r"(?<==)(?:\"[^\"\n]*\"|'[^'\n]*'|true\b|false\b|none\b|null\b)",
    "text": r"“[^”\n]*”|「[^」\n]*」|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`",
}
VARIABLE = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, pattern in PARTS.items()), re.I
)
# A quoted name such as 'amount' tells causes apart; anything else in quotes is data.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What makes occurrences the same problem; everything else about them is a tag.

    `model` is only for the title: the model that the message names.
    """

    stage: str
    kind: str
    subject: str = ""
    message: str = ""
    model: str = ""

    @property
    def title(self) -> str:
        """The message with the model of this occurrence."""
        if not self.model:
            return self.message
        if isinstance(self.message, Sentence):
            return self.message.map(lambda text: text.replace(MODEL, self.model))
        return self.message.replace(MODEL, self.model)

    def fingerprint(self, agent: str) -> str:
        fields = (self.stage, self.kind, self.subject, self.message.lower(), agent)
        return sha256("\n".join(fields).encode(errors="replace")).hexdigest()


def normalize(text: str, inputs: Iterable[Any] = (), names: Iterable[str] = ()) -> str:
    """Return the start of a message without what differs between occurrences.

    `inputs` are what users or models put in, and `names` those of models.
    """
    if isinstance(text, Sentence):
        params = {
            name: normalize(str(param), inputs, names) for name, param in text.params.items()
        }
        return Sentence(text.template, **params)
    lines = [line.strip() for line in text[:MAX_READ_CHARS].splitlines() if line.strip()]
    head = lines[0] if lines else ""
    if head.startswith(TRACEBACK):
        head = lines[-1]
    for name in sorted({*names} - {""}, key=len, reverse=True):
        head = head.replace(name, MODEL)
    distinctive = {
        value
        for data in inputs
        for value in _strings(data)
        if len(value) >= MIN_INPUT_CHARS or (len(value) > 1 and not value.isascii())
    }
    for value in sorted(distinctive, key=len, reverse=True)[:MAX_INPUTS]:
        head = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", INPUT, head)
    head = mask(mask_secrets(head)).text
    return " ".join(VARIABLE.sub(_placeholder, head).split())[:MAX_TITLE_CHARS]


def clean_subject(text: str) -> str:
    """Return a tool's or a rule's name; a model can call a tool anything."""
    return " ".join(mask(mask_secrets(text[:MAX_READ_CHARS])).text.split())[:MAX_SUBJECT_CHARS]


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts in JSON data, however deep it is nested."""
    remaining = [value]
    while remaining:
        match remaining.pop():
            case str() as text:
                yield " ".join(text.split())
                yield from (line.strip() for line in text.splitlines())
            case dict() as items:
                remaining += items.values()
            case list() as items:
                remaining += items


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    text = match.group()
    if kind == "kept":
        return text
    if kind == "masked":
        return text.partition("›")[0] + "›"
    if text[1:-1] == MODEL:
        return MODEL
    if kind == "text":
        is_name = NAME.fullmatch(text[1:-1])
        return re.sub(r"\d+", "‹number›", text) if is_name else "‹text›"
    return f"‹{kind}›"
