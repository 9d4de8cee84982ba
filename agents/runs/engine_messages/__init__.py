"""Translates the engine's saved messages into the reader's language.

A message is matched with `templates`, which have placeholders, or with a fixed sentence.
"""

import re

from django.utils.translation import gettext

from .document_templates import DOCUMENT_SENTENCES, DOCUMENT_TEMPLATES
from .templates import EXACT_SENTENCES, TEMPLATES

MAX_TRANSLATED_CHARS = 1_000
# Text from a provider, a tool, a user or an expression may look like one of our sentences.
FOREIGN_PLACES = frozenset(
    {"words", "answer", "output", "query", "condition", "command", "tables", "description"}
)


def translate(sentence: str) -> str:
    """Return the engine's sentence in the reader's language; unknown ones as they are."""
    if not sentence:
        return ""
    is_exact = sentence in EXACT_SENTENCES or sentence in DOCUMENT_SENTENCES
    for message in (
        () if is_exact or len(sentence) > MAX_TRANSLATED_CHARS else MESSAGE_TEMPLATES
    ):
        if match := message.match(sentence):
            values = {
                name: text if name in FOREIGN_PLACES else translate(text)
                for name, text in match.groupdict().items()
            }
            return gettext(message.template) % values
    return gettext(sentence)


class MessageTemplate:
    """A template, and the pattern that recognizes sentences made from it."""

    def __init__(self, template: str) -> None:
        parts = re.split(r"%\((\w+)\)s", template)
        self.template = template
        self.first, *self.between, self.last = [
            literal.replace("%%", "%") for literal in parts[::2]
        ]
        groups = [f"(?P<{name}>.+?)" for name in parts[1::2]]
        literals = [re.escape(literal) for literal in (self.first, *self.between, self.last)]
        pairs = zip(literals, [*groups, ""], strict=True)
        self.pattern = re.compile("".join(literal + group for literal, group in pairs), re.S)

    def match(self, sentence: str) -> re.Match[str] | None:
        """Compare the fixed text first: the pattern alone backtracks over every space."""
        is_candidate = sentence.startswith(self.first) and sentence.endswith(self.last)
        if not is_candidate or any(literal not in sentence for literal in self.between):
            return None
        return self.pattern.fullmatch(sentence)


MESSAGE_TEMPLATES = [
    MessageTemplate(template) for template in (*DOCUMENT_TEMPLATES, *TEMPLATES)
]
