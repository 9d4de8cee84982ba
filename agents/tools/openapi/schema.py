"""Schemas of an OpenAPI document, in a form that models and our validator accept.

References are resolved in place. Cycles, depth and size are bounded: what is beyond them
accepts any value, and the API itself rejects what is wrong.
"""

from collections.abc import Mapping
from typing import Any

import re2

from agents.engine.text import shorten_line

MAX_DEPTH = 8
MAX_NODES = 400
MAX_REFERENCES = 20
MAX_LOOKUPS = 10_000_000  # a few seconds
MAX_DESCRIPTION_CHARS = 300
MAX_ENUM_VALUES = 200

TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
NUMBER_WORDS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}
MISSING: Any = object()


class UnresolvedReference(ValueError):
    """The reference points outside of this document, or to nothing."""


class TooComplex(ValueError):
    """Raised when reading the document takes too long."""


def shorten(text: Any, limit: int = MAX_DESCRIPTION_CHARS) -> str:
    """Return the text in one line, cut at a word."""
    return shorten_line(text, limit) if isinstance(text, str) else ""


class References:
    """Finds what a `$ref` points to in the document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._left = MAX_LOOKUPS

    def resolve(self, value: Any) -> Any:
        """Return a value behind its references; raise UnresolvedReference."""
        self._left -= 1
        if self._left < 0:
            raise TooComplex
        for _ in range(MAX_REFERENCES):
            if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
                return value
            value = self.find(value["$ref"])
        raise UnresolvedReference("…")

    def find(self, ref: str) -> Any:
        if not ref.startswith("#/"):
            raise UnresolvedReference(ref)
        found: Any = self._document
        for part in ref.removeprefix("#/").split("/"):
            key = _unescape(part)
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                raise UnresolvedReference(ref)
        return found


def _unescape(part: str) -> str:
    return part.replace("%7B", "{").replace("%7D", "}").replace("~1", "/").replace("~0", "~")


class SchemaConverter:
    """Converts the schemas of one operation, within one budget."""

    def __init__(self, references: References, max_depth: int = MAX_DEPTH) -> None:
        self._references = references
        self._max_depth = max_depth
        self._left = MAX_NODES

    @property
    def is_exhausted(self) -> bool:
        """Whether the budget was too small for all parts."""
        return self._left < 0

    def convert(self, schema: Any) -> dict[str, Any]:
        return self._convert(schema, (), 0)

    def _convert(self, schema: Any, seen: tuple[str, ...], depth: int) -> dict[str, Any]:
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > self._max_depth or self._left < 0:
            return {}
        if isinstance(ref := schema.get("$ref"), str):
            return self._convert_reference(ref, schema, seen, depth)
        result = {**self._simple_words(schema), **self._nested_words(schema, seen, depth)}
        result = _merge_all_of(result)
        if schema.get("nullable") is True:
            result = _with_null(result)
        return result

    def _convert_reference(
        self, ref: str, schema: Mapping[str, Any], seen: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        if ref in seen:  # a tree or a list of itself
            return {}
        try:
            found = self._references.find(ref)
        except UnresolvedReference:
            return {}
        result = self._convert(found, (*seen, ref), depth + 1)
        if note := shorten(schema.get("description")):
            result = {**result, "description": note}
        return _with_null(result) if schema.get("nullable") is True else result

    def _simple_words(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if kind := _types(schema.get("type")):
            result["type"] = kind
        elif isinstance(schema.get("properties"), Mapping):
            result["type"] = "object"
        if note := shorten(schema.get("description") or schema.get("title")):
            result["description"] = note
        if isinstance(choices := schema.get("enum"), list) and choices:
            result["enum"] = choices[:MAX_ENUM_VALUES]
        for word in ("const", "default"):
            if word in schema and _is_plain(schema[word]):
                result[word] = schema[word]
        for word in NUMBER_WORDS & {*schema}:
            if isinstance(schema[word], int | float) and not isinstance(schema[word], bool):
                result[word] = schema[word]
        _add_exclusive_limits(schema, result)
        if isinstance(form := schema.get("format"), str) and form.isprintable():
            result["format"] = form[:40]
        if _is_pattern(pattern := schema.get("pattern")):
            result["pattern"] = pattern
        if schema.get("uniqueItems") is True:
            result["uniqueItems"] = True
        return result

    def _nested_words(
        self, schema: Mapping[str, Any], seen: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        def inside(part: Any) -> dict[str, Any]:
            return self._convert(part, seen, depth + 1)

        result: dict[str, Any] = {}
        if isinstance(parts := schema.get("properties"), Mapping):
            written = {str(k): v for k, v in parts.items() if not self._is_read_only(v)}
            result["properties"] = {name: inside(part) for name, part in written.items()}
            required = schema.get("required")
            listed = required if isinstance(required, list) else []
            names = [name for name in listed if isinstance(name, str) and name in written]
            if names:
                result["required"] = list(dict.fromkeys(names))
        if "items" in schema:
            result["items"] = inside(schema["items"])
        elif result.get("type") == "array" or schema.get("type") == "array":
            result["items"] = {}
        extra = schema.get("additionalProperties")
        if isinstance(extra, bool):
            result["additionalProperties"] = extra
        elif isinstance(extra, Mapping) and extra:
            result["additionalProperties"] = inside(extra)
        for word, ours in (("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")):
            parts = schema.get(word)
            if isinstance(parts, list) and parts and ours not in result:
                # Not every provider accepts oneOf; anyOf leaves the choice to the API.
                result[ours] = [inside(part) for part in parts]
        return result

    def _is_read_only(self, part: Any) -> bool:
        """Whether only the API sets it, so that a request doesn't contain it."""
        try:
            found = self._references.resolve(part)
        except UnresolvedReference:
            return False
        return isinstance(found, Mapping) and found.get("readOnly") is True


