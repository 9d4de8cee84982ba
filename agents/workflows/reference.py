"""The functions of expressions as the editor explains them: one line for each there is."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents.engine.expressions.operators import FUNCTIONS, OPERATORS

ABOUT: dict[str, str | Promise] = {
    "len": _("How many characters a text has, or items a list or a mapping."),
    "lower": _("Text in lower case."),
    "upper": _("Text in upper case."),
    "contains": _("Whether a text has these words, a list this item or a mapping this name."),
    "number": _("Text as a number, such as what a person typed."),
    "text": _("Any value as text."),
    "sum": _("The sum of a list of numbers."),
    "min": _("The smallest of several values, or of a list."),
    "max": _("The largest of several values, or of a list."),
    "round": _("A number rounded, to as many decimals as you say."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    about: str | Promise
    example: str
    gives: str


def functions() -> Iterator[Entry]:
    for name, function in FUNCTIONS.items():
        yield Entry(
            name=name, about=ABOUT[name], example=function.example, gives=function.gives
        )


def signs() -> str:
    return " ".join([*OPERATORS, "and", "or", "not"])
