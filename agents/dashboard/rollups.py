"""Adds the summaries of a day up: all, by agent, by person, by both, and by tool."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from django.db import transaction

from agents.db.fast_writes import insert_many

from .catch_up import lock
from .models import (
    MEASURES,
    DailyFigures,
    DeletedFigures,
    RunSummary,
    SummarizedDay,
    ToolSummary,
)
from .totals import Totals

Grain = DailyFigures.Grain
KEYS = ("grain", "agent_name", "agent_version", "model", "user_id", "tool")
Key = tuple[str, str, int, str, int | None, str]
COLUMNS = ("agent_name", "agent_version", "model", "user_id", "active_class", "first_class")


def roll_up_days(most: int | None = None) -> int:
    """Add up all days that have changed, the newest first; return how many."""
    changed = SummarizedDay.objects.filter(changes__gt=0).order_by("-day")
    days = list(changed.values_list("day", "changes")[:most])
    return sum(_roll_up(day, changes) for day, changes in days)


def _roll_up(day: date, changes: int) -> bool:
    """Replace a day's figures, unless more has changed while they were added up."""
    rows = [
        DailyFigures(day=day, **dict(zip(KEYS, key, strict=True)), **sums.columns())
        for key, sums in sums_of_day(day).items()
    ]
    with transaction.atomic():
        lock()
        same = SummarizedDay.objects.filter(day=day, changes=changes)
        if not same.update(changes=0):
            return False
        DailyFigures.objects.filter(day=day).delete()
        insert_many(DailyFigures, rows)
    return True


def sums_of_day(day: date) -> dict[Key, Totals]:
    """Return a day's figures by all grains."""
    found: dict[Key, Totals] = {}
    tools = _tools_of_day(day)
    for row in RunSummary.objects.filter(day=day, is_hidden=False).values(
        "run_id", *COLUMNS, *MEASURES
    ):
        for key in _keys(row):
            found.setdefault(key, Totals()).add_run(row)
        setup = (row["agent_name"], row["agent_version"], row["model"])
        for tool in tools.get(row["run_id"], ()):
            key = (Grain.TOOL.value, *setup, None, tool["tool"])
            found.setdefault(key, Totals()).add_calls(row, tool)
    for deleted in DeletedFigures.objects.filter(day=day):
        for key in _keys_of_deleted(deleted):
            found.setdefault(key, Totals()).add_figures(deleted)
    return found


def _tools_of_day(day: date) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    rows = ToolSummary.objects.filter(run__day=day, run__is_hidden=False)
    for row in rows.values():
        found.setdefault(row["run_id"], []).append({**row})
    return found


def _keys(row: Mapping[str, Any]) -> Iterator[Key]:
    setup = (row["agent_name"], row["agent_version"], row["model"])
    yield Grain.DAY.value, "", 0, "", None, ""
    yield Grain.AGENT.value, *setup, None, ""
    yield Grain.PERSON.value, "", 0, "", row["user_id"], ""
    yield Grain.PERSON_AGENT.value, *setup, row["user_id"], ""


def _keys_of_deleted(row: DeletedFigures) -> Iterable[Key]:
    """Return where deleted runs count: under no person."""
    setup = (row.agent_name, row.agent_version, row.model)
    if row.grain == Grain.TOOL:
        return [(Grain.TOOL.value, *setup, None, row.tool)]
    return [*_keys({**vars(row), "user_id": None})]