def _types(given: Any) -> str | list[str]:
    if isinstance(given, list):
        known = [kind for kind in given if isinstance(kind, str) and kind in TYPES]
        return known[0] if len(known) == 1 else known
    return given if isinstance(given, str) and given in TYPES else ""


def _add_exclusive_limits(schema: Mapping[str, Any], result: dict[str, Any]) -> None:
    """Convert the flags of OpenAPI 3.0 to numbers."""
    for flag, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(flag) is True and limit in result:
            result[flag] = result.pop(limit)


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "enum" in schema and None not in schema["enum"]:
        schema = {**schema, "enum": [*schema["enum"], None]}
    kind = schema.get("type")
    if isinstance(kind, str):
        return {**schema, "type": [kind, "null"]}
    if isinstance(kind, list):
        return {**schema, "type": list(dict.fromkeys([*kind, "null"]))}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "allOf" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def _merge_all_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return one object instead of several that must all match, if they are plain objects."""
    subschemas = schema.get("allOf")
    if not subschemas:
        return schema
    other_keywords = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
    every = [*subschemas, other_keywords]
    if len(subschemas) == 1 and not {"type", "properties", "anyOf"} & {*other_keywords}:
        return {**subschemas[0], **other_keywords}
    plain_keywords = {"type", "properties", "required", "description", "additionalProperties"}
    if not all(
        {*subschema} <= plain_keywords and subschema.get("type", "object") == "object"
        for subschema in every
    ):
        return schema
    merged: dict[str, Any] = {"type": "object", "properties": {}}
    required: list[str] = []
    for subschema in every:
        merged["properties"] |= subschema.get("properties", {})
        required += subschema.get("required", [])
        merged |= {key: subschema[key] for key in ("description",) if key in subschema}
    if required:
        merged["required"] = list(dict.fromkeys(required))
    return merged


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _is_pattern(pattern: Any) -> bool:
    """Whether RE2 can check it; others are left to the API."""
    if not isinstance(pattern, str) or len(pattern) > 500:
        return False
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        return False
    return True
