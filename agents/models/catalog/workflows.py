"""Workflows in all their versions."""

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..types import AnyUser
from .automatic_starts import AutomaticStart

CHANGE_PERMISSION = "agents.change_workflow"


class WorkflowQuerySet(models.QuerySet["Workflow"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return workflows this user can see: editors all, others the enabled ones."""
        if not user.is_authenticated:
            return self.none()
        return self if user.has_perm(CHANGE_PERMISSION) else self.filter(enabled=True)

    def for_editor(self, user: AnyUser) -> Self:
        """Return workflows this user can edit."""
        return self if user.has_perm(CHANGE_PERMISSION) else self.none()


class Workflow(models.Model):
    """A workflow's name; what it does is in its newest version."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    description = models.CharField(_("description"), max_length=300, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = WorkflowQuerySet.as_manager()

    class Meta:
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def newest(self) -> "WorkflowVersion | None":
        return self.versions.order_by("-number").first()


class WorkflowVersion(models.Model):
    """One version of a workflow's text. It never changes."""

    workflow = models.ForeignKey(
        Workflow, verbose_name=_("workflow"), on_delete=models.CASCADE, related_name="versions"
    )
    number = models.PositiveIntegerField(_("version"))
    text = models.TextField(_("definition"), help_text=_("YAML or JSON."))
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("created by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("workflow version")
        verbose_name_plural = _("workflow versions")
        ordering = ["workflow_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["workflow", "number"], name="one_version_a_number")
        ]

    def __str__(self) -> str:
        return f"{self.workflow} · {self.number}"


class Schedule(AutomaticStart):
    """When a workflow or an agent starts automatically, and for whom."""

    class Overlap(models.TextChoices):
        SKIP = "skip", _("Skip this time")
        WAIT = "wait", _("Start when it has finished")

    cron = models.CharField(
        _("cron expression"),
        max_length=100,
        help_text=_("Minute, hour, day, month, weekday. Example: 0 9 * * 1-5."),
    )
    overlap = models.CharField(
        _("if the previous run hasn't finished"),
        max_length=8,
        choices=Overlap,
        default=Overlap.SKIP,
        db_default=Overlap.SKIP.value,
        help_text=_("A run that is waiting for a user counts as not finished."),
    )
    next_at = models.DateTimeField(_("next run"), null=True, blank=True, db_index=True)
    accepted = models.JSONField(
        _("accepted"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("Version, parameters and times that the owner accepted."),
    )

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ["workflow__name", "agent__name", "pk"]

    def __str__(self) -> str:
        return f"{self.target}: {self.cron}"
