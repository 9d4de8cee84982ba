"""Suggestions, with the runs they are based on and the backtests that measure them."""

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.insight.problems.models import StatusQuerySet
from agents.models import Agent, Run
from agents.models.types import AnyUser
from agents.review.experiments.models import Experiment

AGENT_PERMISSION = "agents.change_agent"
MAX_SUBJECT_CHARS = 120
MAX_TEXT_CHARS = 600


class SuggestionQuerySet(StatusQuerySet["Suggestion"]):
    def changeable_by(self, user: AnyUser) -> Self:
        """Require the right to change agents, too: that is what a suggestion does."""
        return super().changeable_by(user) if user.has_perm(AGENT_PERMISSION) else self.none()


class Suggestion(models.Model):
    """A change to an agent, and why it would help."""

    class Kind(models.TextChoices):
        TOOL_FAILS = "tool_fails", _("Tool fails often")
        TOOL_UNUSED = "tool_unused", _("Tool is never used")
        INSTRUCTION = "instruction", _("Instruction from feedback")

    class Status(models.TextChoices):
        OPEN = "open", pgettext_lazy("suggestion", "open")
        APPLIED = "applied", _("applied")
        DISMISSED = "dismissed", _("dismissed")

    agent = models.ForeignKey(
        Agent, verbose_name=_("agent"), on_delete=models.CASCADE, related_name="suggestions"
    )
    kind = models.CharField(_("type"), max_length=12, choices=Kind)
    subject = models.CharField(
        _("subject"),
        max_length=MAX_SUBJECT_CHARS,
        help_text=_("The tool, or what the feedback has in common."),
    )
    text = models.TextField(
        _("instruction"), blank=True, help_text=_("What is added to the agent's instructions.")
    )
    figures = models.JSONField(_("figures"), default=dict)
    runs = models.ManyToManyField(
        Run, verbose_name=_("runs"), related_name="suggestions", blank=True
    )
    status = models.CharField(
        _("status"), max_length=10, choices=Status, default=Status.OPEN, db_index=True
    )
    first_seen = models.DateTimeField(_("first seen"))
    last_seen = models.DateTimeField(_("last seen"))
    before = models.ForeignKey(
        Experiment,
        verbose_name=_("backtest without it"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    after = models.ForeignKey(
        Experiment,
        verbose_name=_("backtest with it"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    base_version = models.PositiveIntegerField(_("version before"), null=True, blank=True)
    applied_version = models.PositiveIntegerField(_("version with it"), null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("decided by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)

    objects = SuggestionQuerySet.as_manager()

    class Meta:
        verbose_name = _("suggestion")
        verbose_name_plural = _("suggestions")
        ordering = ["-last_seen", "-pk"]
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "kind", "subject"], name="one_suggestion_a_subject"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.subject}"

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.OPEN

    @property
    def is_applied(self) -> bool:
        return self.status == self.Status.APPLIED

    def figure(self, name: str) -> Any:
        return self.figures.get(name, 0)
