"""What administrators deleted in the console and can restore for a while."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from .secret import EncryptedTextField


class Deletion(models.Model):
    """A deleted row and what was deleted with it, as encrypted JSON: it can contain secrets."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    created_at = models.DateTimeField(_("deleted"), auto_now_add=True, db_index=True)
    kind = models.CharField(_("kind"), max_length=100, help_text=_("E.g. agents.Agent."))
    object_id = models.CharField(_("ID"), max_length=64)
    # Empty if the row's name is users' text.
    name = models.CharField(_("name"), max_length=200, blank=True)
    rows = EncryptedTextField(_("rows"))

    class Meta:
        verbose_name = _("deletion")
        verbose_name_plural = _("deletions")

    def __str__(self) -> str:
        return self.name or f"#{self.object_id}"
