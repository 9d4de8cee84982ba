"""Validates untrusted values against untrusted JSON Schemas.

No URL is ever fetched, patterns are RE2, and a validation stops after a maximum number of
checks.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

import re2
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agents.engine.text import shorten_middle

from .errors import BadSchema

MAX_SCHEMA_CHARS = 100_000
MAX_CHECKS = 300_000
MAX_VIOLATIONS = 5
MAX_MESSAGE_CHARS = 200

# Keywords that every provider with a strict mode accepts; with others, strict is off.
STRICT_KEYWORDS = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("anyOf", "$ref", "$defs", "title", "description"),
}
# A second `$schema` would restore the rules that ours replace; no provider accepts the others.
REFUSED_KEYWORDS = ("$schema", "$dynamicRef", "unevaluatedItems", "unevaluatedProperties")


class TooManyChecks(Exception):
    """Raised when the value is too large, or the schema too branched, to validate."""


def validate_schema(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the schema; raise BadSchema if any part is invalid."""
    try:
        schema = _copy_schema(given)
        _check_metaschema(schema)
        _check_subschemas(schema)
        violations(schema, {})
    except (RecursionError, TooManyChecks):
        raise BadSchema(
            "The schema is nested too deeply or contains an endless reference."
        ) from None
    return schema


def violations(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Return the first few violations; raise TooManyChecks."""
    token = _check_budget.set(_CheckBudget())
    try:
        errors = _Rules(schema, registry=Registry()).iter_errors(value)
        return [_violation(error) for error in islice(errors, MAX_VIOLATIONS)]
    finally:
        _check_budget.reset(token)


def is_strict(part: Any) -> bool:
    """Whether a provider can enforce the schema strictly: no optional or extra fields."""
    if not isinstance(part, dict) or not part.keys() <= STRICT_KEYWORDS:
        return False
    if "$ref" in part:
        return len(part) == 1
    if not part.keys() & {"type", "anyOf", "enum", "const"}:
        return False
    if "object" in part.get("type", ()) or "properties" in part:
        is_closed = part.get("additionalProperties") is False
        if not is_closed or {*part.get("required", ())} != {*part.get("properties", ())}:
            return False
    inner = DRAFT202012.create_resource(part).subresources()
    return all(is_strict(sub.contents) for sub in inner if sub.contents is not False)


def format_violation(path: Iterable[int | str], message: str) -> str:
    """Return a message such as `rows[3].price: 'x' is not of type 'number'`."""
    steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    # The beginning and the end, because the reason follows the value.
    location = shorten_middle("".join(steps).removeprefix("."), MAX_MESSAGE_CHARS)
    reason = shorten_middle(message, MAX_MESSAGE_CHARS)
    return f"{location}: {reason}" if steps else reason


def _copy_schema(given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(dict(given), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadSchema(f"The schema isn't valid JSON: {error}.") from error
    if len(text) > MAX_SCHEMA_CHARS:
        raise BadSchema(f"A schema can have up to {MAX_SCHEMA_CHARS:,} characters.")
    schema: dict[str, Any] = json.loads(text)
    schema.pop("$schema", None)
    return schema


def _check_metaschema(schema: Any) -> None:
    try:
        # Without the format checker, which would validate patterns as Python's.
        Draft202012Validator.check_schema(schema, format_checker=None)
    except SchemaError as error:
        reason = format_violation(error.absolute_path, error.message)
        raise BadSchema(f"Invalid JSON Schema: {reason}.") from error


def _check_subschemas(schema: dict[str, Any]) -> None:
    """Check every reachable subschema, including those behind references."""
    root = DRAFT202012.create_resource(schema)
    parts: list[tuple[Any, Any]] = [(schema, Registry().resolver_with_root(root))]
    seen: set[int] = set()
    while parts:
        part, resolver = parts.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        _check_keywords(part)
        inner = DRAFT202012.create_resource(part).subresources()
        parts += [(sub.contents, resolver.in_subresource(sub)) for sub in inner]
        if "$ref" in part:
            parts.append(_resolve_ref(part["$ref"], resolver))


def _check_keywords(subschema: dict[str, Any]) -> None:
    for keyword in REFUSED_KEYWORDS:
        if keyword in subschema:
            raise BadSchema(f"The keyword {keyword!r} isn't supported.")
    patterns = [subschema["pattern"]] if "pattern" in subschema else []
    for pattern in [*patterns, *subschema.get("patternProperties", ())]:
        try:
            _regex(pattern)
        except re2.error as error:
            raise BadSchema(f"{pattern!r} isn't a valid regular expression (RE2).") from error


def _resolve_ref(ref: str, resolver: Any) -> tuple[Any, Any]:
    try:
        found = resolver.lookup(ref)
    except Unresolvable as error:
        raise BadSchema(f"The reference {ref!r} can't be resolved.") from error
    _check_metaschema(found.contents)
    return found.contents, found.resolver


def _violation(error: Any) -> str:
    """Describe a violation; for failed alternatives, the closest one."""
    nearest = best_match([error]) or error
    return format_violation(nearest.absolute_path, nearest.message)


class _CheckBudget:
    """Limits the checks, because nested alternatives multiply the work at every level."""

    def __init__(self) -> None:
        self.left = MAX_CHECKS

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyChecks


_check_budget: ContextVar[_CheckBudget] = ContextVar("patience")


def _with_budget(rule: Any) -> Any:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _check_budget.get().spend()
        return rule(validator, value, instance, schema)

    return check


# Our own rules: the library's use `re`, or compare each item with all others.


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _regex(pattern).search(instance):
        yield ValidationError(f"{instance!r} doesn't match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    for key, item in instance.items() if isinstance(instance, dict) else ():
        for pattern, part in patterns.items():
            if _regex(pattern).search(key):
                yield from validator.descend(item, part, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, part: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", ())
    for key, item in instance.items() if isinstance(instance, dict) else ():
        if key in known or any(_regex(pattern).search(key) for pattern in patterns):
            continue
        if part is False:
            yield ValidationError(f"unknown property {key!r}")
        else:
            yield from validator.descend(item, part, path=key)


def _unique_items(_: Any, is_asked: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    items = instance if is_asked and isinstance(instance, list) else []
    if len({_hashable(item) for item in items}) < len(items):
        yield ValidationError("the list contains duplicate items")


def _hashable(value: Any) -> Any:
    """Return a value that is equal for equal JSON: 1 equals 1.0, but not true."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (bool, value) if isinstance(value, bool) else value


@lru_cache(maxsize=256)
def _regex(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    return re2.compile(pattern, options)


_OUR_VALIDATORS = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
_ALL_VALIDATORS = {**Draft202012Validator.VALIDATORS, **_OUR_VALIDATORS}
_Rules: Any = extend(
    Draft202012Validator, {name: _with_budget(rule) for name, rule in _ALL_VALIDATORS.items()}
)
