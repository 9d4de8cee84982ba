"""Validates the definition of an HTTP tool: function, parameters, method and headers."""

import re
from collections.abc import Mapping
from typing import Any

from agents.engine import json_schema
from agents.engine.errors import BadSchema
from agents.engine.sentences import Sentence as _

from .binding import HEADER_NAME, RESERVED_HEADERS

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# A schema without these keywords that doesn't mention other arguments accepts none.
OPEN_KEYWORDS = {"additionalProperties", "$ref", "allOf", "anyOf", "oneOf", "patternProperties"}


def parse_function(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the function, also if it is wrapped as `{"type": "function", …}`."""
    function = definition.get("function", definition)
    if not isinstance(function, Mapping):
        raise ValueError(_("The function definition must be an object."))
    if not FUNCTION_NAME.fullmatch(str(function.get("name") or "")):
        raise ValueError(
            _(
                "Invalid function name %(name)s. Use 1–64 letters, digits, '_' or '-'.",
                name=repr(function.get("name")),
            )
        )
    if not isinstance(function.get("description") or "", str):
        raise ValueError(_("The function description must be text."))
    return function


def parse_parameters(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters", {})
    if schema in (None, {}):
        schema = {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise ValueError(_("The function parameters must be a JSON Schema of type object."))
    try:
        usable = json_schema.validate_schema(schema)
    except BadSchema as error:
        raise ValueError(
            _("The function parameters aren't valid: %(why)s", why=error)
        ) from error
    if not usable.keys() & OPEN_KEYWORDS:
        usable["additionalProperties"] = False
    return usable


def validate_method(method: str) -> str:
    if method not in METHODS:
        raise ValueError(
            _(
                "The method must be one of %(names)s, not %(method)s.",
                names=", ".join(METHODS),
                method=repr(method),
            )
        )
    return method


def validate_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers; error messages never contain a value, which may be a secret."""
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise ValueError(_("%(name)s isn't a valid header name.", name=repr(name)))
        if name.lower() in RESERVED_HEADERS:
            raise ValueError(_("The header %(name)s is set automatically.", name=repr(name)))
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            raise ValueError(
                _(
                    "The value of %(name)s can only contain printable ASCII characters.",
                    name=repr(name),
                )
            )
    return {name: value.strip() for name, value in headers.items()}
