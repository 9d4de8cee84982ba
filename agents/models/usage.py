"""What users have used, where the rows that say so are gone."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class DeletedUsage(models.Model):
    """What a user used on a day in chats and runs that are deleted, for their quota."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    day = models.DateField(_("day"))
    runs = models.PositiveIntegerField(_("runs"), default=0, db_default=0)
    messages = models.PositiveIntegerField(_("messages"), default=0, db_default=0)
    tokens = models.PositiveBigIntegerField(_("tokens"), default=0)
    cost = models.PositiveBigIntegerField(
        _("cost"), default=0, db_default=0, help_text=_("In millionths of a dollar.")
    )

    class Meta:
        verbose_name = _("usage of deleted runs")
        verbose_name_plural = _("usage of deleted runs")
        constraints = [
            models.UniqueConstraint(fields=["user", "day"], name="one_deleted_usage_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.day}"


class ReadingUsage(models.Model):
    """What models used to read a user's file, until a run that gets the file has paid for it.

    It belongs to the content, because a dictated recording loses its document.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    digest = models.CharField(_("digest"), max_length=64)
    model = models.CharField(_("model"), max_length=200)
    cost = models.FloatField(_("cost (USD)"), null=True, blank=True)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), default=0)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("usage of reading files")
        verbose_name_plural = _("usage of reading files")
        indexes = [models.Index(fields=["user", "digest"], name="usage_of_files")]

    def __str__(self) -> str:
        return f"{self.model} {self.digest[:12]}"
