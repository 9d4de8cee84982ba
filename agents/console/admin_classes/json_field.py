"""Form fields for JSON, and help text with an example of it."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.utils.functional import keep_lazy
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

NOT_JSON = _("Invalid JSON at line %(line)d, column %(column)d: %(reason)s.")
NOT_STORABLE = _("This contains a value that can't be stored as JSON.")
NOT_AN_OBJECT = _("Enter a JSON object: {…}.")


class JsonValueField(forms.JSONField):
    """JSON over several lines; errors are reported with their position."""

    widget = forms.Textarea(
        attrs={"class": "vLargeTextField code", "rows": 12, "spellcheck": "false"}
    )

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return None
        try:
            parsed = json.loads(value)
            format_json(parsed).encode()
        except json.JSONDecodeError as error:
            params = {"line": error.lineno, "column": error.colno, "reason": error.msg}
            raise ValidationError(NOT_JSON, params=params) from error
        except (ValueError, RecursionError) as error:
            raise ValidationError(NOT_STORABLE) from error
        return parsed

    def bound_data(self, data: Any, initial: Any) -> Any:
        return initial if self.disabled else InvalidJSONInput(data or "")

    def prepare_value(self, value: Any) -> str:
        if isinstance(value, InvalidJSONInput):
            return value
        return "" if value is None else format_json(value)


class JsonObjectField(JsonValueField):
    """A JSON object."""

    def to_python(self, value: Any) -> Any:
        parsed = super().to_python(value)
        if parsed is not None and not isinstance(parsed, dict):
            raise ValidationError(NOT_AN_OBJECT)
        return parsed


def format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


@keep_lazy(SafeString)
def help_with_example(sentence: Any, value: Any) -> SafeString:
    """Return help text with an example that can be opened and copied."""
    template = '{}<details class="example"><summary>{}</summary><pre>{}</pre></details>'
    return format_html(template, sentence, _("Example"), format_json(value))
