"""What users have used, where the rows that say so are gone."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class DeletedUsage(models.Model):
    """The tokens of runs that a user deleted on the same day, for the daily limit."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    day = models.DateField(_("day"))
    tokens = models.PositiveBigIntegerField(_("tokens"), default=0)

    class Meta:
        verbose_name = _("usage of deleted runs")
        verbose_name_plural = _("usage of deleted runs")

    def __str__(self) -> str:
        return f"{self.user} {self.day}"
