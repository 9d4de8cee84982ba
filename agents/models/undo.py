"""What administrators deleted in the console, for a few minutes."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from .secret import EncryptedTextField


class Deletion(models.Model):
    """Deleted rows as JSON, encrypted because they can contain secrets."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    created_at = models.DateTimeField(_("deleted"), auto_now_add=True, db_index=True)
    rows = EncryptedTextField(_("rows"))

    class Meta:
        verbose_name = _("deletion")
        verbose_name_plural = _("deletions")

    def __str__(self) -> str:
        return f"{self.user} {self.created_at}"
