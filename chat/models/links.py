"""Public links to chats: what anyone with the link can read."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class PublicLinkQuerySet(models.QuerySet["PublicLink"]):
    def open(self) -> Self:
        """Return links that still work, by the database's clock."""
        return self.filter(expires_at__gt=Now())


class PublicLink(models.Model):
    """A temporary link to a masked copy of a chat. Only the token's digest is saved."""

    class Level(models.TextChoices):
        ANSWERS = "answers", _("messages and answers")
        STEPS = "steps", _("messages, answers and step names")
        DETAILS = "details", _("messages, answers and full steps")

    personal = ("snapshot",)

    session = models.ForeignKey(
        "chat.ChatSession",
        verbose_name=_("chat"),
        on_delete=models.CASCADE,
        related_name="public_links",
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("created by"),
        on_delete=models.CASCADE,
        related_name="+",
    )
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    level = models.CharField(_("shared content"), max_length=10, choices=Level)
    snapshot = models.JSONField(
        _("copy"), help_text=_("The masked copy of the chat that visitors read.")
    )
    made_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"))
    expires_at = models.DateTimeField(_("expires"))
    opened = models.PositiveIntegerField(_("times opened"), default=0)

    objects = PublicLinkQuerySet.as_manager()

    class Meta:
        verbose_name = _("public link")
        verbose_name_plural = _("public links")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.session_id} {self.level}"
