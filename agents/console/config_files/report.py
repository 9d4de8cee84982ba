"""What a file would do, in lines, for a terminal."""

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

import yaml
from django.utils.translation import gettext as _

from .importer import Outcome, State, Thing

WORDS = {
    State.NEW: "new",
    State.CHANGED: "changed",
    State.OFF: "switched off",
    State.REFUSED: "refused",
}


def lines(found: Outcome) -> Iterator[str]:
    for problem in found.problems:
        yield _placed("refused", problem)
    for thing in found.things:
        if thing.state in WORDS:
            yield f"{WORDS[thing.state]}: {thing.kind.key} {thing.name}"
            yield from _about(thing)
    left, same = len(found.of(State.LEFT)), len(found.of(State.SAME))
    yield f"{same} the same, {left} not in the file and left alone."


def text(value: Any) -> str:
    """A value as the file writes it."""
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False).rstrip("\n")


def _about(thing: Thing) -> Iterator[str]:
    for problem in thing.problems:
        yield _placed("  ", problem)
    if thing.state == State.CHANGED:
        for name in thing.changed:
            yield from _change(name, text(thing.before.get(name)), text(thing.after.get(name)))
    if thing.needs:
        yield f"  needs what no file tells: {', '.join(thing.needs)}"


def _change(name: str, before: str, after: str) -> Iterator[str]:
    if "\n" not in before + after:
        yield f"  {name}: {before or _('empty')} → {after or _('empty')}"
        return
    yield f"  {name}:"
    difference = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    yield from (f"    {line}" for line in list(difference)[2:])


def _placed(start: str, problem: Any) -> str:
    where = f"line {problem.line}: " if problem.line else ""
    return f"{start} {where}{problem.message}"
