"""A form for a tool's arguments, generated from its JSON Schema."""

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.engine.errors import BadSchema
from agents.engine.json_schema import TooManyChecks, validate_schema, violations

from .json_field import JsonObjectField, JsonValueField
from .schema_summary import MISSING, Parameter, parse_parameters

RAW_FIELD = "whole"
CONFIRM_FIELD = "confirmed"
MAX_EXACT_INT = 2**53  # up to here a float without a fraction is exact
SINGLE_LINE_CHARS = 200
OPEN_KEYWORDS = {"additionalProperties", "patternProperties", "anyOf", "oneOf", "allOf", "$ref"}
BOOLEAN_CHOICES = [("true", _("yes")), ("false", _("no"))]
SCHEMA_MISMATCH = _("Doesn't match the tool's schema: %(why)s.")
TOO_LARGE = _("Too large to validate.")
CONFIRM_LABEL = _("Run this tool for real. Any changes it makes take effect.")
RAW_HELP = _("All arguments as one JSON object: {…}.")
JSON_HELP = _("Enter as JSON.")


class JsonArgument(JsonValueField):
    """A list, an object or other JSON; an empty one isn't missing."""

    widget = forms.Textarea(
        attrs={"class": "vLargeTextField code", "rows": 4, "spellcheck": "false"}
    )

    def validate(self, value: Any) -> None:
        if value is None:
            super().validate(value)


class NumberArgument(forms.FloatField):
    def to_python(self, value: Any) -> Any:
        number = super().to_python(value)
        if number is None or not number.is_integer() or abs(number) >= MAX_EXACT_INT:
            return number
        return int(number)


class ChoiceArgument(forms.TypedChoiceField):
    """One of several values of any type, carried as JSON."""

    def __init__(self, choices: list[tuple[str, Any]], **about: Any) -> None:
        if not about["required"] or about["initial"] is None:
            choices = [("", "—"), *choices]
        super().__init__(choices=choices, coerce=json.loads, empty_value=None, **about)

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else value


class ArgumentsForm(forms.Form):
    """One field per parameter; `arguments` has the submitted values."""

    def __init__(
        self, schema: Mapping[str, Any], data: Any = None, *, must_confirm: bool = False
    ) -> None:
        super().__init__(data, label_suffix="")
        self.schema, self.is_checked = _load_schema(schema)
        self.parameters = dict(zip(_field_names(), parse_parameters(self.schema), strict=False))
        for name, parameter in self.parameters.items():
            self.fields[name] = _build_field(parameter)
        if not self.parameters and _allows_extra(self.schema):
            self.fields[RAW_FIELD] = JsonObjectField(
                label=_("Arguments"), required=False, help_text=RAW_HELP
            )
        if must_confirm:
            self.fields[CONFIRM_FIELD] = forms.BooleanField(label=CONFIRM_LABEL)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the tool, without empty ones."""
        values = {
            parameter.name: self.cleaned_data.get(name)
            for name, parameter in self.parameters.items()
        }
        known = {name: value for name, value in values.items() if value not in (None, "")}
        return (self.cleaned_data.get(RAW_FIELD) or {}) | known

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.is_checked and not self.errors:
            for name, parameter in self.parameters.items():
                if parameter.name in self.arguments:
                    self._check(
                        name, self._standalone_schema(parameter), self.arguments[parameter.name]
                    )
            if not self.errors:
                self._check(None, self.schema, self.arguments)
        return cleaned

    def _check(self, field: str | None, schema: Mapping[str, Any], value: Any) -> None:
        try:
            messages = violations(schema, value)
        except TooManyChecks:
            self.add_error(field, TOO_LARGE)
            return
        for message in messages:
            self.add_error(
                field, ValidationError(SCHEMA_MISMATCH, params={"why": message.rstrip(".")})
            )

    def _standalone_schema(self, parameter: Parameter) -> dict[str, Any]:
        """Return a parameter's schema with the definitions it may refer to."""
        defined = {
            keyword: self.schema.get(keyword, {}) for keyword in ("$defs", "definitions")
        }
        return {**parameter.schema, **defined}


def _field_names() -> Iterator[str]:
    return (f"argument_{number}" for number in count(1))


def _load_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the schema, and whether it can be validated here; otherwise the tool does."""
    try:
        return validate_schema(schema), True
    except BadSchema:
        return dict(schema), False


def _allows_extra(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is not False and bool(
        OPEN_KEYWORDS & schema.keys()
    )


def _build_field(parameter: Parameter) -> forms.Field:
    default = None if parameter.default is MISSING else parameter.default
    about = {
        "label": parameter.label,
        "required": parameter.is_required and not parameter.is_nullable,
        "initial": default,
        "help_text": " · ".join(filter(None, [parameter.description, *parameter.limits])),
    }
    if parameter.choices:
        values = [(json.dumps(value), value) for value in parameter.choices]
        chosen = None if default is None else json.dumps(default)
        return ChoiceArgument(values, **about | {"initial": chosen})
    return FIELD_BUILDERS.get(parameter.type, _json_field)(parameter, about)


def _text_field(parameter: Parameter, about: dict[str, Any]) -> forms.Field:
    max_length = _int_keyword(parameter, "maxLength")
    min_length = _int_keyword(parameter, "minLength")
    rows = (
        1
        if max_length is not None
        and max_length <= SINGLE_LINE_CHARS
        or "format" in parameter.schema
        else 3
    )
    widget: forms.Widget = forms.Textarea(attrs={"class": "vLargeTextField", "rows": rows})
    if rows == 1:
        widget = forms.TextInput(attrs={"class": "vTextField"})
    return forms.CharField(
        strip=False, widget=widget, max_length=max_length, min_length=min_length, **about
    )


def _int_keyword(parameter: Parameter, keyword: str) -> int | None:
    value = parameter.schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number_field(parameter: Parameter, about: dict[str, Any]) -> forms.Field:
    field_class = forms.IntegerField if parameter.type == "integer" else NumberArgument
    return field_class(
        min_value=_int_keyword(parameter, "minimum"),
        max_value=_int_keyword(parameter, "maximum"),
        **about,
    )


def _boolean_field(parameter: Parameter, about: dict[str, Any]) -> forms.Field:
    default = about["initial"]
    chosen = json.dumps(default) if isinstance(default, bool) else None
    return ChoiceArgument(BOOLEAN_CHOICES, **about | {"initial": chosen})


def _json_field(parameter: Parameter, about: dict[str, Any]) -> forms.Field:
    help_text = " · ".join(filter(None, [about["help_text"], f"{parameter.kind}. {JSON_HELP}"]))
    return JsonArgument(**about | {"help_text": help_text})


FIELD_BUILDERS = {
    "string": _text_field,
    "integer": _number_field,
    "number": _number_field,
    "boolean": _boolean_field,
}
