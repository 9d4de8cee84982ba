"""The checks of an example as rows of a form."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.review.experiments.scoring import checks

BLANK_ROWS = 1


class ChecksWidget(forms.Widget):
    """One row per check; rows without a value are left out."""

    class Media:
        js = ()

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        rows = [*(value or []), *([{}] * (0 if value else BLANK_ROWS))]
        context = {"name": name, "rows": rows, "kinds": checks.KINDS.items(), "blank": {}}
        return render_to_string("admin/review/example/_checks.html", context)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[dict[str, str]]:
        columns = [
            data.getlist(f"{name}-{column}") for column in ("kind", "value", "tolerance")
        ]
        rows = zip(*columns, strict=False)
        return [
            {"kind": kind, "value": value, "tolerance": tolerance}
            for kind, value, tolerance in rows
            if value.strip()
        ]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-kind" not in data


class ChecksField(forms.Field):
    widget = ChecksWidget

    def clean(self, value: list[Mapping[str, Any]]) -> list[dict[str, str]]:
        try:
            return checks.clean(value)
        except checks.InvalidCheck as problem:
            raise forms.ValidationError(str(problem)) from problem

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool((initial or []) != checks.clean(data or []))
        except checks.InvalidCheck:
            return True
