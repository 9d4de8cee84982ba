"""Completions for the filter bar: fields, and values in use."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from agents.access import masking
from agents.models import Agent, Run
from agents.models.rights import Role
from agents.review.listing import is_reviewer
from agents.review.models import Label

from .filter_fields import FilterField, allowed_fields
from .filter_language import Filter, FilterProblem, Term
from .filter_values import NamePattern

RECENT_RUNS = 1_000
MAX_VALUES = 100


def available_fields(user: User) -> list[FilterField]:
    return list(allowed_fields(is_reviewer=is_reviewer(user)).values())


def completions(user: User) -> list[dict[str, Any]]:
    """Return every field with its description and likely values."""
    values = known_values(user)
    return [
        {
            "name": filter_field.name,
            "about": str(filter_field.about),
            "values": _field_values(filter_field, values),
        }
        for filter_field in available_fields(user)
    ]


def known_values(user: User) -> dict[str, list[str]]:
    """Return known names: configured ones, and those of the user's latest runs."""
    runs = Run.objects.for_user(user)
    recent = list(
        runs.order_by("-pk").values_list(
            "agent_name", "model", "version", "step_types", "user__username"
        )[:RECENT_RUNS]
    )
    agents = Agent.objects.filter(enabled=True).values_list("name", flat=True)
    tools = _distinct(name for row in recent for name in _tool_names(row[3]))
    values = {
        "agent": _distinct([*agents, *(row[0] for row in recent)]),
        "model": _distinct(row[1] for row in recent),
        "version": _distinct(row[2] for row in recent),
        # A model can call a tool that doesn't exist, by any name.
        "tool": [name for name in tools if masking.mask_text(name) == name],
    }
    if is_reviewer(user):
        visible_labels = Label.objects.filter(Exists(runs.filter(pk=OuterRef("run"))))
        names = visible_labels.order_by("name").values_list("name", flat=True).distinct()
        values["label"] = _distinct(names[:MAX_VALUES])
        values["user"] = _distinct(row[4] for row in recent)
        groups = Group.objects.exclude(name__in=Role.values).order_by("name")
        values["group"] = _distinct(groups.values_list("name", flat=True)[:MAX_VALUES])
    return values


def suggestions(user: User, run_filter: Filter) -> list[FilterProblem]:
    """Return unknown names, each with the closest known one."""
    known = known_values(user)
    return [
        problem
        for term in run_filter.terms
        for value in term.values
        if isinstance(value, NamePattern) and not value.is_beginning
        if (problem := _suggestion(run_filter, term, value.text, known.get(term.field, ())))
    ]


def _suggestion(
    run_filter: Filter, term: Term, name: str, known: Sequence[str]
) -> FilterProblem | None:
    matches = get_close_matches(name, known, 1)
    if not matches or name.lower() in map(str.lower, known):
        return None
    sentence = _("No match for “%(name)s”. Did you mean %(near)s?")
    instead = run_filter.source_text(term).replace(name, matches[0])
    text = sentence % {"name": name, "near": matches[0]}
    return FilterProblem(sentence=text, start=term.start, end=term.end, instead=instead)


def _field_values(field: FilterField, known: Mapping[str, list[str]]) -> list[dict[str, str]]:
    if field.choices:
        return [{"value": name, "about": str(label)} for name, label in field.choices.items()]
    return [{"value": name, "about": ""} for name in known.get(field.name, ())]


def _tool_names(marks: str) -> Iterable[str]:
    beginning = "tool="
    return (m.removeprefix(beginning) for m in marks.split("|") if m.startswith(beginning))


def _distinct(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name})[:MAX_VALUES]
