"""Descriptions of agents in words, field by field, and what is different between two."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import Description
from agents.models import Agent, AgentTool
from agents.web.presentation.text_diff import Difference, Reader

from .json_field import pretty

CODE = {"output_schema"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field that is not the same in two descriptions, as texts."""

    label: str
    difference: Difference
    is_code: bool


def changes(old: Description, new: Description) -> Iterator[Change]:
    reader = Reader()
    for name in names(old, new):
        before, after = text(name, old.get(name)), text(name, new.get(name))
        difference = reader.compare(before, after)
        yield Change(label=label(name), difference=difference, is_code=name in CODE)


def whole(description: Description) -> Iterator[tuple[str, str, bool]]:
    """All that is not empty: its name, its text, and whether that is code."""
    for name in names({}, description):
        yield label(name), text(name, description[name]), name in CODE


def names(old: Description, new: Description) -> list[str]:
    """What is different, in the order of the row; what is no field any more at the end."""
    known = [*(field.name for field in agent_spec.columns()), "tools", *agent_spec.many()]
    unknown = sorted((old.keys() | new.keys()) - set(known))
    both = [*known, *unknown]
    return [name for name in both if text(name, old.get(name)) != text(name, new.get(name))]


def label(name: str) -> str:
    return capfirst(_named(Agent, name))


def text(name: str, value: Any) -> str:
    """A value as people read it."""
    if name == "tools":
        return "\n".join(_tool(*pair) for pair in sorted((value or {}).items()))
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    if isinstance(value, dict):
        return pretty(value)
    return "" if value is None else _said(Agent, name, value)


def _tool(name: str, settings: dict[str, Any]) -> str:
    told = [f"{_named(AgentTool, n)}: {_said(AgentTool, n, v)}" for n, v in settings.items()]
    return f"{name} — {'; '.join(told)}" if told else name


def _named(model: type[models.Model], name: str) -> str:
    return str(getattr(_field(model, name), "verbose_name", name))


def _said(model: type[models.Model], name: str, value: Any) -> str:
    choices = dict(getattr(_field(model, name), "flatchoices", ()))
    return str(choices.get(value, value))


def _field(model: type[models.Model], name: str) -> Any:
    return next((field for field in model._meta.get_fields() if field.name == name), None)
