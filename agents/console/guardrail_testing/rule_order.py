"""The order in which rules are checked."""

from collections.abc import Sequence

from django.db import transaction

from agents.models import GuardrailPattern


@transaction.atomic
def reorder(wanted: Sequence[int]) -> list[GuardrailPattern]:
    """Put these rules in this order, in the places they have; return those that moved.

    Numbers that aren't rules are ignored, and rules that aren't listed keep their place.
    """
    rows = list(GuardrailPattern.objects.select_for_update())
    known = {row.pk: row for row in rows}
    listed = [known[pk] for pk in dict.fromkeys(wanted) if pk in known]
    chosen, queue = {row.pk for row in listed}, iter(listed)
    placed = [next(queue) if row.pk in chosen else row for row in rows]
    return _save_positions(placed)


@transaction.atomic
def move(pk: int, by: int) -> list[GuardrailPattern]:
    """Move a rule up or down; return those that moved."""
    rows = list(GuardrailPattern.objects.select_for_update())
    numbers = [row.pk for row in rows]
    if pk not in numbers:
        return []
    at = numbers.index(pk)
    row = rows.pop(at)
    rows.insert(min(max(at + by, 0), len(rows)), row)
    return _save_positions(rows)


def _save_positions(rows: Sequence[GuardrailPattern]) -> list[GuardrailPattern]:
    moved = []
    for position, row in enumerate(rows, 1):
        if row.position != position:
            row.position = position
            moved.append(row)
    GuardrailPattern.objects.bulk_update(moved, ["position"])
    return moved
