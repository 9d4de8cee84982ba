"""Problems, the runs they happened in, their counts and the history of their status."""

from typing import Self, TypeVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.models import Agent, ReviewScope, Run
from agents.models.sentence_fields import SentenceField
from agents.models.types import AnyUser

VIEW_PERMISSION = "problems.view_problem"
CHANGE_PERMISSION = "problems.change_problem"
Row = TypeVar("Row", bound=models.Model)
MAX_TITLE_CHARS = 200
MAX_SUBJECT_CHARS = 120


class StatusQuerySet(models.QuerySet[Row]):
    """Rows about agents that people decide on."""

    def in_scope(self, user: AnyUser) -> Self:
        """Return those about agents in this user's scope."""
        if not self._is_allowed(user, "view"):
            return self.none()
        agents = ReviewScope.objects.agents_of(user)
        return self.all() if agents is None else self.filter(agent__in=agents)

    def for_user(self, user: AnyUser) -> Self:
        """Return what this user can see."""
        return self.in_scope(user)

    def changeable_by(self, user: AnyUser) -> Self:
        """Return what this user can decide on."""
        return self.for_user(user) if self._is_allowed(user, "change") else self.none()

    def open(self) -> Self:
        return self.filter(status="open")

    def _is_allowed(self, user: AnyUser, action: str) -> bool:
        options = self.model._meta
        return user.has_perm(f"{options.app_label}.{action}_{options.model_name}")


class ProblemQuerySet(StatusQuerySet["Problem"]):
    def for_user(self, user: AnyUser) -> Self:
        """Leave out merged ones, to which only older rows refer."""
        return self.in_scope(user).filter(merged_into=None)


class Problem(models.Model):
    """Occurrences with the same cause: equal fingerprints, or merged by hand."""

    class Kind(models.TextChoices):
        MODEL_ERROR = "model_error", _("Model error")
        TOOL_ERROR = "tool_error", _("Tool error")
        RUN_ERROR = "run_error", _("Run failed")
        EMPTY_ANSWER = "empty_answer", _("Empty answer")
        SCHEMA = "schema", _("Answer didn't match its schema")
        NO_PLAN = "no_plan", _("No valid plan")
        REPLAN_LIMIT = "replan_limit", _("Replan limit")
        STEP_LIMIT = "step_limit", _("Step limit")
        LOOP = "loop", _("Loop")
        TOOL_LIMIT = "tool_limit", _("Tool call limit")
        GUARDRAIL = "guardrail", _("Guardrail block")
        REJECTED = "rejected", _("Rejected approval")
        RATING = "rating", _("Bad rating")
        INTERRUPTED = "interrupted", _("Interrupted")

    class Status(models.TextChoices):
        OPEN = "open", pgettext_lazy("problem", "open")
        RESOLVED = "resolved", _("resolved")
        IGNORED = "ignored", _("ignored")

    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    algorithm = models.PositiveSmallIntegerField(
        _("grouping version"),
        help_text=_("A newer one applies to new occurrences; older problems stay."),
    )
    kind = models.CharField(_("type"), max_length=16, choices=Kind)
    stage = models.CharField(_("stage"), max_length=16)
    subject = models.CharField(
        _("cause"),
        max_length=MAX_SUBJECT_CHARS,
        blank=True,
        help_text=_("The tool, provider, guardrail or reason."),
    )
    message = SentenceField(
        _("message"),
        blank=True,
        help_text=_("Without numbers, names, addresses, secrets and personal data."),
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="problems",
    )
    agent_name = models.CharField(_("agent name"), max_length=64)
    status = models.CharField(
        _("status"), max_length=10, choices=Status, default=Status.OPEN, db_index=True
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("assigned to"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    first_seen = models.DateTimeField(_("first seen"))
    last_seen = models.DateTimeField(_("last seen"), db_index=True)
    count = models.PositiveIntegerField(_("occurrences"), default=0)
    run_count = models.PositiveIntegerField(_("runs"), default=0)
    resolved_at = models.DateTimeField(_("resolved"), null=True, blank=True)
    resolved_version = models.PositiveIntegerField(
        _("resolved in version"),
        null=True,
        blank=True,
        help_text=_("Runs of earlier versions don't open the problem again."),
    )
    awaits_version = models.BooleanField(
        _("resolved in the next version"),
        default=False,
        help_text=_("Whether only runs of that version or later open the problem again."),
    )
    returns_on_spike = models.BooleanField(
        _("ignored until it spikes"),
        default=False,
        help_text=_("Whether an ignored problem is opened again when it spikes."),
    )
    merged_into = models.ForeignKey(
        "self",
        verbose_name=_("merged into"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="merged",
    )

    objects = ProblemQuerySet.as_manager()

    class Meta:
        verbose_name = _("problem")
        verbose_name_plural = _("problems")
        ordering = ["-last_seen", "-pk"]
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint", "algorithm"], name="one_problem_a_fingerprint"
            )
        ]

    def __str__(self) -> str:
        return self.message or self.subject or str(self.get_kind_display())

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.OPEN


class ProblemRun(models.Model):
    """A run in which a problem occurred; deleted with the run, while the counts stay."""

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="occurrences")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="problems")
    times = models.PositiveIntegerField(_("occurrences"), default=1)
    at = models.DateTimeField(_("time"))

    class Meta:
        verbose_name = _("affected run")
        verbose_name_plural = _("affected runs")
        ordering = ["-at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["problem", "run"], name="one_occurrence_a_run")
        ]
        indexes = [models.Index(fields=["problem", "at"], name="runs_of_a_problem")]

    def __str__(self) -> str:
        return f"{self.problem_id}/{self.run_id}"


