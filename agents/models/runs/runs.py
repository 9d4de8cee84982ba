"""Runs. Events are the source of truth; totals are derived from them."""

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Case, F, When
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from agents.engine.loop import StopReason

from ..api_keys import ApiKey
from ..catalog.agents import Agent
from ..catalog.workflows import WorkflowVersion
from ..sentence_fields import SentenceField, SentenceJSONField
from ..sharing.access import HiddenTopic, Membership, ReviewScope
from ..sharing.projects import Project
from ..types import AnyUser

STOP_REASONS = {
    StopReason.COMPLETED.value: _("Completed"),
    StopReason.MAX_STEPS.value: _("Max steps reached"),
    StopReason.DEGRADED.value: _("Tools failed"),
    StopReason.BLOCKED.value: _("Blocked by a guardrail"),
    StopReason.CANCELLED.value: _("Stopped by a user"),
    StopReason.DUPLICATE.value: _("Max duplicate calls reached"),
    StopReason.TOOL_LIMIT.value: _("Max calls per tool reached"),
    StopReason.BUDGET.value: _("Time, token or cost limit reached"),
    StopReason.ERROR.value: _("Error"),
    StopReason.INTERRUPTED.value: _("Interrupted"),
}
# Topics of test runs, which belong to no chat.
DRAFT_TOPIC_PREFIX = "trial."
# Those of experiments, which are in no list and no figure unless asked for.
EXPERIMENT_TOPIC_PREFIX = f"{DRAFT_TOPIC_PREFIX}experiment."
# Those of programs, which keep their conversations themselves.
API_TOPIC_PREFIX = "api."


