"""The order in which rules are checked."""

from collections.abc import Sequence

from django.db import transaction

from agents.models import GuardrailPattern


@transaction.atomic
def reorder(pks: Sequence[int]) -> list[GuardrailPattern]:
    """Put these rules in this order, in the places they have; return those that moved.

    Numbers that aren't rules are ignored, and rules that aren't listed keep their place.
    """
    rows = list(GuardrailPattern.objects.select_for_update())
    rows_by_pk = {row.pk: row for row in rows}
    moving = [rows_by_pk[pk] for pk in dict.fromkeys(pks) if pk in rows_by_pk]
    moving_pks = {row.pk for row in moving}
    queue = iter(moving)
    return _save_positions([next(queue) if row.pk in moving_pks else row for row in rows])


@transaction.atomic
def move(pk: int, by: int) -> list[GuardrailPattern]:
    """Move a rule up or down; return those that moved."""
    rows = list(GuardrailPattern.objects.select_for_update())
    pks = [row.pk for row in rows]
    if pk not in pks:
        return []
    position = pks.index(pk)
    row = rows.pop(position)
    rows.insert(min(max(position + by, 0), len(rows)), row)
    return _save_positions(rows)


def _save_positions(rows: Sequence[GuardrailPattern]) -> list[GuardrailPattern]:
    moved = []
    for position, row in enumerate(rows, 1):
        if row.position != position:
            row.position = position
            moved.append(row)
    GuardrailPattern.objects.bulk_update(moved, ["position"])
    return moved