class ProblemHour(models.Model):
    """Occurrences of a problem within an hour, for its trend and for spikes."""

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField(_("hour"))
    count = models.PositiveIntegerField(_("occurrences"), default=0)

    class Meta:
        verbose_name = _("problem count")
        verbose_name_plural = _("problem counts")
        constraints = [
            models.UniqueConstraint(fields=["problem", "hour"], name="one_count_an_hour")
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} {self.hour:%Y-%m-%d %H}: {self.count}"


class ProblemTag(models.Model):
    """Occurrences of a problem with an agent version or a model."""

    class Kind(models.TextChoices):
        VERSION = "version", _("agent version")
        MODEL = "model", _("model")

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="tags")
    kind = models.CharField(_("type"), max_length=8, choices=Kind)
    value = models.CharField(_("value"), max_length=200)
    count = models.PositiveIntegerField(_("occurrences"), default=0)

    class Meta:
        verbose_name = _("problem tag")
        verbose_name_plural = _("problem tags")
        ordering = ["-count", "value"]
        constraints = [
            models.UniqueConstraint(
                fields=["problem", "kind", "value"], name="one_count_a_problem_tag"
            )
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} {self.kind}={self.value}: {self.count}"


class ProblemChange(models.Model):
    """What happened to a problem: found, resolved, opened again, assigned and so on."""

    class Action(models.TextChoices):
        FOUND = "found", _("found")
        REOPENED = "reopened", _("opened again by a new occurrence")
        SPIKED = "spiked", _("spiked")
        RESOLVED = "resolved", _("resolved")
        RESOLVED_NEXT = "resolved_next", _("resolved in the next version")
        IGNORED = "ignored", _("ignored")
        IGNORED_UNTIL_SPIKE = "ignored_spike", _("ignored until it spikes")
        OPENED = "opened", _("opened again")
        ASSIGNED = "assigned", _("assigned")
        MERGED = "merged", _("merged")

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="changes")
    action = models.CharField(_("action"), max_length=16, choices=Action)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    at = models.DateTimeField(_("time"))
    version = models.PositiveIntegerField(_("agent version"), null=True, blank=True)
    details = models.JSONField(_("details"), default=dict, blank=True)
    is_announced = models.BooleanField(
        _("announced"), default=True, help_text=_("Whether alerts have handled it.")
    )

    class Meta:
        verbose_name = _("problem change")
        verbose_name_plural = _("problem changes")
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(
                fields=["id"],
                condition=models.Q(is_announced=False),
                name="changes_to_announce",
            )
        ]

    def __str__(self) -> str:
        return f"{self.problem_id} {self.action}"
