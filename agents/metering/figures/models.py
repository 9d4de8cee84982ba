"""Figures of runs: one summary row per run, added up by day.

Summaries are derived from a run's rows and can be deleted and computed again at any time. Only
`DeletedFigures` can't: they are all that is left of deleted runs, without their users.
"""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Run

# Of what summaries hold: those of an earlier one are computed again.
VERSION = 4
# Instead of the name of a tool that doesn't exist; no tool can have a space in its name.
UNKNOWN_TOOL = "unknown tool"


def _count() -> "models.PositiveIntegerField[int, int]":
    return models.PositiveIntegerField(default=0, db_default=0)


def _sum() -> "models.PositiveBigIntegerField[int, int]":
    return models.PositiveBigIntegerField(default=0, db_default=0)


class CallMeasures(models.Model):
    """What model calls use, which is added up. Costs are billionths of a dollar."""

    model_calls = _count()
    input_tokens = _sum()
    output_tokens = _sum()
    cache_read_tokens = _sum()  # part of the input
    cache_write_tokens = _sum()  # part of the input
    reasoning_tokens = _sum()  # part of the output
    answer_cost = _sum()
    replan_cost = _sum()
    retry_cost = _sum()
    check_cost = _sum()
    title_cost = _sum()
    # What caches have saved: less than nothing if a provider's was only written.
    saved_cost = models.BigIntegerField(default=0, db_default=0)
    unpriced_calls = _count()
    unpriced = _count()  # runs with such a call

    class Meta:
        abstract = True


class Measures(CallMeasures):
    """What is added up of runs. Times are milliseconds."""

    runs = _count()
    # How they ended: each run is one of these.
    completed = _count()
    failed = _count()
    blocked = _count()
    cancelled = _count()
    over_budget = _count()
    limited = _count()
    interrupted = _count()

    planned = _count()  # runs with a plan
    replanned = _count()  # runs whose plan was changed
    replans = _count()
    retries = _count()
    fallbacks = _count()
    tool_calls = _count()
    tool_errors = _count()
    tool_timeouts = _count()
    timed_out = _count()  # runs in which a model or a tool timed out

    cached = _count()  # runs answered from a cache

    ratings_up = _count()
    ratings_down = _count()
    rated = _count()  # runs with a rating
    corrected = _count()
    regenerated = _count()
    guardrail_hits = _count()
    guardrail_blocks = _count()
    guarded = _count()  # runs with a hit

    active_count = _count()  # runs with an active time
    active_ms = _sum()
    first_count = _count()  # runs with a time to the first word
    first_ms = _sum()

    class Meta:
        abstract = True


class RunSummary(Measures):
    """The figures of one finished run."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="figures")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        db_index=False,
        related_name="+",
    )
    topic = models.CharField(max_length=80, db_index=True)
    day = models.DateField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    agent_name = models.CharField(max_length=64)
    agent_version = models.PositiveIntegerField(default=0)  # 0: a draft, or none
    model = models.CharField(max_length=200)  # the one it started with
    last_seq = models.PositiveIntegerField(default=0)
    active_class = models.SmallIntegerField(null=True)  # of its histogram
    first_class = models.SmallIntegerField(null=True)
    is_hidden = models.BooleanField(default=False)  # of a temporary chat: counts nowhere
    version = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = _("run summary")
        verbose_name_plural = _("run summaries")
        default_permissions = ()
        indexes = [
            models.Index(fields=["day"], name="summaries_of_a_day"),
            models.Index(fields=["user", "day"], name="summaries_of_a_person"),
            models.Index(fields=["agent_name", "day"], name="summaries_of_an_agent"),
            models.Index(fields=["version", "run"], name="outdated_summaries"),
        ]

    def __str__(self) -> str:
        return f"#{self.run_id}"


class ToolSummary(models.Model):
    """The calls of one tool in one run."""

    run = models.ForeignKey(
        RunSummary,
        on_delete=models.CASCADE,
        to_field="run",
        db_index=False,
        related_name="tools",
    )
    tool = models.CharField(max_length=64)
    calls = _count()
    errors = _count()
    timeouts = _count()
    call_ms = _sum()
    call_histogram = models.TextField(default="", db_default="")

    class Meta:
        verbose_name = _("tool summary")
        verbose_name_plural = _("tool summaries")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "tool"], name="one_tool_summary_a_run")
        ]
        indexes = [models.Index(fields=["tool", "run"], name="runs_of_a_tool")]

    def __str__(self) -> str:
        return f"#{self.run_id} {self.tool}"


class ModelSummary(CallMeasures):
    """The calls of one model in one run; of a run without calls, the model it started with."""

    run = models.ForeignKey(
        RunSummary,
        on_delete=models.CASCADE,
        to_field="run",
        db_index=False,
        related_name="models",
    )
    model = models.CharField(max_length=200)

    class Meta:
        verbose_name = _("model summary")
        verbose_name_plural = _("model summaries")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "model"], name="one_model_summary_a_run")
        ]
        indexes = [models.Index(fields=["model", "run"], name="runs_of_a_model")]

    def __str__(self) -> str:
        return f"#{self.run_id} {self.model}"


class TitleUsage(models.Model):
    """What the title of a chat used, after the run that it was made from."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="title_usage")
    model = models.CharField(max_length=200)
    input_tokens = _sum()
    output_tokens = _sum()
    cost = models.BigIntegerField(null=True)  # billionths of a dollar; None is unknown
    is_counted = models.BooleanField(default=False)  # in the run's summary

    class Meta:
        verbose_name = _("usage of a title")
        verbose_name_plural = _("usage of titles")
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["run"], condition=models.Q(is_counted=False), name="titles_to_count"
            )
        ]

    def __str__(self) -> str:
        return f"#{self.run_id}"


