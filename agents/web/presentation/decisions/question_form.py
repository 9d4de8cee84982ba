"""A tool's question to the run's user, for display."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from agents.engine.call_context import QuestionUnavailable
from agents.engine.question_form import (
    MAX_TEXT_CHARS,
    QUESTION_SECONDS,
    FormField,
    host,
    is_own_page,
    read_fields,
)
from agents.models import Approval

from ..markdown import reveal_invisible

LONG_TEXT_CHARS = 200
MAX_RADIO_OPTIONS = 6
INPUT_TYPES = {"date": "date", "date-time": "datetime-local"}
INPUT_MODES = {"email": "email", "uri": "url"}


@dataclass(frozen=True)
class FieldView:
    """One field, with what the user typed and what is wrong with it."""

    field: FormField
    number: int
    approval: int
    typed: Sequence[str] | None = None  # None before anything was sent
    problem: str = ""
    is_first_problem: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.field, name)

    @property
    def name(self) -> str:
        return f"field-{self.approval}-{self.number}"

    @property
    def label(self) -> str:
        return reveal_invisible(self.field.label)

    @property
    def description(self) -> str:
        return reveal_invisible(self.field.description)

    @cached_property
    def values(self) -> list[str]:
        """What the user typed, or the default."""
        if self.typed is not None:
            return list(self.typed)
        default = self.field.default
        match default:
            case None:
                return []
            case bool():
                return ["true" if default else "false"]
            case list():
                return [str(value) for value in default]
        return [str(default)]

    @property
    def value(self) -> str:
        return self.values[-1] if self.values else ""

    @property
    def options(self) -> list[tuple[str, str, bool]]:
        """The values, labels and whether they are chosen."""
        pairs = self.field.options
        if self.field.kind == "boolean":
            pairs = (("true", pgettext("answer", "Yes")), ("false", pgettext("answer", "No")))
        return [(v, reveal_invisible(label), v in self.values) for v, label in pairs]

    @property
    def control(self) -> str:
        """The kind of control: radio, checkbox, select, textarea or input."""
        kind = self.field.kind
        if kind == "choices":
            return "checkbox"
        if kind == "boolean":
            return "radio"
        if kind == "choice":
            return "radio" if len(self.field.options) <= MAX_RADIO_OPTIONS else "select"
        is_long = not self.field.format and (self.field.most or 0) > LONG_TEXT_CHARS
        return "textarea" if kind == "text" and is_long else "input"

    @property
    def input_type(self) -> str:
        return INPUT_TYPES.get(self.field.format, "text")

    @property
    def input_mode(self) -> str:
        if self.field.kind == "integer":
            return "numeric"
        return (
            "decimal" if self.field.kind == "number" else INPUT_MODES.get(self.field.format, "")
        )

    @property
    def max_length(self) -> int:
        limit = self.field.most if self.field.kind == "text" else None
        return int(min(limit or MAX_TEXT_CHARS, MAX_TEXT_CHARS))

    @property
    def limits(self) -> str:
        """What the field accepts, if it has limits."""
        minimum = self.field.least
        maximum = self.field.most
        params = {"least": f"{minimum or 0:g}", "most": f"{maximum or 0:g}"}
        match self.field.kind:
            case "number" | "integer":
                sentences = (
                    _("%(least)s to %(most)s"),
                    _("%(least)s or more"),
                    _("%(most)s or less"),
                )
            case "text":
                sentences = (
                    _("%(least)s to %(most)s characters"),
                    _("At least %(least)s characters"),
                    _("Up to %(most)s characters"),
                )
            case "choices":
                sentences = (
                    _("Choose %(least)s to %(most)s."),
                    _("Choose at least %(least)s."),
                    _("Choose up to %(most)s."),
                )
            case _:
                return ""
        between, at_least, at_most = sentences
        if minimum is not None and maximum is not None:
            return between % params
        if minimum is not None:
            return at_least % params
        return at_most % params if maximum is not None else ""


@dataclass(frozen=True)
class QuestionView:
    """A question, its form and its answer."""

    approval: Approval
    typed: Mapping[int, Sequence[str]] | None = None
    problems: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The question as it was asked; a masked one may not be readable."""
        try:
            facts = json.loads(self.approval.arguments)
        except ValueError:
            facts = None
        return facts if isinstance(facts, dict) else {"message": self.approval.arguments}

    @property
    def source(self) -> str:
        return reveal_invisible(str(self.facts.get("source") or self.approval.tool))

    @property
    def message(self) -> str:
        return reveal_invisible(str(self.facts.get("message", "")))

    @property
    def url(self) -> str:
        """The page to open, if it is a question about a page that can be opened."""
        url = str(self.facts.get("url", ""))
        return url if url and (self.host or self.is_own_page) else ""

    @property
    def is_own_page(self) -> bool:
        """Whether it is a page of the product, where the user signs in to the source."""
        return is_own_page(str(self.facts.get("url", "")))

    @cached_property
    def host(self) -> str:
        """The page's host as it is looked up."""
        try:
            return host(str(self.facts.get("url", "")))
        except QuestionUnavailable:
            return ""

    @cached_property
    def fields(self) -> list[FieldView]:
        try:
            fields = read_fields(self.facts.get("schema") or {})
        except QuestionUnavailable:
            return []
        first = min(self.problems, default=None)
        return [
            FieldView(
                form_field,
                number,
                self.approval.pk,
                None if self.typed is None else self.typed.get(number, ()),
                self.problems.get(number, ""),
                number == first,
            )
            for number, form_field in enumerate(fields)
        ]

    @property
    def deadline(self) -> datetime:
        return self.approval.asked_at + timedelta(seconds=QUESTION_SECONDS)

    @property
    def answers(self) -> list[tuple[str, str]]:
        """The answered fields and what was sent."""
        try:
            content = json.loads(self.approval.new_arguments or "{}")
        except ValueError:
            return [("", self.approval.new_arguments)]
        if not isinstance(content, dict):
            return []
        labels = {view.field.name: view.label for view in self.fields}
        return [(labels.get(k) or str(k), _answer_text(v)) for k, v in content.items()]


def _answer_text(value: Any) -> str:
    if isinstance(value, bool):
        return pgettext("answer", "Yes") if value else pgettext("answer", "No")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return reveal_invisible(str(value))
