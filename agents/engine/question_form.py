"""The form of a question that a tool asks: fields read from an MCP elicitation schema.

The schema is a flat object; it comes from a server, so nothing in it is trusted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal
from urllib.parse import urlsplit

from .call_context import Question, QuestionUnavailable

QUESTION_SECONDS = 600.0
MAX_FIELDS = 50
MAX_OPTIONS = 200
MAX_MESSAGE_CHARS = 4_000
MAX_QUESTION_CHARS = 15_000
MAX_URL_CHARS = 2_000
MAX_LABEL_CHARS = 300
MAX_TEXT_CHARS = 10_000
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
        raise QuestionUnavailable("The form's schema isn't an object with properties.")
    if len(properties) > MAX_FIELDS:
        raise QuestionUnavailable(f"The form has more than {MAX_FIELDS} fields.")
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    return tuple(_read_field(name, about, name in needed) for name, about in properties.items())


def check_question(question: Question) -> None:
    """Raise QuestionUnavailable if the question can't be shown as it is."""
    if not question.message.strip():
        raise QuestionUnavailable("The question has no text.")
    if len(question.message) > MAX_MESSAGE_CHARS:
        raise QuestionUnavailable(
            f"The question is longer than {MAX_MESSAGE_CHARS:,} characters."
        )
    if question.url:
        host(question.url)
    elif len(json.dumps(dict(question.schema), default=str)) > MAX_QUESTION_CHARS:
        raise QuestionUnavailable("The form is too large.")
    else:
        read_fields(question.schema)


def host(url: str) -> str:
    """Return the host as it is looked up, e.g. xn--…; raise QuestionUnavailable.

    Letters of other alphabets look like ours, so the host is never displayed in them alone.
    """
    if len(url) > MAX_URL_CHARS or not url.isprintable() or " " in url:
        raise QuestionUnavailable("The address of the page isn't valid.")
    try:
        parts = urlsplit(url)
        written = parts.hostname or ""
        name = written.encode("idna").decode()
        port = f":{parts.port}" if parts.port else ""
        # Browsers map some letters differently: wordpreß.com isn't wordpress.com there.
        is_exact = written.isascii() or name.encode().decode("idna") == written
    except ValueError as error:
        raise QuestionUnavailable("The address of the page isn't valid.") from error
    if not is_exact or "%" in name:
        raise QuestionUnavailable("The address of the page isn't valid.")
    if parts.scheme != "https" or not name or "@" in parts.netloc or "\\" in url:
        raise QuestionUnavailable("The page must have an https address without a user name.")
    return name + port


def _read_field(name: str, about: Any, is_required: bool) -> FormField:
    if not isinstance(about, Mapping) or len(name) > MAX_LABEL_CHARS:
        raise QuestionUnavailable(f"The field {name[:50]!r} has no usable schema.")
    common: dict[str, Any] = {
        "name": name,
        "label": _text(about.get("title")) or name,
        "description": _text(about.get("description")),
        "is_required": is_required,
        "default": about.get("default"),
    }
    match about.get("type", "string"):
        case "string" if (options := _options(about)) is not None:
            return FormField(kind="choice", options=options, **common)
        case "string":
            format = about.get("format")
            return FormField(
                kind="text",
                format=format if isinstance(format, str) and format in FORMATS else "",
                least=_number(about.get("minLength")),
                most=_number(about.get("maxLength")),
                **common,
            )
        case "number" | "integer" as kind:
            bounds = _number(about.get("minimum")), _number(about.get("maximum"))
            return FormField(kind=kind, least=bounds[0], most=bounds[1], **common)
        case "boolean":
            return FormField(kind="boolean", **common)
        case "array":
            return _read_choices(about, common)
    raise QuestionUnavailable(f"The field {name!r} has a type that forms don't have.")


def _read_choices(about: Mapping[str, Any], common: dict[str, Any]) -> FormField:
    items = about.get("items")
    options = _options(items) if isinstance(items, Mapping) else None
    if options is None:
        raise QuestionUnavailable(f"The field {common['name']!r} is a list without choices.")
    return FormField(
        kind="choices",
        options=options,
        least=_number(about.get("minItems")),
        most=_number(about.get("maxItems")),
        **common,
    )


def _options(about: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the values and labels of a choice, in any of its notations, or None."""
    for keyword in ("oneOf", "anyOf"):
        if isinstance(choices := about.get(keyword), list):
            pairs = [
                (str(choice["const"]), _text(choice.get("title")) or str(choice["const"]))
                for choice in choices
                if isinstance(choice, Mapping) and "const" in choice
            ]
            return _check_options(pairs)
    values = about.get("enum")
    if not isinstance(values, list):
        return None
    names = about.get("enumNames")
    has_names = isinstance(names, list) and len(names) == len(values)
    labels: Sequence[Any] = names if has_names and isinstance(names, list) else values
    titled = zip(map(str, values), labels, strict=True)
    return _check_options([(value, _text(label) or value) for value, label in titled])


def _check_options(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if not pairs or len(pairs) > MAX_OPTIONS:
        raise QuestionUnavailable(f"A choice needs 1 to {MAX_OPTIONS} options.")
    return tuple(pairs)


def _text(value: Any) -> str:
    return value[:MAX_LABEL_CHARS] if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return value if is_number and isfinite(value) else None
    except OverflowError:  # an integer beyond every float
        return None
