"""The turns of a conversation around a run: a tree, because a question can have versions.

A run only knows its topic. The owner of the topic registers a function that returns which run
followed which.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from agents.access import masking
from agents.models import Run

MAX_TURNS = 40
TURN_FIELDS = ("query", "status", "agent_name", "user", "topic", "origin", "origin_step")

# Each run of a conversation with the one before it, the oldest first.
RunTree = dict[int, int | None]
Row = tuple[int, int, int, int]  # a run, its depth, its place among its siblings, their number
_sources: list[Callable[[Run], RunTree]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One run of the conversation, as a row of the tree."""

    run: Run
    depth: int  # how many forks are above it
    number: int
    versions: int  # at its fork, including itself
    is_here: bool
    is_sibling: bool


def register(source: Callable[[Run], RunTree]) -> None:
    """Have this function tell the runs of a conversation; without an answer it returns none."""
    if source not in _sources:
        _sources.append(source)


def turns_around(run: Run, user: User, session: Any) -> list[Turn]:
    """Return the turns this user can see, or nothing if the run is the only one."""
    tree = next((tree for source in _sources if (tree := source(run))), {})
    children: dict[int | None, list[int]] = {}
    for pk, parent in tree.items():
        children.setdefault(parent if parent in tree else None, []).append(pk)
    if run.pk not in tree or len(tree) < 2:
        return []
    parent_id = tree[run.pk]
    siblings = set(children[parent_id if parent_id in tree else None]) - {run.pk}
    tree_rows = list(_rows(children))
    index = next(index for index, row in enumerate(tree_rows) if row[0] == run.pk)
    # A conversation can have hundreds.
    start = max(0, min(index - MAX_TURNS // 2, len(tree_rows) - MAX_TURNS))
    window = tree_rows[start : start + MAX_TURNS]
    rows = Run.objects.for_user(user).filter(pk__in=[pk for pk, *_ in window])
    # Each run is masked for itself: a reviewer gives a reason for one of them.
    visible = {
        row.pk: masking.mask_row(row) if masking.is_masked_for(row, user, session) else row
        for row in rows.only(*TURN_FIELDS)
    }
    return [
        Turn(
            run=visible[pk],
            depth=depth,
            number=number,
            versions=versions,
            is_here=pk == run.pk,
            is_sibling=pk in siblings,
        )
        for pk, depth, number, versions in window
        if pk in visible
    ]


def _rows(children: dict[int | None, list[int]]) -> Iterator[Row]:
    """Yield each run with its depth and its place among its siblings, in reading order."""
    waiting: list[Row] = _siblings(children, None, 0)
    while waiting:
        yield (row := waiting.pop())
        waiting += _siblings(children, row[0], row[1])


def _siblings(
    children: dict[int | None, list[int]], parent: int | None, depth: int
) -> list[Row]:
    """Return the children of a run, the last one first; those of a fork are indented."""
    siblings = children.get(parent, [])
    deeper = depth + (len(siblings) > 1)
    return [(pk, deeper, index, len(siblings)) for index, pk in enumerate(siblings, 1)][::-1]
