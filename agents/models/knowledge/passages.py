"""Passages of documents, and the vectors of these."""

from datetime import timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..sentence_fields import SentenceField
from .documents import Document
from .leases import Leased


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


class EmbeddingIndex(Leased):
    """Vectors of one model. Only those of the active one are searched.

    A new model gets a new index, which is filled while the old one answers.
    """

    LEASE = timedelta(seconds=90)

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
    problem = SentenceField(_("problem"), blank=True)
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
