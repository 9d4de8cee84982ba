"""Where the arguments of an HTTP tool go: into its query, its headers or its body.

It is the `http` part of a tool's definition, written by the import of OpenAPI documents:

    {"parameters": {"ids": {"in": "query", "name": "id[]", "style": "form", "explode": false}},
     "body": {"argument": "body", "type": "json"},
     "query_secrets": ["api_key"]}

Arguments in the path are named in braces in the endpoint, so they need no entry here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlencode

from agents.engine.sentences import Sentence as _

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
RESERVED_HEADERS = {
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept-encoding",
}
MAX_NAME_CHARS = 200
CONTENT_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain;charset=utf-8",
}
SEPARATORS = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
STYLES = {*SEPARATORS, "deepObject", "json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A request's query, headers and content, from its arguments."""

    query: list[tuple[str, str]]
    headers: dict[str, str]
    content: bytes | None = None
    content_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBinding:
    """Where each argument goes; without one, the tool's method decides."""

    is_given: bool = False
    locations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    body_argument: str = ""
    body_type: str = "json"
    query_secrets: tuple[str, ...] = ()

    @classmethod
    def read(cls, definition: Any, parameters: Mapping[str, Any]) -> Self:
        """Return the binding of a definition; raise ValueError if it is invalid."""
        if definition is None:
            return cls()
        if not isinstance(definition, Mapping):
            raise ValueError(_("The http part of the definition must be an object."))
        properties = parameters.get("properties", {})
        locations = definition.get("parameters", {})
        body = definition.get("body", {})
        secrets = definition.get("query_secrets", [])
        if not (isinstance(locations, Mapping) and isinstance(body, Mapping)):
            raise ValueError(_("The http part of the definition must be an object."))
        for argument, location in locations.items():
            _check_location(argument, location, properties)
        if body and (
            body.get("argument") not in properties
            or body.get("type", "json") not in CONTENT_TYPES
        ):
            raise ValueError(_("The body needs an argument, and a type: json, form or text."))
        if not isinstance(secrets, list) or not all(isinstance(name, str) for name in secrets):
            raise ValueError(_("query_secrets must be a list of names."))
        return cls(
            is_given=True,
            locations=dict(locations),
            body_argument=str(body.get("argument", "")),
            body_type=str(body.get("type", "json")),
            query_secrets=tuple(secrets),
        )

    def take_query_secrets(self, headers: dict[str, str]) -> dict[str, str]:
        """Remove and return the secrets that are sent in the query instead of a header."""
        return {name: headers.pop(name) for name in self.query_secrets if name in headers}

    def place(self, arguments: Mapping[str, Any]) -> Placement:
        """Return the arguments where they belong; raise ValueError if one doesn't fit."""
        query: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        content = None
        content_type = ""
        for argument, value in arguments.items():
            location = self.locations.get(argument, {"in": "query", "name": argument})
            if argument == self.body_argument:
                content = self._encode_body(value)
                content_type = CONTENT_TYPES[self.body_type]
            elif value is None:
                continue
            elif location["in"] == "header":
                text = ",".join(map(to_text, value if isinstance(value, list) else [value]))
                if not (text.isascii() and text.isprintable()):
                    raise ValueError(
                        _(
                            "The value of %(name)s can only contain printable ASCII "
                            "characters.",
                            name=repr(argument),
                        )
                    )
                headers[location["name"]] = text
            else:
                query += _query_pairs(location, value)
        return Placement(
            query=query, headers=headers, content=content, content_type=content_type
        )

    def _encode_body(self, value: Any) -> bytes:
        if self.body_type == "text":
            return to_text(value).encode(errors="replace")
        if self.body_type == "json":
            return to_json(value)
        if not isinstance(value, Mapping):
            raise ValueError(_("%(name)s must be an object.", name=repr(self.body_argument)))
        pairs = [pair for n, v in value.items() for pair in _query_pairs({"name": n}, v)]
        return urlencode(pairs).encode()


def _check_location(argument: str, location: Any, properties: Mapping[str, Any]) -> None:
    if argument not in properties:
        raise ValueError(
            _("The http part uses %(name)s, which isn't a parameter.", name=repr(argument))
        )
    name = location.get("name") if isinstance(location, Mapping) else None
    if not isinstance(name, str) or not name or len(name) > MAX_NAME_CHARS:
        raise ValueError(_("The http part of %(name)s needs a name.", name=repr(argument)))
    if location.get("in") not in {"query", "header", "path"} or (
        location.get("style", "form") not in STYLES
    ):
        raise ValueError(
            _(
                "%(name)s can only be sent in the path, the query or a header.",
                name=repr(argument),
            )
        )
    if location["in"] == "header" and (
        not HEADER_NAME.fullmatch(name) or name.lower() in RESERVED_HEADERS
    ):
        raise ValueError(_("The header %(name)s is set automatically.", name=repr(name)))


def _query_pairs(location: Mapping[str, Any], value: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a value in the parameter's style."""
    name = location["name"]
    style = location.get("style", "form")
    is_split = location.get("explode", style == "form")
    if style == "json":
        yield name, to_text(value) if isinstance(value, str) else to_json(value).decode()
    elif isinstance(value, list):
        items = [to_text(item) for item in value if item is not None]
        if is_split:
            yield from ((name, item) for item in items)
        elif items:
            yield name, SEPARATORS.get(style, ",").join(items)
    elif isinstance(value, Mapping) and style == "deepObject":
        for key, items in value.items():
            for item in items if isinstance(items, list) else [items]:
                yield f"{name}[{key}]", to_text(item)
    elif isinstance(value, Mapping) and is_split and style == "form":
        for key, item in value.items():
            yield from _query_pairs(
                {"name": key}, item if not isinstance(item, Mapping) else to_text(item)
            )
    elif isinstance(value, Mapping):
        flat = [to_text(item) for pair in value.items() for item in pair]
        yield name, SEPARATORS.get(style, ",").join(flat)
    elif value is not None:
        yield name, to_text(value)


def to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def to_json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(
            _("The arguments contain a value that can't be written as JSON.")
        ) from error
