"""What is known about jobs that were in hand when a process ended."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class JobCrash(models.Model):
    """A document, an import or a run whose process ended during the work."""

    kind = models.CharField(_("kind"), max_length=16)
    item = models.PositiveBigIntegerField(_("ID"))
    deaths = models.PositiveSmallIntegerField(
        _("ended processes"),
        default=0,
        help_text=_("Processes that ended while working on it, without progress in between."),
    )
    crashes = models.PositiveSmallIntegerField(
        _("crashes"),
        default=0,
        help_text=_("Processes that did nothing else and were ended by a signal."),
    )
    progress = models.PositiveIntegerField(_("progress"), default=0)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        verbose_name = _("job crash")
        verbose_name_plural = _("job crashes")
        constraints = [
            models.UniqueConstraint(fields=["kind", "item"], name="one_crash_row_a_job")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.item}"


class PeriodicJob(models.Model):
    """Work that one process does for all: when it last started, and its result."""

    name = models.CharField(_("name"), max_length=40, unique=True)
    started_at = models.DateTimeField(_("last run"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    problem = models.CharField(_("error"), max_length=100, blank=True, db_default="")
    result = models.JSONField(_("result"), default=dict, blank=True)

    class Meta:
        verbose_name = _("periodic job")
        verbose_name_plural = _("periodic jobs")

    def __str__(self) -> str:
        return self.name
