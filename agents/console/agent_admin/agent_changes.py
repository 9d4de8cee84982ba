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
from agents.web.presentation.formats.text_diff import TextDiff, TextDiffer

from ..admin_classes.json_field import format_json

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
        old_text = format_value(name, old.get(name))
        new_text = format_value(name, new.get(name))
        difference = differ.compare(old_text, new_text)
        yield FieldChange(label=label(name), difference=difference, is_code=name in CODE_FIELDS)


def field_texts(spec: AgentSpec) -> Iterator[tuple[str, str, bool]]:
    """Yield all fields that aren't empty: label, text, and whether it is code."""
    for name in changed_names({}, spec):
        yield label(name), format_value(name, spec[name]), name in CODE_FIELDS


def changed_names(old: AgentSpec, new: AgentSpec) -> list[str]:
    """Return the changed fields in the model's order, removed fields last."""
    names = [field.name for field in agent_spec.own_fields()]
    names += ["tools", *agent_spec.related_names()]
    names += sorted((old.keys() | new.keys()) - set(names))
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
        lines = []
        for tool, settings in sorted((value or {}).items()):
            texts = [
                f"{_verbose_name(AgentTool, key)}: {_display_value(AgentTool, key, setting)}"
                for key, setting in settings.items()
            ]
            lines.append(f"{tool} — {'; '.join(texts)}" if texts else tool)
        return "\n".join(lines)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    if isinstance(value, dict):
        return format_json(value)
    return "" if value is None else _display_value(Agent, name, value)


def _verbose_name(model: type[models.Model], name: str) -> str:
    return str(getattr(_field(model, name), "verbose_name", name))


def _display_value(model: type[models.Model], name: str, value: Any) -> str:
    choices = dict(getattr(_field(model, name), "flatchoices", ()))
    return str(choices.get(value, value))


def _field(model: type[models.Model], name: str) -> Any:
    return next((field for field in model._meta.get_fields() if field.name == name), None)
