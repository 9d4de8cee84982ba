"""Sentences of the engine that can be shown in the reader's language.

    raise ModelError(_("The provider of %(model)s rejected the API key.", model=name))

A sentence is a text in English that remembers its template and its parameters. Rows keep
those (`pack`), and a page translates the template; what a provider, a tool or a user wrote is a
parameter or a plain text and is never translated.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

# Begins a sentence that is kept in a row. No other text has this control character: it is
# removed from what comes from outside when that is saved.
MARK = "\x1e"
CONTEXT_END = "\x04"  # between the context and the text, as in gettext's catalogs
ERROR_TEMPLATE = "Error: %(error)s"


class Forms(NamedTuple):
    """The templates for one and for several, and the number that decides."""

    singular: str
    plural: str
    number: int


class Sentence(str):
    """A text in English with its template and parameters, imported as `_`."""

    __slots__ = ("forms", "params", "template")

    template: str
    params: dict[str, Any]
    forms: "Forms | None"  # of a template that depends on a number

    def __new__(cls, template: str, /, **params: Any) -> Self:
        """Fill the template, which needs `%%` for a percent sign only if it has parameters."""
        values = {
            name: value if isinstance(value, (str, int, float)) else str(value)
            for name, value in params.items()
        }
        text = super().__new__(cls, template % values if values else template)
        text.template = template
        text.params = values
        text.forms = None
        return text

    def __str__(self) -> str:
        """Return itself, so that the text of an error is the sentence it was raised with."""
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.params

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self.forms = state[1]["forms"]

    def fill(self, **params: Any) -> "Sentence":
        """Return the sentence with parameters, if this is only its template so far."""
        filled = Sentence(self.template, **params)
        filled.forms = self.forms
        return filled

    def map(self, change: Callable[[str], str]) -> str:
        """Return it with changed texts, such as masked; plain if the template changes too."""
        text = change(self[:])
        params = {
            name: value.map(change)
            if isinstance(value, Sentence)
            else change(value)
            if isinstance(value, str)
            else value
            for name, value in self.params.items()
        }
        mapped = self.fill(**params)
        return mapped if mapped == text else text


def plural_sentence(singular: str, plural: str, number: int) -> Sentence:
    """Return the template for this number; import it as `ngettext` to mark templates."""
    sentence = Sentence(singular if number == 1 else plural)
    sentence.forms = Forms(singular, plural, number)
    return sentence


def context_sentence(context: str, text: str) -> Sentence:
    """Return a text without parameters that has another meaning elsewhere, as `pgettext`."""
    sentence = Sentence(text)
    sentence.template = f"{context}{CONTEXT_END}{text}"
    return sentence


def pack(value: Any) -> Any:
    """Return what a row keeps: sentences as marked texts with template and parameters."""
    match value:
        case Sentence():
            fields = {"message": value.template, "params": pack(value.params)}
            if value.forms:
                fields["forms"] = value.forms
            return MARK + json.dumps(fields, ensure_ascii=False)
        case str() if MARK in value:
            return value.replace(MARK, "")
        case dict():
            return {name: pack(item) for name, item in value.items()}
        case list() | tuple():
            return [pack(item) for item in value]
    return value


def unpack(value: Any) -> Any:
    """Return what was packed."""
    match value:
        case str() if value.startswith(MARK):
            fields = json.loads(value[1:])
            context, _end, template = fields["message"].rpartition(CONTEXT_END)
            if context:
                return context_sentence(context, template)
            sentence = Sentence(template, **unpack(fields["params"]))
            sentence.forms = Forms(*fields["forms"]) if "forms" in fields else None
            return sentence
        case dict():
            return {name: unpack(item) for name, item in value.items()}
        case list():
            return [unpack(item) for item in value]
    return value


def as_error(sentence: str) -> str:
    """Return a tool's error as the model reads it."""
    if isinstance(sentence, Sentence):
        return Sentence(ERROR_TEMPLATE, error=sentence)
    return f"Error: {sentence}"


def without_error_prefix(text: str) -> str:
    """Return the error that the model read."""
    if not isinstance(text, Sentence):
        return text.removeprefix("Error: ")
    error: str = text.params["error"] if text.template == ERROR_TEMPLATE else text
    return error


def joined(separator: str, texts: Iterable[str]) -> str:
    """Return several sentences as one."""
    params = {f"text{index}": text for index, text in enumerate(texts)}
    if len(params) < 2:
        return params.get("text0", "")
    template = separator.replace("%", "%%").join(f"%({name})s" for name in params)
    return Sentence(template, **params)
