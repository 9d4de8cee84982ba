"""The steps of a run, derived from its events."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..sentence_fields import SentenceField, SentenceJSONField
from .runs import Run


class AgentStep(models.Model):
    """One step: a thought, a tool call, an answer, a guardrail finding and so on."""

    class Kind(models.TextChoices):
        THOUGHT = "thought", _("Thought")
        TOOL = "tool", _("Tool")
        ANSWER = "answer", _("Answer")
        GUARDRAIL = "guardrail", _("Guardrail")
        PLAN = "plan", _("Plan")
        TASK = "task", _("Task")
        EVALUATION = "evaluation", _("Check")
        BUDGET = "budget", _("Limit")

    class Status(models.TextChoices):
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        BLOCKED = "blocked", _("blocked")
        REJECTED = "rejected", _("rejected")
        CANCELLED = "cancelled", _("canceled")
        CUT = "cut", _("interrupted")
        UNKNOWN = "unknown", _("outcome unknown")
        SKIPPED = "skipped", _("skipped")
        UNSTARTED = "unstarted", _("not started")

    class Effect(models.TextChoices):
        READ = "read", _("read-only")
        WRITE = "idempotent", _("makes changes")
        IRREVERSIBLE = "at_most_once", _("irreversible")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField(_("number"))
    turn = models.PositiveIntegerField(_("turn"), default=0)
    kind = models.CharField(_("type"), max_length=10, choices=Kind)
    status = models.CharField(
        _("status"), max_length=10, choices=Status, default=Status.RUNNING
    )
    agent_name = models.CharField(_("agent name"), max_length=64, blank=True)
    parent = models.PositiveIntegerField(
        _("parent"), null=True, blank=True, help_text=_("Step that this one is part of.")
    )
    depth = models.PositiveSmallIntegerField(_("depth"), default=0)
    call_id = models.TextField(_("call ID"), blank=True)
    failed_tool = models.TextField(
        _("failed tool"),
        blank=True,
        default="",
        db_default="",
        help_text=_("Tool that was called first and failed, so that this one was called."),
    )
    thought = models.TextField(_("thought"), blank=True)
    action = models.TextField(_("action"), blank=True)
    action_input = SentenceJSONField(_("arguments"), null=True, blank=True)
    effect = models.CharField(
        _("side effects"),
        max_length=12,
        choices=Effect,
        blank=True,
        default="",
        db_default="",
        help_text=_("Possible side effects of the call."),
    )
    observation = SentenceField(_("observation"), blank=True)
    attachments = SentenceJSONField(
        _("attachments"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text=_("Images, sounds and files that the tool returned."),
    )
    sources = models.JSONField(
        pgettext_lazy("step", "sources"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text=_("Passages that a search returned, with their numbers."),
    )
    is_untrusted = models.BooleanField(
        _("untrusted"),
        default=False,
        db_default=False,
        help_text=_("Whether the observation is text from outside."),
    )
    request = models.JSONField(_("request"), null=True, blank=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=1)
    notes = SentenceJSONField(
        _("notes"),
        default=list,
        blank=True,
        help_text=_("What happened along the way: retries, fallbacks, omissions."),
    )
    prompt_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    completion_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cost = models.FloatField(_("cost (USD)"), null=True, blank=True)
    cache_read_tokens = models.PositiveIntegerField(
        _("input tokens from the provider's cache"), default=0, db_default=0
    )
    cache_savings = models.FloatField(
        _("saved by the provider's cache (USD)"),
        null=True,
        blank=True,
        help_text=_("Negative if writing into the cache cost more than reading saved."),
    )
    first_seq = models.PositiveIntegerField(_("first event"), default=0)
    started_at = models.DateTimeField(_("started"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        ordering = ["run_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="one_step_a_number")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.number} {self.kind}"

    @property
    def has_effects(self) -> bool:
        """Whether it is a call that changes something outside, or would have."""
        is_call = self.kind == self.Kind.TOOL
        return is_call and self.effect in {self.Effect.WRITE, self.Effect.IRREVERSIBLE}

    @property
    def is_live(self) -> bool:
        return self.status == self.Status.RUNNING

    @property
    def is_open(self) -> bool:
        return self.status in {self.Status.RUNNING, self.Status.WAITING}

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
