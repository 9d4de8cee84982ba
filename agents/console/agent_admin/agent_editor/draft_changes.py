"""What a draft changes: by field for the dialog, by input for the marks beside them."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import AgentSpec
from agents.engine.text import shorten, shorten_line

from .. import agent_changes
from ..agent_changes import FieldChange
from . import form_values
from .drafts import EditedAgent
from .layout import TOOL_PREFIX, field_of

MAX_WAS_CHARS = 48


def changed_fields(edited: EditedAgent) -> list[str]:
    """Return the changed fields; the tools are one."""
    return list(dict.fromkeys(field_of(name) for name in edited.changes))


def draft_spec(form: Any) -> AgentSpec:
    """Return the draft's description; invalid fields are as typed."""
    form.is_valid()
    chosen = form.cleaned_data
    many = {name: chosen.get(name, ()) for name in agent_spec.related_names()}
    spec = agent_spec.build_spec(form.instance, chosen.get("given") or (), many)
    typed = {name: form[name].data for name in form.errors if name in spec}
    if "given" in form.errors:
        rows = [row for row in form["given"].value() if row.is_on]
        names = [name for name in rows[0].fields if name != "is_given"] if rows else []
        typed["tools"] = {
            row.tool.name: {name: text for name in names if (text := row[name].data)}
            for row in rows
        }
    return spec | typed


def changes(edited: EditedAgent) -> Iterator[FieldChange]:
    """Yield the differences to the published agent, field by field."""
    published = agent_spec.describe(edited.agent) if edited.agent else {}
    yield from agent_changes.changes(published, draft_spec(edited.form))


def previous_texts(edited: EditedAgent) -> dict[str, str]:
    """Return how each changed input was before, as short text."""
    fields = form_values.fields_by_input(edited.form)
    return {
        name: _previous_text(name, fields[name], edited.published.get(name, []))
        for name in edited.changes
        if name in fields
    }


def _previous_text(name: str, field: forms.Field, texts: list[str]) -> str:
    if isinstance(field.widget, forms.CheckboxInput):
        return _("on") if texts else _("off")
    if name.startswith(TOOL_PREFIX) and not texts:
        return _("default")
    if isinstance(field, forms.ModelMultipleChoiceField):
        rows: Any = field.queryset
        names = [str(row) for row in rows.filter(pk__in=texts)]
        return shorten(", ".join(names) or _("none"), MAX_WAS_CHARS)
    if isinstance(field, forms.ChoiceField):
        choices: Any = field.choices
        labels = {str(value): str(label) for value, label in choices}
        text = labels.get("".join(texts), "".join(texts))
        return shorten(text, MAX_WAS_CHARS)
    return shorten_line("".join(texts), MAX_WAS_CHARS) or _("empty")


def changed_tools(edited: EditedAgent) -> list[str]:
    """Return the ids of the tools whose settings changed."""
    names = [name for name in edited.changes if name.startswith(TOOL_PREFIX)]
    return sorted({name.split("-")[1] for name in names})
