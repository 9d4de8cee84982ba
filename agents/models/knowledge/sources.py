"""Places that a collection follows: what is in them are documents of the collection."""

from datetime import timedelta
from typing import ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..secret import EncryptedTextField
from ..sentence_fields import SentenceField
from ..sharing.collections import MANAGE_PERMISSION, Collection
from ..types import AnyUser
from .leases import Leased


class DocumentSourceQuerySet(models.QuerySet["DocumentSource"]):
    def managed_by(self, user: AnyUser) -> Self:
        """Return the sources this user can see, change and remove."""
        return self.filter(collection__in=followable_by(user).values("pk"))


def followable_by(user: AnyUser) -> "models.QuerySet[Collection]":
    """Return collections to which this user can add sources.

    Only those of the installation: a source is read with the installation's rights.
    """
    if not user.has_perm(MANAGE_PERMISSION):
        return Collection.objects.none()
    return Collection.objects.managed_by(user).library().filter(owner=None)


class DocumentSource(Leased):
    """A folder, repository, bucket or server whose files are documents of a collection."""

    # One request to a server takes less.
    LEASE: ClassVar[timedelta] = timedelta(minutes=3)

    class Kind(models.TextChoices):
        FOLDER = "folder", _("Folder on the server")
        GIT = "git", _("Git repository")
        S3 = "s3", _("S3 bucket")
        MCP = "mcp", _("MCP server")

    class Interval(models.TextChoices):
        HOURLY = "hourly", _("Every hour")
        DAILY = "daily", _("Every day")
        WEEKLY = "weekly", _("Every week")

    collection = models.ForeignKey(
        Collection,
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        related_name="sources",
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    name = models.CharField(
        _("name"), max_length=80, help_text=_("Its documents' names begin with it.")
    )
    place = models.JSONField(pgettext_lazy("source of documents", "place"), default=dict)
    secret = EncryptedTextField(_("token or key"), blank=True, default="", db_default="")
    enabled = models.BooleanField(_("enabled"), default=True, db_default=True)
    interval = models.CharField(
        _("check"),
        max_length=10,
        choices=Interval,
        default=Interval.DAILY,
        db_default=Interval.DAILY.value,
    )
    checked_at = models.DateTimeField(_("last checked"), null=True, blank=True)
    next_check_at = models.DateTimeField(_("next check"), null=True, blank=True)
    problem = SentenceField(_("problem"), blank=True, default="", db_default="")
    place_version = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )
    skipped = models.PositiveIntegerField(
        _("skipped files"),
        default=0,
        db_default=0,
        help_text=_("Files of the last check that aren't documents."),
    )
    missing = models.PositiveIntegerField(
        _("missing files"),
        default=0,
        db_default=0,
        help_text=_("Documents that are deleted only if an administrator agrees."),
    )
    deletable = models.PositiveIntegerField(
        _("approved deletions"),
        default=0,
        db_default=0,
        help_text=_("How many missing documents an administrator has agreed to delete."),
    )
    removed = models.JSONField(
        _("removed files"),
        default=list,
        help_text=_("Keys of files whose documents a user deleted; they aren't added again."),
    )
    added_at = models.DateTimeField(_("added"), auto_now_add=True)

    objects = DocumentSourceQuerySet.as_manager()

    class Meta:
        verbose_name = _("source of documents")
        verbose_name_plural = _("sources of documents")
        ordering = ["pk"]
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["next_check_at"],
                condition=models.Q(next_check_at__isnull=False),
                name="sources_to_check",
            )
        ]

    def __str__(self) -> str:
        return self.name


INTERVALS = {
    DocumentSource.Interval.HOURLY: timedelta(hours=1),
    DocumentSource.Interval.DAILY: timedelta(days=1),
    DocumentSource.Interval.WEEKLY: timedelta(days=7),
}
