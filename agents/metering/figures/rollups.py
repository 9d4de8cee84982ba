"""Adds the summaries of a day up: all, by agent, by person, by both, by tool and by model."""

from collections import defaultdict
from datetime import date
from typing import Any

from django.db import transaction

from agents.db.fast_writes import insert_many
from agents.db.periodic import periodic

from .catch_up import catch_up, lock, mark_late_events
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
# So many runs are summarized before days are added up: well within an interval.
MAX_RUNS = 2_000


@periodic("dashboard", every=120, once=True)
def summarize() -> None:
    """Summarize runs, and add up the days that have changed."""
    mark_late_events()
    catch_up(MAX_RUNS)
    roll_up_days()


def roll_up_days(limit: int | None = None) -> int:
    """Add up all days that have changed, the newest first; return how many."""
    changed = SummarizedDay.objects.filter(changes__gt=0).order_by("-day")
    days = list(changed.values_list("day", "changes")[:limit])
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
    for (agent, version, model, user), totals in finest.items():
        totals_by_key[Grain.DAY.value, "", 0, "", None, ""].merge(totals)
        totals_by_key[Grain.AGENT.value, agent, version, model, None, ""].merge(totals)
        totals_by_key[Grain.PERSON.value, "", 0, "", user, ""].merge(totals)
        totals_by_key[Grain.PERSON_AGENT.value, agent, version, model, user, ""].merge(totals)
    return totals_by_key


def _parts_of_day(
    model: type[ToolSummary] | type[ModelSummary], day: date
) -> dict[int, list[dict[str, Any]]]:
    rows_by_run: dict[int, list[dict[str, Any]]] = {}
    rows = model.objects.filter(run__day=day, run__is_hidden=False)
    for row in rows.values():
        rows_by_run.setdefault(row["run_id"], []).append({**row})
    return rows_by_run
