"""Keeps the figures of deleted runs, without who asked."""

from typing import Any

from django.db import transaction

from agents.models import HiddenTopic, Run
from agents.models.runs import EXPERIMENT_TOPIC_PREFIX

from . import summaries
from .catch_up import lock, mark_days, mark_stale
from .models import (
    CALL_MEASURES,
    MEASURES,
    DailyFigures,
    DeletedFigures,
    ModelSummary,
    RunSummary,
    TitleUsage,
    ToolSummary,
)
from .rollups import COLUMNS
from .totals import Totals

Grain = DailyFigures.Grain


def keep_figures_of_run(instance: Run, **_signal: Any) -> None:
    """Count a run that is about to be deleted under its day, agent and tools."""
    if instance.is_imported or instance.topic.startswith(EXPERIMENT_TOPIC_PREFIX):
        return
    with transaction.atomic():
        lock()
        built = _find(instance.pk)
        if built is None:
            return
        mark_days([built.run.day])
        if not built.run.is_hidden:
            _keep(built)
        # At once, so that it isn't counted twice while the deletion goes on.
        RunSummary.objects.filter(run=instance.pk).delete()


def _find(run: int) -> summaries.Built | None:
    """Return a run's summary with its current feedback and title.

    Its events may be half deleted, so it isn't computed again.
    """
    row = RunSummary.objects.filter(run=run).first()
    if row is None:
        return next(iter(summaries.build([run])), None)
    summaries.refresh_feedback(row)
    tools, models = ToolSummary.objects.filter(run=run), ModelSummary.objects.filter(run=run)
    built = summaries.Built(row, list(tools), list(models))
    for title in TitleUsage.objects.filter(run=run, is_counted=False):
        summaries.add_late_title(built, title)
    return built


def _keep(built: summaries.Built) -> None:
    row = built.run
    values = {name: getattr(row, name) for name in (*COLUMNS, *MEASURES)}
    whole = Totals()
    whole.add_run(values)
    _add(row, whole, grain=Grain.AGENT, model=row.model, tool="")
    for tool in built.tools:
        part = Totals()
        part.add_calls(values, vars(tool))
        _add(row, part, grain=Grain.TOOL, model=row.model, tool=tool.tool)
    for model in built.models:
        part = Totals()
        part.add_run(values | {name: getattr(model, name) for name in CALL_MEASURES})
        _add(row, part, grain=Grain.MODEL, model=model.model, tool="")


def _add(row: RunSummary, sums: Totals, **kind: str) -> None:
    """Add sums to a row; `lock` keeps others from doing so meanwhile."""
    key: dict[str, Any] = {"day": row.day, "agent_name": row.agent_name, **kind}
    key["agent_version"] = row.agent_version
    if (known := DeletedFigures.objects.filter(**key).first()) is not None:
        sums.add_figures(known)
    DeletedFigures.objects.update_or_create(sums.columns(), **key)


def on_feedback(instance: Any, **_signal: Any) -> None:
    """Count a run's ratings and correction again."""
    mark_stale([instance.run_id])


def on_topic_shown(instance: HiddenTopic, **_signal: Any) -> None:
    """Count the runs of a temporary chat that its user keeps."""
    rows = RunSummary.objects.filter(topic=instance.topic, is_hidden=True)
    mark_stale(rows.values_list("run_id", flat=True))
