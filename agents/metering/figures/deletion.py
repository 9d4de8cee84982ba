"""Keeps the figures of deleted runs, without who asked."""

from typing import Any

from django.db import transaction

from agents.models import HiddenTopic, Run
from agents.models.runs.runs import EXPERIMENT_TOPIC_PREFIX

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
        mark_days([built.summary.day])
        if not built.summary.is_hidden:
            _keep(built)
        # At once, so that it isn't counted twice while the deletion goes on.
        RunSummary.objects.filter(run=instance.pk).delete()


def _find(run: int) -> summaries.SummaryRows | None:
    """Return a run's summary with its current feedback and title.

    Its events may be half deleted, so it isn't computed again.
    """
    row = RunSummary.objects.filter(run=run).first()
    if row is None:
        return next(iter(summaries.build([run])), None)
    summaries.refresh_feedback(row)
    tools = ToolSummary.objects.filter(run=run)
    models = ModelSummary.objects.filter(run=run)
    built = summaries.SummaryRows(row, list(tools), list(models))
    for title in TitleUsage.objects.filter(run=run, is_counted=False):
        summaries.add_late_title(built, title)
    return built


def _keep(built: summaries.SummaryRows) -> None:
    row = built.summary
    values = {name: getattr(row, name) for name in (*COLUMNS, *MEASURES)}
    totals = Totals()
    totals.add_run(values)
    _add(row, totals, grain=Grain.AGENT, model=row.model, tool="")
    for tool_summary in built.tools:
        totals = Totals()
        totals.add_calls(values, vars(tool_summary))
        _add(row, totals, grain=Grain.TOOL, model=row.model, tool=tool_summary.tool)
    for model_summary in built.models:
        totals = Totals()
        totals.add_run(values | {name: getattr(model_summary, name) for name in CALL_MEASURES})
        _add(row, totals, grain=Grain.MODEL, model=model_summary.model, tool="")


def _add(row: RunSummary, totals: Totals, **columns: str) -> None:
    """Add sums to a row; `lock` keeps others from doing so meanwhile."""
    key: dict[str, Any] = {"day": row.day, "agent_name": row.agent_name, **columns}
    key["agent_version"] = row.agent_version
    if (existing := DeletedFigures.objects.filter(**key).first()) is not None:
        totals.add_figures(existing)
    DeletedFigures.objects.update_or_create(totals.columns(), **key)


def on_topic_shown(instance: HiddenTopic, **_signal: Any) -> None:
    """Count the runs of a temporary chat that its user keeps."""
    rows = RunSummary.objects.filter(topic=instance.topic, is_hidden=True)
    mark_stale(rows.values_list("run_id", flat=True))
