"""The preview as lines, for a terminal."""

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import yaml
from django.utils.translation import gettext as _

from .importer import ImportResult, ImportState

STATE_LABELS = {
    ImportState.NEW: "new",
    ImportState.CHANGED: "changed",
    ImportState.OFF: "disabled",
    ImportState.REFUSED: "error",
}


def lines(result: ImportResult) -> Iterator[str]:
    for problem in result.problems:
        yield _problem_line("error:", problem)
    for item in result.items:
        if item.state not in STATE_LABELS:
            continue
        yield f"{STATE_LABELS[item.state]}: {item.kind.key} {item.name}"
        for problem in item.problems:
            yield _problem_line("  ", problem)
        for name in item.changed_fields if item.state == ImportState.CHANGED else ():
            yield from _diff_lines(
                name, format_value(item.before.get(name)), format_value(item.after.get(name))
            )
        if item.needs:
            yield f"  enter the missing secrets in the console: {', '.join(item.needs)}"
    unlisted = len(result.of(ImportState.LEFT))
    unchanged = len(result.of(ImportState.SAME))
    yield f"{unchanged} unchanged, {unlisted} not in the file."


def format_value(value: Any) -> str:
    """Return a value as written in the file."""
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False).rstrip("\n")


def _diff_lines(name: str, old: str, new: str) -> Iterator[str]:
    if "\n" not in old + new:
        yield f"  {name}: {old or _('empty')} → {new or _('empty')}"
        return
    yield f"  {name}:"
    difference = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    yield from (f"    {line}" for line in list(difference)[2:])


def _problem_line(start: str, problem: Any) -> str:
    line = f"line {problem.line}: " if problem.line else ""
    return f"{start} {line}{problem.message}"
