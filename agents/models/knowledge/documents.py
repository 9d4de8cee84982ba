"""Documents and their parts, as they were read."""

from pathlib import PureWindowsPath
from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..sentence_fields import SentenceField
from ..sharing.collections import Collection
from ..types import AnyUser
from .files import StoredFile
from .leases import Leased
from .refetching import Refetched, Sitemap
from .sources import DocumentSource


class DocumentQuerySet(models.QuerySet["Document"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the documents this user can find and open."""
        return self.filter(collection__in=Collection.objects.for_user(user).values("pk"))

    def editable_by(self, user: AnyUser) -> Self:
        """Return the documents this user can replace and delete."""
        return self.filter(collection__in=Collection.objects.editable_by(user).values("pk"))

    def ready(self) -> Self:
        """Return documents with passages: also those that are being read again."""
        return self.exclude(indexed_at=None)


class Document(Refetched, Leased):
    class Language(models.TextChoices):
        ENGLISH = "en", _("English")
        JAPANESE = "ja", _("Japanese")

    class Status(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        READING = "reading", _("Reading")
        INDEXING = "indexing", _("Indexing")
        READY = "ready", _("Ready")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Canceled")

    class SentAs(models.TextChoices):
        SIZE = "", _("by its size")
        WHOLE = "whole", _("Whole text")
        SEARCHABLE = "searchable", _("Searchable")

    collection = models.ForeignKey(
        Collection,
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        related_name="documents",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("added by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="documents",
    )
    title = models.CharField(_("title"), max_length=200)
    source = models.CharField(
        pgettext_lazy("document", "source"),
        max_length=500,
        help_text=_("Where the text came from: a file name, a path or a URL."),
    )
    url = models.CharField(
        _("address"),
        max_length=2_000,
        blank=True,
        default="",
        db_default="",
        help_text=_("Fetched again from here."),
    )
    etag = models.CharField(
        max_length=200, blank=True, default="", db_default="", editable=False
    )
    last_modified = models.CharField(
        max_length=200, blank=True, default="", db_default="", editable=False
    )
    file = models.ForeignKey(
        StoredFile,
        verbose_name=_("file"),
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="documents",
    )
    mime_type = models.CharField(
        _("type"), max_length=130, blank=True, default="", db_default=""
    )
    size = models.PositiveBigIntegerField(_("size (bytes)"), default=0, db_default=0)
    pages = models.PositiveIntegerField(_("pages"), null=True, blank=True)
    language = models.CharField(
        _("language"), max_length=8, choices=Language.choices, blank=True
    )
    digest = models.CharField(
        _("digest"),
        max_length=64,
        editable=False,
        blank=True,
        help_text=_("Digest of the text that the passages come from."),
    )
    status = models.CharField(
        _("status"),
        max_length=10,
        choices=Status,
        default=Status.QUEUED,
        db_default=Status.QUEUED.value,
    )
    problem = SentenceField(
        _("problem"),
        blank=True,
        default="",
        db_default="",
        help_text=_("Why it couldn't be read, or what is missing in it."),
    )
    done = models.PositiveIntegerField(_("done"), default=0, db_default=0)
    total = models.PositiveIntegerField(
        _("total"),
        default=0,
        db_default=0,
        help_text=_("Pages or passages of the current status; 0 if unknown."),
    )
    is_private = models.BooleanField(
        _("read on this server only"),
        default=False,
        db_default=False,
        help_text=_("Its recordings and images aren't sent to a model for reading."),
    )
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0, db_default=0)
    is_slow = models.BooleanField(
        _("slow"),
        default=False,
        db_default=False,
        help_text=_("Needs text recognition or a transcript, so it has a queue of its own."),
    )
    sitemap = models.ForeignKey(
        Sitemap,
        verbose_name=_("sitemap"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="documents",
    )
    origin = models.ForeignKey(
        DocumentSource,
        verbose_name=_("source of documents"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="documents",
    )
    origin_key = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False
    )
    origin_version = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )
    sent_as = models.CharField(
        _("how a model gets it"),
        max_length=10,
        choices=SentAs,
        blank=True,
        default=SentAs.SIZE,
        db_default="",
        help_text=_("A file of a chat: chosen by the user or by its size."),
    )
    added_at = models.DateTimeField(_("added"), auto_now_add=True)
    indexed_at = models.DateTimeField(
        _("indexed"),
        null=True,
        blank=True,
        help_text=_("When its passages were last replaced; empty if it has none yet."),
    )

    objects = DocumentQuerySet.as_manager()

    # Set by the claim: its process ended several times, so it gets one of its own.
    needs_isolation = False

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering = ("source",)
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "source"], name="one_document_a_source"
            ),
            models.UniqueConstraint(
                fields=["collection", "origin", "origin_key"],
                condition=models.Q(origin__isnull=False),
                name="one_document_an_origin",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_until", "id"],
                condition=models.Q(status__in=["queued", "reading", "indexing"]),
                name="documents_to_read",
            ),
            models.Index(
                fields=["next_fetch_at"],
                condition=models.Q(next_fetch_at__isnull=False),
                name="documents_to_fetch",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def name(self) -> str:
        """The file's name; only administrators see its folder."""
        return PureWindowsPath(self.source).name or self.source

    @property
    def is_pending(self) -> bool:
        return self.status in {self.Status.QUEUED, self.Status.READING, self.Status.INDEXING}


class DocumentPart(models.Model):
    """A page, slide, sheet or chapter, or the whole text: what the viewer displays."""

    class Kind(models.TextChoices):
        TEXT = "text", _("Text")
        PAGE = "page", _("Page")
        SLIDE = "slide", _("Slide")
        SHEET = "sheet", _("Sheet")
        CHAPTER = "chapter", _("Chapter")
        CLIP = "clip", _("Clip")

    document = models.ForeignKey(
        Document, models.CASCADE, related_name="parts", verbose_name=_("document")
    )
    number = models.PositiveIntegerField(_("number"), help_text=_("From 1."))
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    label = models.CharField(
        _("label"),
        max_length=200,
        blank=True,
        help_text=_("A sheet's name or a chapter's title."),
    )
    text = models.TextField(_("text"), help_text=_("Markdown; tables have one row per line."))
    is_recognized = models.BooleanField(
        _("recognized"),
        default=False,
        db_default=False,
        help_text=_("Whether the text was read from an image (OCR) or a recording."),
    )
    certainty = models.PositiveSmallIntegerField(
        _("certainty (%)"),
        null=True,
        blank=True,
        help_text=_("How sure text recognition (OCR) is of the text."),
    )

    class Meta:
        verbose_name = _("part of a document")
        verbose_name_plural = _("parts of documents")
        ordering = ("document", "number")
        constraints = [
            models.UniqueConstraint(fields=("document", "number"), name="one_part_a_number")
        ]

    def __str__(self) -> str:
        return f"{self.document_id} {self.kind} {self.number}"