class Figures(Measures):
    """Summaries of a day, added up by some of their columns."""

    class Grain(models.TextChoices):
        DAY = "day", "all runs"
        AGENT = "agent", "agent, version, model"
        PERSON = "person", "person"
        PERSON_AGENT = "both", "person, agent, version, model"
        TOOL = "tool", "tool, agent, version, model"
        # Of the models that were called. Those of other rows are what runs started with.
        MODEL = "model", "model, agent, version"

    grain = models.CharField(max_length=8, choices=Grain)
    day = models.DateField()
    agent_name = models.CharField(max_length=64, default="")
    agent_version = models.PositiveIntegerField(default=0)
    model = models.CharField(max_length=200, default="")
    tool = models.CharField(max_length=64, default="")
    active_histogram = models.TextField(default="")
    first_histogram = models.TextField(default="")
    # Of a tool's row: of its calls. The other columns are those of the runs that called it,
    # except the columns of tool calls.
    call_ms = _sum()
    call_histogram = models.TextField(default="")

    class Meta:
        abstract = True


class DailyFigures(Figures):
    """A day's summaries and what is deleted of it, added up."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        db_index=False,
        related_name="+",
    )

    class Meta:
        verbose_name = _("daily figures")
        verbose_name_plural = _("daily figures")
        default_permissions = ()
        permissions = [("view_dashboard", "Can see the dashboard")]
        indexes = [
            models.Index(fields=["grain", "day", "agent_name"], name="figures_of_a_day"),
            models.Index(fields=["user", "grain", "day"], name="figures_of_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.grain}"


class DeletedFigures(Figures):
    """What deleted runs had, without who asked."""

    class Meta:
        verbose_name = _("figures of deleted runs")
        verbose_name_plural = _("figures of deleted runs")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["grain", "day", "agent_name", "agent_version", "model", "tool"],
                name="one_row_of_deleted_figures",
            )
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.grain}"


class SummarizedDay(models.Model):
    """Whether a day's figures are current: `changes` counts what changed since they were."""

    day = models.DateField(primary_key=True)
    changes = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name = _("summarized day")
        verbose_name_plural = _("summarized days")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.day)


class StaleRun(models.Model):
    """A run that was live when it was looked at, or whose feedback or chat has changed.

    Its summary is computed as soon as it has ended. Each change is a row of its own, so that
    one during the computation isn't lost.
    """

    run = models.BigIntegerField(db_index=True)

    class Meta:
        verbose_name = _("changed run")
        verbose_name_plural = _("changed runs")
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.run}"


class Progress(models.Model):
    """Up to where runs are summarized: one row, which is locked while summaries are written."""

    last_run = models.BigIntegerField(default=0)  # the newest run that was looked at

    class Meta:
        verbose_name = _("dashboard progress")
        verbose_name_plural = _("dashboard progress")
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.last_run}"


MEASURES = tuple(field.name for field in Measures._meta.fields)
CALL_MEASURES = tuple(field.name for field in CallMeasures._meta.fields)
# A run is exactly one of these.
OUTCOMES = (
    *("completed", "failed", "blocked", "cancelled", "over_budget", "limited"),
    "interrupted",
)
