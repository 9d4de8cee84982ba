"""The arguments of a call as a form in which a user can change them before approving it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from django.http import QueryDict

from agents.models import Approval

from .plan_edits import normalize_newlines, parse_value, value_text
from .projection import decode_json


def field_name(approval: int, number: int | Literal[""]) -> str:
    """Return the name of the field of one argument, or what the names of all begin with."""
    return f"argument-{approval}-{number}"


@dataclass(frozen=True)
class ArgumentForm:
    """The submitted fields of one call. Without JavaScript all calls share one form."""

    form: QueryDict
    approval: Approval

    @property
    def arguments(self) -> str | None:
        """The changed arguments as JSON, or what was sent as JSON; None if nothing was."""
        written = self.form.get(f"arguments-{self.approval.pk}")
        # Edited JSON takes precedence.
        is_json_changed = bool(written) and parse_value(written or "") != self._original
        if is_json_changed or self._changed == self._original:
            return written
        return json.dumps(self._changed, ensure_ascii=False)

    @cached_property
    def _original(self) -> Any:
        return decode_json(self.approval.arguments)

    @cached_property
    def _changed(self) -> Any:
        """The arguments with the changed fields: text stays text, everything else is JSON."""
        if not isinstance(self._original, Mapping):
            return self._original
        arguments = dict(self._original)
        for number, (name, value) in enumerate(self._original.items()):
            old_text = normalize_newlines(value_text(value))
            name_in_form = field_name(self.approval.pk, number)
            text = normalize_newlines(self.form.get(name_in_form, old_text))
            if text != old_text:
                arguments[name] = text if isinstance(value, str) else parse_value(text)
        return arguments
