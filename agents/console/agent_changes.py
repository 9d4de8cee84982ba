"""Agent descriptions as text, field by field, and differences between two."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import AgentSpec
from agents.models import Agent, AgentTool
from agents.web.presentation.text_diff import TextDiff, TextDiffer

from .json_field import format_json

CODE_FIELDS = {"output_schema"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field that differs between two descriptions, as texts."""

    label: str
    difference: TextDiff
    is_code: bool


def changes(old: AgentSpec, new: AgentSpec) -> Iterator[FieldChange]:
    differ = TextDiffer()
    for name in changed_names(old, new):
        before = format_value(name, old.get(name))
        after = format_value(name, new.get(name))
        difference = differ.compare(before, after)
        yield FieldChange(label=label(name), difference=difference, is_code=name in CODE_FIELDS)


def field_texts(spec: AgentSpec) -> Iterator[tuple[str, str, bool]]:
    """Yield all fields that aren't empty: label, text, and whether it is code."""
    for name in changed_names({}, spec):
        yield label(name), format_value(name, spec[name]), name in CODE_FIELDS


def changed_names(old: AgentSpec, new: AgentSpec) -> list[str]:
    """Return the changed fields in the model's order, removed fields last."""
    known = [
        *(field.name for field in agent_spec.own_fields()),
        "tools",
        *agent_spec.related_names(),
    ]
    unknown = sorted((old.keys() | new.keys()) - set(known))
    names = [*known, *unknown]
    return [
        name
        for name in names
        if format_value(name, old.get(name)) != format_value(name, new.get(name))
    ]


def label(name: str) -> str:
    return capfirst(_verbose_name(Agent, name))


def format_value(name: str, value: Any) -> str:
    """Return a value as readable text."""
    if name == "tools":
        return "\n".join(_format_tool(*pair) for pair in sorted((value or {}).items()))
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    if isinstance(value, dict):
        return format_json(value)
    return "" if value is None else _display_value(Agent, name, value)


def _format_tool(name: str, settings: dict[str, Any]) -> str:
    labels = [
        f"{_verbose_name(AgentTool, n)}: {_display_value(AgentTool, n, v)}"
        for n, v in settings.items()
    ]
    return f"{name} — {'; '.join(labels)}" if labels else name


def _verbose_name(model: type[models.Model], name: str) -> str:
    return str(getattr(_field(model, name), "verbose_name", name))


def _display_value(model: type[models.Model], name: str, value: Any) -> str:
    choices = dict(getattr(_field(model, name), "flatchoices", ()))
    return str(choices.get(value, value))


def _field(model: type[models.Model], name: str) -> Any:
    return next((field for field in model._meta.get_fields() if field.name == name), None)
