"""The form of a question that a tool asks: fields read from an MCP elicitation schema.

The schema is a flat object; it comes from a server, so nothing in it is trusted.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal
from urllib.parse import urlsplit

from .call_context import Question, QuestionUnavailable
from .sentences import Sentence as _

QUESTION_SECONDS = 600.0
MAX_FIELDS = 50
MAX_OPTIONS = 200
MAX_MESSAGE_CHARS = 4_000
MAX_QUESTION_CHARS = 15_000
MAX_URL_CHARS = 2_000
MAX_LABEL_CHARS = 300
MAX_TEXT_CHARS = 10_000
OWN_PAGE = re.compile(r"(?:/[a-z0-9-]+)+/")
FORMATS = {"email", "uri", "date", "date-time"}

FieldKind = Literal["text", "number", "integer", "boolean", "choice", "choices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a question's form."""

    name: str
    kind: FieldKind
    label: str
    description: str = ""
    is_required: bool = False
    default: Any = None
    format: str = ""  # of a text: one of FORMATS, or empty
    options: tuple[tuple[str, str], ...] = ()  # of a choice: values and labels
    least: float | None = None  # length of a text, size of a number, or number of choices
    most: float | None = None


def read_fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return the schema's fields; raise QuestionUnavailable if it isn't a flat form."""
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
        raise QuestionUnavailable(_("The form's schema isn't an object with properties."))
    if len(properties) > MAX_FIELDS:
        raise QuestionUnavailable(_("The form has more than %(most)s fields.", most=MAX_FIELDS))
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    return tuple(_read_field(name, field, name in needed) for name, field in properties.items())


def check_question(question: Question) -> None:
    """Raise QuestionUnavailable if the question can't be shown as it is."""
    if not question.message.strip():
        raise QuestionUnavailable(_("The question has no text."))
    if len(question.message) > MAX_MESSAGE_CHARS:
        raise QuestionUnavailable(
            _("The question is longer than %(most)s characters.", most=f"{MAX_MESSAGE_CHARS:,}")
        )
    if question.url:
        if not is_own_page(question.url):
            host(question.url)
    elif len(json.dumps(dict(question.schema), default=str)) > MAX_QUESTION_CHARS:
        raise QuestionUnavailable(_("The form is too large."))
    else:
        read_fields(question.schema)


def is_own_page(url: str) -> bool:
    """Whether it is a page of the product. Servers can't name one: theirs have a host."""
    return bool(OWN_PAGE.fullmatch(url))


def host(url: str) -> str:
    """Return the host as it is looked up, e.g. xn--…; raise QuestionUnavailable.

    Letters of other alphabets look like ours, so the host is never displayed in them alone.
    """
    if len(url) > MAX_URL_CHARS or not url.isprintable() or " " in url:
        raise QuestionUnavailable(_("The page's URL isn't valid."))
    try:
        address = urlsplit(url)
        hostname = address.hostname or ""
        name = hostname.encode("idna").decode()
        port = f":{address.port}" if address.port else ""
        # Browsers map some letters differently: wordpreß.com isn't wordpress.com there.
        is_exact = hostname.isascii() or name.encode().decode("idna") == hostname
    except ValueError as error:
        raise QuestionUnavailable(_("The page's URL isn't valid.")) from error
    if not is_exact or "%" in name:
        raise QuestionUnavailable(_("The page's URL isn't valid."))
    if address.scheme != "https" or not name or "@" in address.netloc or "\\" in url:
        raise QuestionUnavailable(_("The page must have an https URL without a username."))
    return name + port


def _read_field(name: str, schema: Any, is_required: bool) -> FormField:
    if not isinstance(schema, Mapping) or len(name) > MAX_LABEL_CHARS:
        raise QuestionUnavailable(
            _("The field %(name)s has no usable schema.", name=repr(name[:50]))
        )
    common: dict[str, Any] = {
        "name": name,
        "label": _text(schema.get("title")) or name,
        "description": _text(schema.get("description")),
        "is_required": is_required,
        "default": schema.get("default"),
    }
    match schema.get("type", "string"):
        case "string" if (options := _options(schema)) is not None:
            return FormField(kind="choice", options=options, **common)
        case "string":
            format = schema.get("format")
            return FormField(
                kind="text",
                format=format if isinstance(format, str) and format in FORMATS else "",
                least=_number(schema.get("minLength")),
                most=_number(schema.get("maxLength")),
                **common,
            )
        case "number" | "integer" as kind:
            return FormField(
                kind=kind,
                least=_number(schema.get("minimum")),
                most=_number(schema.get("maximum")),
                **common,
            )
        case "boolean":
            return FormField(kind="boolean", **common)
        case "array":
            items = schema.get("items")
            options = _options(items) if isinstance(items, Mapping) else None
            if options is None:
                raise QuestionUnavailable(
                    _("The field %(name)s is a list without choices.", name=repr(name))
                )
            return FormField(
                kind="choices",
                options=options,
                least=_number(schema.get("minItems")),
                most=_number(schema.get("maxItems")),
                **common,
            )
    raise QuestionUnavailable(
        _("The field %(name)s has a type that forms don't support.", name=repr(name))
    )


def _options(schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the values and labels of a choice, in any of its notations, or None."""
    for keyword in ("oneOf", "anyOf"):
        if isinstance(choices := schema.get(keyword), list):
            pairs = [
                (str(choice["const"]), _text(choice.get("title")) or str(choice["const"]))
                for choice in choices
                if isinstance(choice, Mapping) and "const" in choice
            ]
            return _check_options(pairs)
    values = schema.get("enum")
    if not isinstance(values, list):
        return None
    names = schema.get("enumNames")
    has_names = isinstance(names, list) and len(names) == len(values)
    labels: Sequence[Any] = names if has_names and isinstance(names, list) else values
    titled = zip(map(str, values), labels, strict=True)
    return _check_options([(value, _text(label) or value) for value, label in titled])


def _check_options(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if not pairs or len(pairs) > MAX_OPTIONS:
        raise QuestionUnavailable(_("A choice needs 1 to %(most)s options.", most=MAX_OPTIONS))
    return tuple(pairs)


def _text(value: Any) -> str:
    return value[:MAX_LABEL_CHARS] if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return value if is_number and isfinite(value) else None
    except OverflowError:  # an integer beyond every float
        return None
