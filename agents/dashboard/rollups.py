"""Adds the summaries of a day up: all, by agent, by person, by both, by tool and by model."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from agents.db.fast_writes import insert_many

from .catch_up import lock, mark_days
from .models import (
    CALL_MEASURES,
    MEASURES,
    DailyFigures,
    DeletedFigures,
    ModelSummary,
    RunSummary,
    SummarizedDay,
    ToolSummary,
)
from .totals import Totals

Grain = DailyFigures.Grain
KEYS = ("grain", "agent_name", "agent_version", "model", "user_id", "tool")
Key = tuple[str, str, int, str, int | None, str]
Setup = tuple[str, int, str, int | None]  # agent, version, model, user
COLUMNS = ("agent_name", "agent_version", "model", "user_id", "active_class", "first_class")


def roll_up_days(most: int | None = None) -> int:
    """Add up all days that have changed, the newest first; return how many."""
    changed = SummarizedDay.objects.filter(changes__gt=0).order_by("-day")
    days = list(changed.values_list("day", "changes")[:most])
    return sum(_roll_up(day, changes) for day, changes in days)


def mark_days_without_models() -> None:
    """Have days added up again that a process of an earlier version has added up."""
    of_models = DailyFigures.objects.filter(grain=Grain.MODEL, day=OuterRef("day"))
    called = ModelSummary.objects.filter(run__day=OuterRef("day"), run__is_hidden=False)
    days = DailyFigures.objects.filter(~Exists(of_models), Exists(called), grain=Grain.DAY)
    mark_days(days.values_list("day", flat=True))


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
    totals_by_key: defaultdict[Key, Totals] = defaultdict(Totals)
    finest: defaultdict[Setup, Totals] = defaultdict(Totals)
    tools, models = (_parts_of_day(kind, day) for kind in (ToolSummary, ModelSummary))
    for row in RunSummary.objects.filter(day=day, is_hidden=False).values(
        "run_id", *COLUMNS, *MEASURES
    ):
        agent_key = (row["agent_name"], row["agent_version"])
        model = row["model"]
        finest[*agent_key, model, row["user_id"]].add_run(row)
        for tool_row in tools.get(row["run_id"], ()):
            totals_by_key[
                Grain.TOOL.value, *agent_key, model, None, tool_row["tool"]
            ].add_calls(row, tool_row)
        for model_row in models.get(row["run_id"], ()):
            own = {name: model_row[name] for name in CALL_MEASURES}
            totals_by_key[Grain.MODEL.value, *agent_key, model_row["model"], None, ""].add_run(
                row | own
            )
    for deleted in DeletedFigures.objects.filter(day=day):
        setup = (deleted.agent_name, deleted.agent_version, deleted.model)
        if deleted.grain == Grain.AGENT:
            finest[*setup, None].add_figures(deleted)  # under no person
        else:
            totals_by_key[deleted.grain, *setup, None, deleted.tool].add_figures(deleted)
    for setup_key, totals in finest.items():
        for key in _keys(*setup_key):
            totals_by_key[key].merge(totals)
    return totals_by_key


def _parts_of_day(
    model: type[ToolSummary] | type[ModelSummary], day: date
) -> dict[int, list[dict[str, Any]]]:
    rows_by_run: dict[int, list[dict[str, Any]]] = {}
    rows = model.objects.filter(run__day=day, run__is_hidden=False)
    for row in rows.values():
        rows_by_run.setdefault(row["run_id"], []).append({**row})
    return rows_by_run


def _keys(agent: str, version: int, model: str, user: int | None) -> Iterator[Key]:
    yield Grain.DAY.value, "", 0, "", None, ""
    yield Grain.AGENT.value, agent, version, model, None, ""
    yield Grain.PERSON.value, "", 0, "", user, ""
    yield Grain.PERSON_AGENT.value, agent, version, model, user, ""
