"""The preview as lines, for a terminal."""

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import yaml
from django.utils.translation import gettext as _

from .importer import ImportItem, ImportResult, ImportState

STATE_LABELS = {
    ImportState.NEW: "new",
    ImportState.CHANGED: "changed",
    ImportState.OFF: "disabled",
    ImportState.REFUSED: "error",
}


def lines(result: ImportResult) -> Iterator[str]:
    for problem in result.problems:
        yield _problem_line("error:", problem)
    for item in result.things:
        if item.state in STATE_LABELS:
            yield f"{STATE_LABELS[item.state]}: {item.kind.key} {item.name}"
            yield from _item_lines(item)
    left = len(result.of(ImportState.LEFT))
    same = len(result.of(ImportState.SAME))
    yield f"{same} unchanged, {left} not in the file."


def format_value(value: Any) -> str:
    """Return a value as written in the file."""
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False).rstrip("\n")


def _item_lines(item: ImportItem) -> Iterator[str]:
    for problem in item.problems:
        yield _problem_line("  ", problem)
    if item.state == ImportState.CHANGED:
        for name in item.changed_fields:
            yield from _diff_lines(
                name, format_value(item.before.get(name)), format_value(item.after.get(name))
            )
    if item.needs:
        yield f"  enter the missing secrets in the console: {', '.join(item.needs)}"


def _diff_lines(name: str, before: str, after: str) -> Iterator[str]:
    if "\n" not in before + after:
        yield f"  {name}: {before or _('empty')} → {after or _('empty')}"
        return
    yield f"  {name}:"
    difference = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    yield from (f"    {line}" for line in list(difference)[2:])


def _problem_line(start: str, problem: Any) -> str:
    where = f"line {problem.line}: " if problem.line else ""
    return f"{start} {where}{problem.message}"
