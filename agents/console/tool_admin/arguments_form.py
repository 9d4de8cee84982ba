"""A form for a tool's arguments, generated from its JSON Schema."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from agents.engine.errors import BadSchema
from agents.engine.json_schema import TooManyChecks, validate_schema, violations

from ..admin_classes.json_field import JsonObjectField, JsonValueField
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

    def __init__(self, choices: list[tuple[str, Any]], **options: Any) -> None:
        if not options["required"] or options["initial"] is None:
            choices = [("", "—"), *choices]
        super().__init__(choices=choices, coerce=json.loads, empty_value=None, **options)

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else value


class ArgumentsForm(forms.Form):
    """One field per parameter; `arguments` has the submitted values."""

    def __init__(
        self, schema: Mapping[str, Any], data: Any = None, *, must_confirm: bool = False
    ) -> None:
        super().__init__(data, label_suffix="")
        self.schema = dict(schema)
        self.is_checked = True
        try:
            self.schema = validate_schema(schema)
        except BadSchema:
            self.is_checked = False  # the tool validates its arguments itself
        self.parameters = {
            f"argument_{number}": parameter
            for number, parameter in enumerate(parse_parameters(self.schema), start=1)
        }
        for name, parameter in self.parameters.items():
            self.fields[name] = _build_field(parameter)
        is_open = self.schema.get("additionalProperties") is not False
        if not self.parameters and is_open and OPEN_KEYWORDS & self.schema.keys():
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
        entered = {name: value for name, value in values.items() if value not in (None, "")}
        return (self.cleaned_data.get(RAW_FIELD) or {}) | entered

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.is_checked and not self.errors:
            # A parameter's schema may refer to these.
            definitions = {key: self.schema.get(key, {}) for key in ("$defs", "definitions")}
            for name, parameter in self.parameters.items():
                if parameter.name in self.arguments:
                    schema = {**parameter.schema, **definitions}
                    self._check(name, schema, self.arguments[parameter.name])
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


def _build_field(parameter: Parameter) -> forms.Field:
    """Return the field for a parameter's type; JSON for lists, objects and several types."""
    default = None if parameter.default is MISSING else parameter.default
    notes = [parameter.description, *parameter.limits]
    options: dict[str, Any] = {
        "label": parameter.label,
        "required": parameter.is_required and not parameter.is_nullable,
        "initial": default,
        "help_text": " · ".join(filter(None, notes)),
    }
    if parameter.choices:
        values = [(json.dumps(value), value) for value in parameter.choices]
        options["initial"] = None if default is None else json.dumps(default)
        return ChoiceArgument(values, **options)
    if parameter.type == "string":
        max_length = _int_keyword(parameter, "maxLength")
        is_short = max_length is not None and max_length <= SINGLE_LINE_CHARS
        widget: forms.Widget = forms.Textarea(attrs={"class": "vLargeTextField", "rows": 3})
        if is_short or "format" in parameter.schema:
            widget = forms.TextInput(attrs={"class": "vTextField"})
        return forms.CharField(
            strip=False,
            widget=widget,
            max_length=max_length,
            min_length=_int_keyword(parameter, "minLength"),
            **options,
        )
    if parameter.type in ("integer", "number"):
        field_class = forms.IntegerField if parameter.type == "integer" else NumberArgument
        return field_class(
            min_value=_int_keyword(parameter, "minimum"),
            max_value=_int_keyword(parameter, "maximum"),
            **options,
        )
    if parameter.type == "boolean":
        options["initial"] = json.dumps(default) if isinstance(default, bool) else None
        return ChoiceArgument(BOOLEAN_CHOICES, **options)
    notes.append(f"{parameter.kind}. {JSON_HELP}")
    options["help_text"] = " · ".join(filter(None, notes))
    return JsonArgument(**options)


def _int_keyword(parameter: Parameter, keyword: str) -> int | None:
    value = parameter.schema.get(keyword)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
