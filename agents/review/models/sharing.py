"""Saved views of the trace list, and links to single runs."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from .fields import MAX_NAME_CHARS, run_foreign_key, user_foreign_key


class SavedView(models.Model):
    """A saved filter of the list with its look; without a name, a user's own columns."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="saved_views",
    )
    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS)
    query = models.TextField(_("filter"), blank=True)
    columns = models.CharField(
        _("columns"), max_length=300, blank=True, default="", db_default=""
    )
    sort = models.CharField(_("sort"), max_length=32, blank=True, default="", db_default="")
    grouping = models.CharField(
        _("group by"), max_length=32, blank=True, default="", db_default=""
    )

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_view_a_name")]

    def __str__(self) -> str:
        return self.name


class ShareLinkQuerySet(models.QuerySet["ShareLink"]):
    def open(self) -> Self:
        """Return links that still work, by the database's clock."""
        return self.filter(revoked_at=None, expires_at__gt=Now())


class ShareLink(models.Model):
    """A temporary link to one run for anyone who has it. Only the token's digest is saved."""

    class Level(models.TextChoices):
        PERSON = "person", _("question, answer and steps, without details")
        REVIEWER = "reviewer", _("everything, with personal data masked")
        AUDITOR = "auditor", _("everything")

    run = run_foreign_key("share_links")
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    level = models.CharField(_("shared content"), max_length=10, choices=Level)
    made_by = user_foreign_key(_("created by"))
    made_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    opened = models.PositiveIntegerField(_("times opened"), default=0)

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        verbose_name = _("share link")
        verbose_name_plural = _("share links")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.run_id} {self.level}"
