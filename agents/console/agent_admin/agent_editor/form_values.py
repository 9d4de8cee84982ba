"""A form's values as texts, the way a browser sends them."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField
from django.utils.datastructures import MultiValueDict

from agents.models import Agent

from ..agent_form import AgentForm
from .layout import TOOL_PREFIX

# Texts by the input's name; none for what isn't checked.
Values = dict[str, list[str]]

UNSAVED_INPUTS = {"note"}  # of the version, not of the agent


def of_form(form: AgentForm) -> Values:
    """Return the values that an untouched form would send."""
    values: Values = {}
    for bound in form:
        if bound.name == "given":
            for row in bound.value():
                values |= {tool_input.html_name: _texts(tool_input) for tool_input in row}
        elif bound.name not in UNSAVED_INPUTS:
            values[bound.html_name] = _texts(bound)
    return values


def of_agent(agent: Agent | None) -> Values:
    """Return the values of a published agent, or of an empty form."""
    return of_form(AgentForm(instance=agent))


def of_initial(agent: Agent | None, initial: Mapping[str, Any]) -> Values:
    """Return the values of a form that starts with other ones than the agent's."""
    form = AgentForm(instance=agent)
    form.initial.update(initial)
    return of_form(form)


def of_request(data: Any) -> Values:
    """Return submitted values; line ends are those of a text field in a browser."""
    names = [name for name in data if not name.startswith("_")]
    return normalize({name: data.getlist(name) for name in names})


def normalize(values: Mapping[str, list[str]]) -> Values:
    """Return the values as every database accepts them, in one order and without empty ones."""
    return {
        name: sorted(filter(None, map(_clean, texts)))
        for name, texts in values.items()
        if name not in UNSAVED_INPUTS
    }


def bind(agent: Agent | None, values: Values, form_class: type[AgentForm] = AgentForm) -> Any:
    """Return the form with these values; validating it doesn't change the agent's own row."""
    instance = Agent.objects.get(pk=agent.pk) if agent else None
    # A tool has a row only if some input of it is sent, as from a page.
    data = {
        name: texts or [""]
        for name, texts in values.items()
        if texts or (name.startswith(TOOL_PREFIX) and not name.endswith("is_given"))
    }
    return form_class(MultiValueDict(data), instance=instance)


def differences(form: AgentForm, base: Values, values: Values) -> Values:
    """Return the values that mean something else than in `base`."""
    fields = fields_by_input(form)
    return {
        name: texts
        for name, texts in values.items()
        if name in fields and not _means_same(fields[name], base.get(name, []), texts)
    }


def fields_by_input(form: AgentForm) -> dict[str, forms.Field]:
    """Return the fields by the names of their inputs, including those of tools."""
    fields = {bound.html_name: bound.field for bound in form if bound.name != "given"}
    for row in form["given"].value():
        fields |= {bound.html_name: bound.field for bound in row}
    return fields


def _texts(bound: BoundField) -> list[str]:
    value = bound.value()
    widget = bound.field.widget
    if isinstance(widget, forms.CheckboxInput):
        return ["on"] if value else []
    if getattr(widget, "allow_multiple_selected", False):
        return sorted(str(getattr(item, "pk", item)) for item in value or ())
    text = _clean("" if value is None else str(value))
    return [text] if text else []


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\0", "")
    return text.encode(errors="replace").decode()


def _means_same(field: forms.Field, old: list[str], new: list[str]) -> bool:
    if getattr(field.widget, "allow_multiple_selected", False):
        return sorted(old) == sorted(new)
    if isinstance(field.widget, forms.CheckboxInput):
        return bool(old) == bool(new)
    old_text = "".join(old[:1])
    new_text = "".join(new[:1])
    try:
        return bool(
            old_text == new_text or field.to_python(old_text) == field.to_python(new_text)
        )
    except ValidationError:
        return False
