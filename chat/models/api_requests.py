"""What programs created with an Idempotency-Key: asking again creates nothing."""

from datetime import timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import ApiKey


class ApiRequest(models.Model):
    """A request that creates something, and what it created.

    Of the Idempotency-Key and of the request only digests are saved.
    """

    REMEMBERED_FOR = timedelta(hours=24)

    api_key = models.ForeignKey(
        ApiKey, verbose_name=_("API key"), on_delete=models.CASCADE, related_name="requests"
    )
    key_digest = models.CharField(_("digest of the idempotency key"), max_length=64)
    digest = models.CharField(_("digest"), max_length=64)
    reference = models.BigIntegerField(
        _("what it created"), null=True, blank=True, help_text=_("Empty until it has.")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True, db_index=True)

    class Meta:
        verbose_name = _("API request")
        verbose_name_plural = _("API requests")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "key_digest"], name="one_request_an_idempotency_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.api_key_id} {self.key_digest[:8]}"
