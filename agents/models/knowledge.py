"""Collections of documents, their passages, and the vectors of these."""

from pathlib import PureWindowsPath
from typing import Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .access import Membership
from .files import StoredFile
from .refetching import Refetched, Sitemap
from .types import AnyUser

# Who has it manages the collections of the installation.
MANAGE_PERMISSION = "agents.change_collection"
OF_INSTALLATION = models.Q(owner=None, topic="")


class CollectionQuerySet(models.QuerySet["Collection"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return what this user can search, and whose documents they can open."""
        if not user.pk or not user.is_active:
            return self.none()
        return self.visible_to(user.pk, is_manager=user.has_perm(MANAGE_PERMISSION))

    def visible_to(self, user: int, *, is_manager: bool) -> Self:
        """Return what an active user can read, by their id."""
        may = (
            models.Q(owner=user)
            | models.Q(is_open=True)
            | models.Q(groups__in=Group.objects.filter(user=user).order_by().values("pk"))
            | models.Q(shares__user=user)
            | models.Q(topic__in=Membership.objects.filter(user=user).values("topic"))
        )
        if is_manager:
            may |= OF_INSTALLATION
        return self.filter(may, deleted_at=None).distinct()

    def editable_by(self, user: AnyUser) -> Self:
        """Return collections to which this user can add documents."""
        if not user.pk or not user.is_active:
            return self.none()
        may = models.Q(owner=user.pk) | models.Q(shares__user=user.pk, shares__may_edit=True)
        writable = Membership.objects.filter(user=user.pk, may_write=True)
        may |= models.Q(topic__in=writable.values("topic"))
        if user.has_perm(MANAGE_PERMISSION):
            may |= OF_INSTALLATION
        return self.filter(may, deleted_at=None).distinct()

    def managed_by(self, user: AnyUser) -> Self:
        """Return collections that this user can rename, share and delete."""
        if not user.pk or not user.is_active:
            return self.none()
        may = models.Q(owner=user.pk, topic="")
        if user.has_perm(MANAGE_PERMISSION):
            may |= OF_INSTALLATION
        return self.filter(may, deleted_at=None)

    def library(self) -> Self:
        """Return collections that belong to no chat or project."""
        return self.filter(topic="")


class Collection(models.Model):
    """Documents that are searched together and have the same readers.

    Without an owner it belongs to the installation, and administrators manage it. With a topic,
    it belongs to one chat or project, and its members read it.
    """

    name = models.CharField(_("name"), max_length=80)
    description = models.CharField(
        _("description"),
        max_length=300,
        blank=True,
        help_text=_("What agents can find here. They read this to decide where to search."),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="collections",
        help_text=_("Empty: it belongs to the installation."),
    )
    topic = models.CharField(_("topic"), max_length=80, blank=True, editable=False)
    is_open = models.BooleanField(
        _("open to everyone"),
        default=False,
        help_text=_("Every signed-in user can search it and open its documents."),
    )
    groups = models.ManyToManyField(
        Group,
        verbose_name=_("groups"),
        blank=True,
        related_name="+",
        help_text=_("Members of these groups can search it and open its documents."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    deleted_at = models.DateTimeField(
        _("deleted"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("Invisible since then; it can be restored for a moment."),
    )
    deleted_from = models.ForeignKey(
        "self",
        verbose_name=_("deleted from"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="removals",
        help_text=_("The collection from which these documents were deleted together."),
    )

    objects = CollectionQuerySet.as_manager()

    class Meta:
        verbose_name = _("collection")
        verbose_name_plural = _("collections")
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["topic"],
                condition=~models.Q(topic=""),
                name="one_collection_a_topic",
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(topic="", owner=None, deleted_at=None),
                name="one_collection_a_name",
                violation_error_message=_("A collection with this name already exists."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CollectionShare(models.Model):
    """A user with whom a collection is shared by name."""

    collection = models.ForeignKey(
        Collection,
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        related_name="shares",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="collection_shares",
    )
    may_edit = models.BooleanField(_("edit access"), default=False)

    class Meta:
        verbose_name = _("collection access")
        verbose_name_plural = _("collection access")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["collection", "user"], name="one_share_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.collection} {self.user}"


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


class Document(Refetched):
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
        help_text=_("Where the text came from: a file's name or path, or an address."),
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
        help_text=_("Of the text that its passages come from."),
    )
    status = models.CharField(
        _("status"),
        max_length=10,
        choices=Status,
        default=Status.QUEUED,
        db_default=Status.QUEUED.value,
    )
    problem = models.CharField(
        _("problem"),
        max_length=500,
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
        help_text=_("No recording or image of it is sent to a model to be read."),
    )
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0, db_default=0)
    lease_until = models.DateTimeField(
        _("leased until"),
        null=True,
        blank=True,
        help_text=_("A process is reading it; after this time another one can."),
    )
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
    sent_as = models.CharField(
        _("how a model gets it"),
        max_length=10,
        choices=SentAs,
        blank=True,
        default=SentAs.SIZE,
        db_default="",
        help_text=_("A file of a chat: chosen by its user, or by its size."),
    )
    added_at = models.DateTimeField(_("added"), auto_now_add=True)
    indexed_at = models.DateTimeField(
        _("indexed"),
        null=True,
        blank=True,
        help_text=_("When its passages were last replaced; empty if it has none yet."),
    )

    objects = DocumentQuerySet.as_manager()

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering = ("source",)
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "source"], name="one_document_a_source"
            )
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

    class Meta:
        verbose_name = _("part of a document")
        verbose_name_plural = _("parts of documents")
        ordering = ("document", "number")
        constraints = [
            models.UniqueConstraint(fields=("document", "number"), name="one_part_a_number")
        ]

    def __str__(self) -> str:
        return f"{self.document_id} {self.kind} {self.number}"


class Chunk(models.Model):
    """A passage: what a search finds and an answer cites."""

    document = models.ForeignKey(
        Document, models.CASCADE, related_name="chunks", verbose_name=_("document")
    )
    ordinal = models.PositiveIntegerField(_("position"))
    heading = models.CharField(_("heading"), max_length=500, blank=True)
    text = models.TextField(_("text"))
    part = models.PositiveIntegerField(
        _("part"),
        default=1,
        db_default=1,
        help_text=_("Number of the part it begins in: its page, slide or sheet."),
    )
    start = models.PositiveIntegerField(
        _("start"), null=True, blank=True, help_text=_("First character in the part's text.")
    )
    end = models.PositiveIntegerField(
        _("end"), null=True, blank=True, help_text=_("First character after it.")
    )

    class Meta:
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        ordering = ("document", "ordinal")
        constraints = [
            models.UniqueConstraint(
                fields=("document", "ordinal"), name="chunk_ordinal_in_document"
            )
        ]

    def __str__(self) -> str:
        return f"{self.document.source}#{self.ordinal}"


class EmbeddingIndex(models.Model):
    """Vectors of one model. Only those of the active one are searched.

    A new model gets a new index, which is filled while the old one answers.
    """

    class Status(models.TextChoices):
        BUILDING = "building", _("Building")
        ACTIVE = "active", pgettext_lazy("index", "Active")
        RETIRED = "retired", _("Retired")

    model = models.CharField(
        _("model"), max_length=200, help_text=_("local, or a LiteLLM model name.")
    )
    dimension = models.PositiveIntegerField(_("dimension"))
    version = models.PositiveSmallIntegerField(
        _("version"), default=1, help_text=_("Changes with how texts are prepared.")
    )
    status = models.CharField(
        _("status"), max_length=10, choices=Status, default=Status.BUILDING
    )
    done = models.PositiveIntegerField(_("done"), default=0)
    total = models.PositiveIntegerField(_("total"), default=0)
    problem = models.CharField(_("problem"), max_length=500, blank=True)
    lease_until = models.DateTimeField(
        _("leased until"),
        null=True,
        blank=True,
        help_text=_("A process is filling it; after this time another one can."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    activated_at = models.DateTimeField(_("activated"), null=True, blank=True)

    class Meta:
        verbose_name = _("embedding index")
        verbose_name_plural = _("embedding indexes")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["status"],
                condition=models.Q(status="active"),
                name="one_active_embedding_index",
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.version}"


class ChunkVector(models.Model):
    """The vector of a passage, or of a window in it."""

    index = models.ForeignKey(EmbeddingIndex, models.CASCADE, related_name="vectors")
    chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="vectors")
    window = models.PositiveSmallIntegerField(
        _("window"), default=0, help_text=_("0 is the whole passage.")
    )
    vector = models.BinaryField(_("vector"), help_text=_("Normalized, 16-bit floats."))

    class Meta:
        verbose_name = _("vector")
        verbose_name_plural = _("vectors")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["index", "chunk", "window"], name="one_vector_a_window"
            )
        ]

    def __str__(self) -> str:
        return f"{self.chunk_id} {self.window}"
