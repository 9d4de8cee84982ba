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
from .sentences import Sentence
from .sentences import Sentence as _

MAX_SCHEMA_CHARS = 100_000
MAX_CHECKS = 300_000
MAX_VIOLATIONS = 5
MAX_MESSAGE_CHARS = 200

# Keywords that every provider with a strict mode accepts; with others, strict is off.
STRICT_KEYWORDS = {
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "title",
    "type",
}
# A second `$schema` would restore the rules that ours replace; no provider accepts the others.
REFUSED_KEYWORDS = ("$schema", "$dynamicRef", "unevaluatedItems", "unevaluatedProperties")


class TooManyChecks(Exception):
    """Raised when the value is too large, or the schema too branched, to validate."""


def validate_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the schema; raise BadSchema if any part is invalid."""
    try:
        try:
            text = json.dumps(dict(schema), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadSchema(
                _("The schema isn't valid JSON: %(reason)s.", reason=error)
            ) from error
        if len(text) > MAX_SCHEMA_CHARS:
            limit = f"{MAX_SCHEMA_CHARS:,}"
            raise BadSchema(_("A schema can have up to %(limit)s characters.", limit=limit))
        copy: dict[str, Any] = json.loads(text)
        copy.pop("$schema", None)
        _check_metaschema(copy)
        _check_subschemas(copy)
        violations(copy, {})
    except (RecursionError, TooManyChecks):
        raise BadSchema(
            _("The schema is nested too deeply or contains an endless reference.")
        ) from None
    return copy


def violations(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Return the first few violations; raise TooManyChecks."""
    token = _check_budget.set(_CheckBudget())
    try:
        errors = _Rules(schema, registry=Registry()).iter_errors(value)
        first_violations = []
        for error in islice(errors, MAX_VIOLATIONS):
            nearest = best_match([error]) or error  # of failed alternatives, the closest one
            first_violations.append(format_violation(nearest.absolute_path, nearest.message))
        return first_violations
    finally:
        _check_budget.reset(token)


def is_strict(schema: Any) -> bool:
    """Whether a provider can enforce the schema strictly: no optional or extra fields."""
    if not isinstance(schema, dict) or not schema.keys() <= STRICT_KEYWORDS:
        return False
    if "$ref" in schema:
        return len(schema) == 1
    if not schema.keys() & {"type", "anyOf", "enum", "const"}:
        return False
    if "object" in schema.get("type", ()) or "properties" in schema:
        is_closed = schema.get("additionalProperties") is False
        if not is_closed or {*schema.get("required", ())} != {*schema.get("properties", ())}:
            return False
    subschemas = DRAFT202012.create_resource(schema).subresources()
    return all(is_strict(sub.contents) for sub in subschemas if sub.contents is not False)


def format_violation(path: Iterable[int | str], message: str) -> str:
    """Return a message such as `rows[3].price: 'x' is not of type 'number'`."""
    steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in path]
    # The beginning and the end, because the reason follows the value.
    location = shorten_middle("".join(steps).removeprefix("."), MAX_MESSAGE_CHARS)
    reason = shorten_middle(message, MAX_MESSAGE_CHARS)
    return (
        Sentence("%(location)s: %(reason)s", location=location, reason=reason)
        if steps
        else reason
    )


def _check_metaschema(schema: Any) -> None:
    try:
        # Without the format checker, which would validate patterns as Python's.
        Draft202012Validator.check_schema(schema, format_checker=None)
    except SchemaError as error:
        reason = format_violation(error.absolute_path, error.message)
        raise BadSchema(_("Invalid JSON Schema: %(reason)s.", reason=reason)) from error


def _check_subschemas(schema: dict[str, Any]) -> None:
    """Check every reachable subschema, including those behind references."""
    root = DRAFT202012.create_resource(schema)
    waiting: list[tuple[Any, Any]] = [(schema, Registry().resolver_with_root(root))]
    checked: set[int] = set()
    while waiting:
        subschema, resolver = waiting.pop()
        if not isinstance(subschema, dict) or id(subschema) in checked:
            continue
        checked.add(id(subschema))
        for keyword in REFUSED_KEYWORDS:
            if keyword in subschema:
                raise BadSchema(_("The keyword %(name)s isn't supported.", name=repr(keyword)))
        patterns = [subschema["pattern"]] if "pattern" in subschema else []
        for pattern in [*patterns, *subschema.get("patternProperties", ())]:
            try:
                _regex(pattern)
            except re2.error as error:
                sentence = _(
                    "%(pattern)s isn't a valid regular expression (RE2).", pattern=repr(pattern)
                )
                raise BadSchema(sentence) from error
        inner = DRAFT202012.create_resource(subschema).subresources()
        waiting += [(sub.contents, resolver.in_subresource(sub)) for sub in inner]
        if "$ref" in subschema:
            ref = subschema["$ref"]
            try:
                resolved = resolver.lookup(ref)
            except Unresolvable as error:
                raise BadSchema(
                    _("The reference %(ref)s can't be resolved.", ref=repr(ref))
                ) from error
            _check_metaschema(resolved.contents)
            waiting.append((resolved.contents, resolved.resolver))


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


def _pattern(
    _validator: Any, pattern: str, instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _regex(pattern).search(instance):
        yield ValidationError(
            _(
                "%(value)s doesn't match %(pattern)s",
                value=repr(instance),
                pattern=repr(pattern),
            )
        )


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    for key, item in instance.items() if isinstance(instance, dict) else ():
        for pattern, subschema in patterns.items():
            if _regex(pattern).search(key):
                yield from validator.descend(item, subschema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, subschema: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    properties = schema.get("properties", {})
    patterns = schema.get("patternProperties", ())
    for key, item in instance.items() if isinstance(instance, dict) else ():
        if key in properties or any(_regex(pattern).search(key) for pattern in patterns):
            continue
        if subschema is False:
            yield ValidationError(_("unknown property %(name)s", name=repr(key)))
        else:
            yield from validator.descend(item, subschema, path=key)


def _unique_items(
    _validator: Any, is_asked: bool, instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    items = instance if is_asked and isinstance(instance, list) else []
    if len({_hashable(item) for item in items}) < len(items):
        yield ValidationError(_("the list contains duplicate items"))


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
