"""Describes a tool's parameters from its JSON Schema, for people who don't read schemas."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.db.sentences import translate
from agents.tools.mcp.definition import escape_invisible

TYPE_LABELS = {
    "string": _("free text"),
    "integer": _("whole number"),
    "number": _("any number"),
    "boolean": _("yes or no"),
    "array": _("list"),
    "object": _("object"),
    "null": _("no value"),
}
LIMIT_TEXTS = {
    "minimum": _("min %(value)s"),
    "maximum": _("max %(value)s"),
    "exclusiveMinimum": _("more than %(value)s"),
    "exclusiveMaximum": _("less than %(value)s"),
    "minLength": _("min %(value)s characters"),
    "maxLength": _("max %(value)s characters"),
    "minItems": _("min %(value)s items"),
    "maxItems": _("max %(value)s items"),
    "pattern": _("matches %(value)s"),
    "format": _("format: %(value)s"),
}
MISSING: Any = object()
MAX_CHOICES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter; `schema` is its own, with references resolved."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool
    is_nullable: bool = False

    @property
    def type(self) -> str:
        """Its single type; empty if there are several or none."""
        kind = self.schema.get("type")
        return kind if isinstance(kind, str) and kind in TYPE_LABELS else ""

    @property
    def kind(self) -> str:
        """The type as text."""
        if not self.type:
            return str(_("any JSON"))
        items = self.schema.get("items")
        of = items.get("type") if isinstance(items, Mapping) else None
        if self.type == "array" and isinstance(of, str) and of in TYPE_LABELS:
            return str(_("list (%(kind)s)") % {"kind": TYPE_LABELS[of]})
        return str(TYPE_LABELS[self.type])

    @property
    def description(self) -> str:
        text = self.schema.get("description") or self.schema.get("title") or ""
        return escape_invisible(translate(text)) if isinstance(text, str) else ""

    @property
    def label(self) -> str:
        return escape_invisible(self.name)

    @property
    def choices(self) -> list[Any]:
        values = self.schema.get(
            "enum", [self.schema["const"]] if "const" in self.schema else []
        )
        return list(values) if isinstance(values, list) else []

    @property
    def default(self) -> Any:
        """The default value; MISSING if there is none."""
        return self.schema.get("default", MISSING)

    @property
    def limits(self) -> list[str]:
        texts = [
            str(text % {"value": _format_value(self.schema[keyword])})
            for keyword, text in LIMIT_TEXTS.items()
            if keyword in self.schema
        ]
        if self.choices:
            few = [_format_value(choice) for choice in self.choices[:MAX_CHOICES]]
            few += ["…"] if len(self.choices) > MAX_CHOICES else []
            texts.append(str(_("one of: %(choices)s") % {"choices": ", ".join(few)}))
        if self.default is not MISSING:
            texts.append(str(_("default: %(value)s") % {"value": _format_value(self.default)}))
        return texts


def parse_parameters(schema: Mapping[str, Any]) -> list[Parameter]:
    """Return a schema's parameters, required ones first."""
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, Mapping):
        return []
    parameters = []
    for name, property_schema in properties.items():
        parameter_schema, is_nullable = _strip_null(_resolve_ref(property_schema, schema))
        parameter = Parameter(
            name=name,
            schema=parameter_schema,
            is_required=isinstance(required, list) and name in required,
            is_nullable=is_nullable,
        )
        parameters.append(parameter)
    return sorted(parameters, key=lambda parameter: not parameter.is_required)


def _resolve_ref(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve a reference within the schema by one level, with its siblings."""
    if not isinstance(schema, Mapping):
        return {}
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/"):
        return schema
    target: Any = root
    for key in ref.removeprefix("#/").split("/"):
        target = target.get(key) if isinstance(target, Mapping) else None
    siblings = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return {**target, **siblings} if isinstance(target, Mapping) else schema


def _strip_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Remove the null type of an optional parameter; also return if there was one."""
    types = schema.get("type")
    alternatives = schema.get("anyOf")
    if isinstance(types, list) and "null" in types and len(types) == 2:
        return {**schema, "type": next(name for name in types if name != "null")}, True
    if (
        isinstance(alternatives, list)
        and {"type": "null"} in alternatives
        and len(alternatives) == 2
    ):
        alternative = next(schema for schema in alternatives if schema != {"type": "null"})
        siblings = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
        if isinstance(alternative, Mapping) and "$ref" not in alternative:
            return {**alternative, **siblings}, True
    return schema, False


def _format_value(value: Any) -> str:
    return escape_invisible(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )
