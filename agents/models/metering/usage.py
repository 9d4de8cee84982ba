"""What models used to read files."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


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
    prompt_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    completion_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("file reading usage")
        verbose_name_plural = _("file reading usage")
        indexes = [models.Index(fields=["user", "digest"], name="usage_of_files")]

    def __str__(self) -> str:
        return f"{self.model} {self.digest[:12]}"
