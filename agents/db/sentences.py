"""Shows sentences of the engine in the reader's language."""

from django.utils.translation import gettext, ngettext

from agents.engine.sentences import CONTEXT_END, Sentence


def translate(text: str) -> str:
    """Return a sentence in the reader's language, and any other text as it is."""
    if not isinstance(text, Sentence):
        return text
    if text.forms:
        translated = ngettext(*text.forms)
    else:
        translated = gettext(text.template) if text.template else ""
        translated = translated.rpartition(CONTEXT_END)[2]
    if not text.params:
        return translated
    params = {
        name: translate(value) if isinstance(value, str) else value
        for name, value in text.params.items()
    }
    return translated % params
