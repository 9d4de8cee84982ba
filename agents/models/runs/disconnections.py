"""Periods in which a user's page was disconnected."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from .runs import Run


class Disconnection(models.Model):
    """A period in which a user's page was disconnected; without an end, it never returned."""

    class Reason(models.TextChoices):
        LOST = "lost", _("connection lost")
        CLOSED = "closed", _("page closed")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="disconnections")
    page = models.CharField(
        _("page"), max_length=40, help_text=_("ID that an open page gives itself.")
    )
    reason = models.CharField(_("reason"), max_length=8, choices=Reason, default=Reason.LOST)
    left_at = models.DateTimeField(_("disconnected"))
    came_back_at = models.DateTimeField(_("reconnected"), null=True, blank=True)

    class Meta:
        verbose_name = _("disconnection")
        verbose_name_plural = _("disconnections")
        ordering = ["run_id", "left_at"]

    def __str__(self) -> str:
        return f"{self.run_id} {self.reason} {self.left_at:%H:%M:%S}"