class RunQuerySet(models.QuerySet["Run"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the runs this user can see: in their scope, or shared with them."""
        scope = _scope_filter(user)
        topics = Membership.objects.shared_topics(user)
        # Most users share nothing, and an index finds their own runs.
        if scope is None or not topics:
            return self.unhidden(user) if scope is None else self.unhidden(user).filter(scope)
        return self.unhidden(user).filter(scope | models.Q(topic__in=topics))

    def own_or_shared(self, user: AnyUser) -> Self:
        """Return this user's runs and those of chats shared with them, not what they review."""
        topics = Membership.objects.shared_topics(user)
        return self.unhidden(user).filter(models.Q(user=user.pk) | models.Q(topic__in=topics))

    def unhidden(self, user: AnyUser) -> Self:
        """Leave out runs of deleted chats and of others' temporary ones."""
        return self.exclude(topic__in=HiddenTopic.objects.hidden_from(user))

    def listed(self) -> Self:
        """Leave out runs that are in no list: of deleted and of temporary chats."""
        return self.exclude(topic__in=HiddenTopic.objects.values("topic"))

    def in_scope(self, user: AnyUser) -> Self:
        """Return the runs in a user's scope: their own, and those they can review."""
        scope = _scope_filter(user)
        return self.unhidden(user) if scope is None else self.unhidden(user).filter(scope)

    def live(self) -> Self:
        return self.filter(status__in=Run.LIVE)

    def running(self) -> Self:
        return self.filter(status=Run.Status.RUNNING)

    def waiting(self) -> Self:
        return self.filter(status=Run.Status.WAITING)

    def draft_runs(self) -> Self:
        return self.filter(topic__startswith=DRAFT_TOPIC_PREFIX)

    def without_experiments(self) -> Self:
        return self.exclude(topic__startswith=EXPERIMENT_TOPIC_PREFIX)

    def executed(self) -> Self:
        """Leave out imported answers, which nothing here has run: no figure counts them."""
        return self.exclude(route=Run.IMPORTED)

    def queued(self) -> Self:
        """Return runs that wait for a worker."""
        return self.running().filter(owner="", heartbeat_at=None)


def _scope_filter(user: AnyUser) -> models.Q | None:
    """Return a filter for these runs; None for all."""
    own = models.Q(user=user.pk) if user.is_authenticated else models.Q(pk__in=())
    if not user.has_perm("agents.review_runs"):
        return own
    agents = ReviewScope.objects.agents_of(user)
    return None if agents is None else own | models.Q(agent__in=agents)


# `Run.step_count` and `Run.active` for queries.
STEP_COUNT = Case(When(tasks__gt=0, then=F("tasks")), default=F("turns"))
ACTIVE_SECONDS = F("seconds") - F("waited")


class Run(models.Model):
    class Status(models.TextChoices):
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting for a user")
        COMPLETED = "completed", _("completed")
        STOPPED = "stopped", _("stopped")
        BLOCKED = "blocked", _("blocked")
        FAILED = "failed", _("failed")
        INTERRUPTED = "interrupted", _("interrupted")

    LIVE = (Status.RUNNING, Status.WAITING)
    IMPORTED = "imported"  # the route of an answer from another product

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="runs",
        null=True,
        blank=True,
    )
    topic = models.CharField(
        _("topic"), max_length=80, help_text=_("Channel the run's events are sent to.")
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="runs",
    )
    agent_name = models.CharField(_("agent name"), max_length=64)
    model = models.CharField(_("model"), max_length=200)
    dialect = models.CharField(
        _("tool call format"), max_length=10, default=Agent.Dialect.NATIVE
    )
    route = models.CharField(
        _("route"),
        max_length=10,
        blank=True,
        help_text=_("How the model was called: directly or through LiteLLM."),
    )
    query = models.TextField(_("question"))
    history = models.JSONField(
        _("earlier messages"),
        default=list,
        blank=True,
        help_text=_("Saved as sent to the model, so the run can resume after a pause."),
    )
    files = SentenceJSONField(
        _("files"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text=_("References to files that the user attached to the message."),
    )
    answer = models.TextField(_("answer"), blank=True)
    output = models.JSONField(_("structured output"), null=True, blank=True)
    status = models.CharField(
        _("status"), max_length=12, choices=Status, default=Status.RUNNING
    )
    stopped_reason = models.CharField(
        _("reason"), max_length=32, blank=True, choices=STOP_REASONS
    )
    detail = SentenceField(_("what happened"), blank=True)
    advice = SentenceField(_("what to do"), blank=True)
    origin = models.ForeignKey(
        "self",
        verbose_name=_("rerun of"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="reruns",
    )
    origin_step = models.PositiveIntegerField(_("from step"), null=True, blank=True)
    overrides = models.JSONField(
        _("overrides"),
        default=dict,
        blank=True,
        db_default=models.Value({}, models.JSONField()),
        help_text=_(
            "Settings that differ from the agent's: of a rerun, or chosen in the chat."
        ),
    )
    version = models.CharField(
        _("version"),
        max_length=12,
        blank=True,
        default="",
        db_default="",
        help_text=_("Identical for runs with the same settings."),
    )
    agent_version = models.PositiveIntegerField(
        _("agent version"),
        null=True,
        blank=True,
        help_text=_("Version the run started with; empty for tests of a draft."),
    )
    workflow = models.ForeignKey(
        WorkflowVersion,
        verbose_name=_("workflow"),
        on_delete=models.PROTECT,  # runs keep their workflow, which can be disabled
        null=True,
        blank=True,
        related_name="runs",
        help_text=_("Workflow version that this run executes."),
    )
    parameters = models.JSONField(
        _("parameters"),
        default=dict,
        blank=True,
        db_default=models.Value({}, models.JSONField()),
        help_text=_("Values the workflow was started with."),
    )
    project = models.ForeignKey(
        Project,
        verbose_name=_("project"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # only read by the run itself; an index would cost every run
        related_name="+",
        help_text=_("The project of its chat when it started."),
    )
    api_key = models.ForeignKey(
        ApiKey,
        verbose_name=_("API key"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,  # keys are revoked, and hardly ever deleted
        related_name="+",
        help_text=_("The key of the program that started it, if one did."),
    )
    max_steps = models.PositiveIntegerField(_("max steps"), default=10)
    turns = models.PositiveIntegerField(_("turns"), default=0)
    tool_calls = models.PositiveIntegerField(_("tool calls"), default=0)
    prompt_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    completion_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cost = models.FloatField(_("cost (USD)"), null=True, blank=True)
    owner = models.CharField(
        _("owner"), max_length=120, blank=True, help_text=_("Process that executes the run.")
    )
    epoch = models.PositiveIntegerField(
        _("epoch"),
        default=0,
        help_text=_("Increases with each new owner, so an earlier one can't write."),
    )
    heartbeat_at = models.DateTimeField(
        _("heartbeat"),
        null=True,
        blank=True,
        help_text=_("If empty, any worker can take over the run."),
    )
    is_to_stop = models.BooleanField(
        _("stop requested"),
        default=False,
        db_default=False,
        help_text=_("The owner has been asked to stop the run."),
    )
    takeovers = models.PositiveSmallIntegerField(_("takeovers"), default=0)
    step_types = models.TextField(
        _("step types"),
        blank=True,
        db_default="",
        help_text=_("Step types of a finished run, used for search."),
    )
    started_at = models.DateTimeField(_("started"), auto_now_add=True, db_index=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    seconds = models.FloatField(_("duration (seconds)"), null=True, blank=True)
    waited = models.FloatField(
        _("waiting time (seconds)"),
        default=0.0,
        db_default=0.0,
        help_text=_("Part of the duration spent waiting for users or for a free model slot."),
    )
    tasks = models.PositiveIntegerField(
        _("plan steps"),
        default=0,
        db_default=0,
        help_text=_("Plan steps that were started; 0 without a plan."),
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ["-pk"]
        permissions = [
            ("review_runs", "Can review everybody's runs"),
            ("see_personal_data", "Can see personal data in others' runs"),
            ("rerun_runs", "Can run again what others asked, with other guardrails, too"),
        ]
        # The few live or recently failed runs are queried all the time.
        indexes = [
            models.Index(fields=["status", "ended_at"], name="runs_of_a_status"),
            models.Index(fields=["user", "status"], name="runs_of_a_person"),
            # All columns that the console's home counts: rows are long, and a finished run is
            # added once.
            models.Index(
                fields=[
                    *("started_at", "status", "cost", "seconds", "waited"),
                    *("agent_name", "topic"),
                ],
                condition=models.Q(seconds__isnull=False),
                name="finished_runs",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["topic"],
                condition=models.Q(status__in=["running", "waiting"]),
                name="one_live_run_a_topic",
            )
        ]

    # The original of what was masked before saving: only in this process.
    unsaved_values: Mapping[str, Any] = MappingProxyType({})
    # Set by a takeover: its process ended several times, so it gets one of its own.
    needs_isolation = False
    # The model and guardrails that the engine used: only in the process that drove it.
    loaded_model: Any = None

    def __str__(self) -> str:
        return f"#{self.pk} {self.query[:60]}"

    @property
    def original(self) -> Self:
        original = copy(self)
        for name, value in self.unsaved_values.items():
            setattr(original, name, value)
        return original

    def is_owned_by(self, user: AnyUser) -> bool:
        """Whether it is this user's run; runs from a terminal have no user."""
        return self.user_id is not None and self.user_id == user.pk

    def is_decidable_by(self, user: AnyUser) -> bool:
        """Whether this user can decide in it: in a shared chat, any writer."""
        if not self.rights:
            return self.is_owned_by(user)
        return user.pk in self.rights and self.rights[user.pk]

    def has_participant(self, user: AnyUser) -> bool:
        """Whether this user still has access to its chat."""
        return user.pk in self.rights if self.rights else self.is_owned_by(user)

    @cached_property
    def rights(self) -> dict[int, bool]:
        """The members of its chat and whether they can write; empty if not shared."""
        members = Membership.objects.filter(topic=self.topic)
        return dict(members.values_list("user", "may_write"))

    @property
    def chosen_options(self) -> dict[str, Any]:
        """What a user chose instead of the agent's settings: model, effort or temperature."""
        names = ("model", "effort", "temperature")
        return {name: self.overrides[name] for name in names if name in self.overrides}

    @property
    def tuning(self) -> tuple[str, float | None]:
        """The effort and the temperature that a user chose, if any."""
        return self.overrides.get("effort", ""), self.overrides.get("temperature")

    @property
    def is_live(self) -> bool:
        return self.status in self.LIVE

    @property
    def is_waiting(self) -> bool:
        return self.status == self.Status.WAITING

    @property
    def is_rerun(self) -> bool:
        """Whether it is a rerun, even if its origin is deleted."""
        return self.origin_step is not None

    @property
    def is_imported(self) -> bool:
        """Whether the answer comes from another product: it was never executed here."""
        return self.route == self.IMPORTED

    @property
    def step_count(self) -> int:
        """The number of steps: those of its plan or, without one, the agent's turns.

        This is the meaning of "steps" on every page, in exports and in filters.
        """
        return self.tasks or self.turns

    @property
    def active(self) -> float | None:
        """Seconds it worked, without waiting for people; None while it is live."""
        return None if self.seconds is None else max(0.0, self.seconds - self.waited)

    @property
    def is_draft_run(self) -> bool:
        """Whether it is a test run of a draft agent."""
        return self.topic.startswith(DRAFT_TOPIC_PREFIX)

    @property
    def is_experiment_run(self) -> bool:
        """Whether it answers a question of an experiment."""
        return self.topic.startswith(EXPERIMENT_TOPIC_PREFIX)

    @property
    def stops_in_trace(self) -> bool:
        """Whether it is stopped on its trace page, because it is in no chat."""
        return self.is_rerun or self.is_draft_run or self.topic.startswith(API_TOPIC_PREFIX)

    @property
    def is_continuation(self) -> bool:
        """Whether it continues a stopped run."""
        return bool(self.overrides.get("continues"))

    @property
    def is_repeated(self) -> bool:
        """Whether its message was answered before, so that its user didn't just write it."""
        return bool(self.overrides.get("repeats"))

    @property
    def can_continue(self) -> bool:
        """Whether a plan was interrupted by a stop, or given up."""
        was_stopped = self.stopped_reason == StopReason.CANCELLED and not self.detail
        was_left = self.stopped_reason == StopReason.INTERRUPTED
        return self.max_steps == 0 and (was_stopped or was_left)

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
