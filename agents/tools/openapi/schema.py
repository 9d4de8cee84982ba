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
NUMBER_KEYWORDS = {
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
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
        self._lookups = 0

    def resolve(self, value: Any) -> Any:
        """Return a value behind its references; raise UnresolvedReference."""
        self._lookups += 1
        if self._lookups > MAX_LOOKUPS:
            raise TooComplex
        for _ in range(MAX_REFERENCES):
            if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
                return value
            value = self.find(value["$ref"])
        raise UnresolvedReference("…")

    def find(self, ref: str) -> Any:
        if not ref.startswith("#/"):
            raise UnresolvedReference(ref)
        target: Any = self._document
        for segment in ref.removeprefix("#/").split("/"):
            key = segment.replace("%7B", "{").replace("%7D", "}")
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
                target = target[int(key)]
            elif isinstance(target, Mapping) and key in target:
                target = target[key]
            else:
                raise UnresolvedReference(ref)
        return target


class SchemaConverter:
    """Converts the schemas of one operation, within one budget."""

    def __init__(self, references: References, max_depth: int = MAX_DEPTH) -> None:
        self._references = references
        self._max_depth = max_depth
        self._nodes = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the budget was too small for all nodes."""
        return self._nodes > MAX_NODES

    def convert(self, schema: Any) -> dict[str, Any]:
        return self._convert(schema, (), 0)

    def _convert(self, schema: Any, refs: tuple[str, ...], depth: int) -> dict[str, Any]:
        """Convert a schema that these references led to."""
        self._nodes += 1
        if not isinstance(schema, Mapping) or depth > self._max_depth or self.is_exhausted:
            return {}
        if isinstance(ref := schema.get("$ref"), str):
            if ref in refs:  # a tree or a list of itself
                return {}
            try:
                target = self._references.find(ref)
            except UnresolvedReference:
                return {}
            result = self._convert(target, (*refs, ref), depth + 1)
            if note := shorten(schema.get("description")):
                result = {**result, "description": note}
        else:
            nested = self._nested_keywords(schema, refs, depth)
            result = _merge_all_of({**_simple_keywords(schema), **nested})
        return _with_null(result) if schema.get("nullable") is True else result

    def _nested_keywords(
        self, schema: Mapping[str, Any], refs: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        def convert(subschema: Any) -> dict[str, Any]:
            return self._convert(subschema, refs, depth + 1)

        result: dict[str, Any] = {}
        if isinstance(properties := schema.get("properties"), Mapping):
            writable = {str(k): v for k, v in properties.items() if not self._is_read_only(v)}
            result["properties"] = {name: convert(item) for name, item in writable.items()}
            required = schema.get("required")
            listed = required if isinstance(required, list) else []
            names = [name for name in listed if isinstance(name, str) and name in writable]
            if names:
                result["required"] = list(dict.fromkeys(names))
        if "items" in schema:
            result["items"] = convert(schema["items"])
        elif schema.get("type") == "array":
            result["items"] = {}
        extra = schema.get("additionalProperties")
        if isinstance(extra, bool):
            result["additionalProperties"] = extra
        elif isinstance(extra, Mapping) and extra:
            result["additionalProperties"] = convert(extra)
        for keyword, ours in (("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")):
            subschemas = schema.get(keyword)
            if isinstance(subschemas, list) and subschemas and ours not in result:
                # Not every provider accepts oneOf; anyOf leaves the choice to the API.
                result[ours] = [convert(subschema) for subschema in subschemas]
        return result

    def _is_read_only(self, schema: Any) -> bool:
        """Whether only the API sets it, so that a request doesn't contain it."""
        try:
            target = self._references.resolve(schema)
        except UnresolvedReference:
            return False
        return isinstance(target, Mapping) and target.get("readOnly") is True


def _simple_keywords(schema: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    kind = schema.get("type")
    kinds = [k for k in (kind if isinstance(kind, list) else [kind]) if isinstance(k, str)]
    kinds = [k for k in kinds if k in TYPES]
    if kinds:
        result["type"] = kinds[0] if len(kinds) == 1 else kinds
    elif isinstance(schema.get("properties"), Mapping):
        result["type"] = "object"
    if note := shorten(schema.get("description") or schema.get("title")):
        result["description"] = note
    if isinstance(choices := schema.get("enum"), list) and choices:
        result["enum"] = choices[:MAX_ENUM_VALUES]
    for keyword in ("const", "default"):
        value = schema.get(keyword)
        if keyword in schema and (value is None or isinstance(value, str | int | float)):
            result[keyword] = value
    for keyword in NUMBER_KEYWORDS & {*schema}:
        value = schema[keyword]
        if isinstance(value, int | float) and not isinstance(value, bool):
            result[keyword] = value
    # The flags of OpenAPI 3.0 become numbers.
    for flag, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(flag) is True and limit in result:
            result[flag] = result.pop(limit)
    if isinstance(form := schema.get("format"), str) and form.isprintable():
        result["format"] = form[:40]
    if _is_pattern(pattern := schema.get("pattern")):
        result["pattern"] = pattern
    if schema.get("uniqueItems") is True:
        result["uniqueItems"] = True
    return result


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
    all_of = [*subschemas, other_keywords]
    if len(subschemas) == 1 and not {"type", "properties", "anyOf"} & {*other_keywords}:
        return {**subschemas[0], **other_keywords}
    plain_keywords = {"type", "properties", "required", "description", "additionalProperties"}
    if not all(
        {*subschema} <= plain_keywords and subschema.get("type", "object") == "object"
        for subschema in all_of
    ):
        return schema
    merged: dict[str, Any] = {"type": "object", "properties": {}}
    required: list[str] = []
    for subschema in all_of:
        merged["properties"] |= subschema.get("properties", {})
        required += subschema.get("required", [])
        if "description" in subschema:
            merged["description"] = subschema["description"]
    if required:
        merged["required"] = list(dict.fromkeys(required))
    return merged


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
