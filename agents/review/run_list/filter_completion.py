"""Completions for the filter bar: fields, and values in use."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from agents.access import masking
from agents.models import Agent, Run
from agents.models.catalog.rights import Role
from agents.review.models import Label, ReviewQueue
from agents.review.run_list.listing import is_reviewer

from ..filters.filter_fields import FilterField, allowed_fields
from ..filters.filter_language import Filter, FilterProblem
from ..filters.filter_values import NamePattern

RECENT_RUNS = 1_000
MAX_VALUES = 100


def available_fields(user: User) -> list[FilterField]:
    return list(allowed_fields(is_reviewer=is_reviewer(user)).values())


def completions(user: User) -> list[dict[str, Any]]:
    """Return every field with its description and likely values."""
    names = known_values(user)
    fields = []
    for filter_field in available_fields(user):
        labels = filter_field.choices or dict.fromkeys(names.get(filter_field.name, ()), "")
        values = [{"value": value, "about": str(label)} for value, label in labels.items()]
        fields.append(
            {
                "name": filter_field.name,
                "about": str(filter_field.about),
                "values": values,
            }
        )
    return fields


def known_values(user: User) -> dict[str, list[str]]:
    """Return known names: configured ones, and those of the user's latest runs."""
    runs = Run.objects.for_user(user)
    recent = list(
        runs.order_by("-pk").values_list(
            "agent_name", "model", "version", "step_types", "user__username", "api_key__name"
        )[:RECENT_RUNS]
    )
    agents = Agent.objects.filter(enabled=True).values_list("name", flat=True)
    tags = (tag for row in recent for tag in row[3].split("|"))
    tools = _distinct(tag.removeprefix("tool=") for tag in tags if tag.startswith("tool="))
    values = {
        "agent": _distinct([*agents, *(row[0] for row in recent)]),
        "model": _distinct(row[1] for row in recent),
        "version": _distinct(row[2] for row in recent),
        "key": _distinct(row[5] for row in recent),
        # A model can call a tool that doesn't exist, by any name.
        "tool": [name for name in tools if masking.mask_text(name) == name],
    }
    if is_reviewer(user):
        visible_labels = Label.objects.filter(Exists(runs.filter(pk=OuterRef("run"))))
        names = visible_labels.order_by("name").values_list("name", flat=True).distinct()
        values["label"] = _distinct(names[:MAX_VALUES])
        queues = ReviewQueue.objects.for_user(user)
        values["queue"] = _distinct(queues.values_list("name", flat=True)[:MAX_VALUES])
        values["user"] = _distinct(row[4] for row in recent)
        groups = Group.objects.exclude(name__in=Role.values).order_by("name")
        values["group"] = _distinct(groups.values_list("name", flat=True)[:MAX_VALUES])
    return values


def suggestions(user: User, run_filter: Filter) -> list[FilterProblem]:
    """Return unknown names, each with the closest known one."""
    names = known_values(user)
    problems = []
    for term in run_filter.terms:
        known_names = names.get(term.field, [])
        for value in term.values:
            if not isinstance(value, NamePattern) or value.is_beginning:
                continue
            matches = get_close_matches(value.text, known_names, 1)
            if not matches or value.text.lower() in map(str.lower, known_names):
                continue
            sentence = _("No match for “%(name)s”. Did you mean %(near)s?") % {
                "name": value.text,
                "near": matches[0],
            }
            instead = run_filter.source_text(term).replace(value.text, matches[0])
            problems.append(
                FilterProblem(
                    sentence=sentence, start=term.start, end=term.end, instead=instead
                )
            )
    return problems


def _distinct(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name})[:MAX_VALUES]
