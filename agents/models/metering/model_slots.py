"""Who uses a model with limits right now: one row per call, over all processes."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ModelGate(models.Model):
    """What a model with limits has used lately; its lock makes admission one at a time."""

    model = models.CharField(_("model"), max_length=200, unique=True)
    requests_used = models.FloatField(_("requests in the last minute"), default=0)
    tokens_used = models.FloatField(_("tokens in the last minute"), default=0)
    counted_at = models.DateTimeField(_("counted at"))

    class Meta:
        verbose_name = _("model limit")
        verbose_name_plural = _("model limits")

    def __str__(self) -> str:
        return self.model


class ModelSlot(models.Model):
    """One call that uses a model with limits, or waits for its turn, in order of arrival.

    Its process extends `expires_at` while it lives, so those of a crashed one disappear.
    """

    key = models.CharField(_("key"), max_length=32, unique=True)
    model = models.CharField(_("model"), max_length=200)
    is_running = models.BooleanField(_("running"), default=False)
    expires_at = models.DateTimeField(_("expires"))

    class Meta:
        verbose_name = _("model slot")
        verbose_name_plural = _("model slots")
        ordering = ["pk"]
        indexes = [models.Index(fields=["model", "id"], name="model_slot_line")]

    def __str__(self) -> str:
        return f"{self.model} {self.pk}"
