"""The functions of expressions, one line each, for the editor."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents.engine.expressions import FUNCTIONS, OPERATORS

FUNCTION_HELP: dict[str, str | Promise] = {
    "len": _("Number of characters in a text, or of items in a list or mapping."),
    "lower": _("Text in lowercase."),
    "upper": _("Text in uppercase."),
    "contains": _(
        "Whether a text contains these words, a list this item, or a mapping this key."
    ),
    "number": _("Text converted to a number, e.g. a user's answer."),
    "text": _("Any value converted to text."),
    "sum": _("The sum of a list of numbers."),
    "min": _("The smallest of several values, or of a list."),
    "max": _("The largest of several values, or of a list."),
    "round": _("Number rounded to this many decimal places."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEntry:
    name: str
    about: str | Promise
    example: str
    gives: str


def functions() -> Iterator[FunctionEntry]:
    for name, function in FUNCTIONS.items():
        yield FunctionEntry(
            name=name, about=FUNCTION_HELP[name], example=function.example, gives=function.gives
        )


def operators() -> str:
    return " ".join([*OPERATORS, "and", "or", "not"])
