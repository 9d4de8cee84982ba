"""The arguments of a call as they are meant to be read before someone approves it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString
from django.utils.text import capfirst

from agents.runs.argument_edits import field_name
from agents.runs.plan_edits import value_text

from ..formats.formatting import format_json
from ..markdown import render_exact, render_exact_json, render_exact_sql, reveal_invisible

MAX_ARGUMENTS = 30
MAX_HTML_CHARS = 40_000
QUERY_NAMES = {"sql", "query", "statement"}
INITIALISMS = {"id", "json", "sql", "uri", "url"}
QUERY_START = re.compile(
    r"\s*(?:select|with|insert|update|delete|create|alter|drop|explain|merge)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentView:
    """One argument: what is displayed, and the field to change it."""

    label: str
    html: SafeString
    is_code: bool
    field: str
    text: str
    original: str

    @property
    def is_block(self) -> bool:
        """Whether it needs a box of its own."""
        return self.is_code or "\n" in self.original


def argument_views(
    approval: int, arguments: Any, typed: Mapping[str, str]
) -> list[ArgumentView]:
    """Return each argument with what was typed into its field.

    Arguments that are text, or too many to list, are displayed as they are.
    """
    if not isinstance(arguments, Mapping) or len(arguments) > MAX_ARGUMENTS:
        return []
    views = [
        _view(name, value, field_name(approval, number), typed)
        for number, (name, value) in enumerate(arguments.items())
    ]
    if sum(len(view.html) for view in views) <= MAX_HTML_CHARS:
        return views
    # Dense code has a tag for every character.
    return [replace(view, html=render_exact(view.original)) for view in views]


def _view(name: str, value: Any, field: str, typed: Mapping[str, str]) -> ArgumentView:
    original = value_text(value)
    is_query = (
        isinstance(value, str) and name.lower() in QUERY_NAMES and QUERY_START.match(value)
    )
    if is_query:
        html = render_exact_sql(original)
    elif isinstance(value, str):
        html = render_exact(original)
    else:
        html = render_exact_json(format_json(value))
    return ArgumentView(
        label=argument_label(name),
        html=html,
        is_code=bool(is_query) or isinstance(value, dict | list),
        field=field,
        text=typed.get(field, original),
        original=original,
    )


def argument_label(name: str) -> str:
    """Return an argument's name as words: reply_to is Reply to, sql is SQL."""
    if name in INITIALISMS:
        return name.upper()
    words = name.replace("_", " ").strip()
    return reveal_invisible(capfirst(words) or name)
