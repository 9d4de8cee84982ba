"""Documents and their passages."""

from pathlib import PureWindowsPath

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class Document(models.Model):
    class Language(models.TextChoices):
        ENGLISH = "en", _("English")
        JAPANESE = "ja", _("Japanese")

    title = models.CharField(_("title"), max_length=200)
    source = models.CharField(
        pgettext_lazy("document", "source"),
        max_length=500,
        unique=True,
        help_text=_("Where the text came from."),
    )
    language = models.CharField(
        _("language"), max_length=8, choices=Language.choices, blank=True
    )
    digest = models.CharField(_("digest"), max_length=64, editable=False)
    added_at = models.DateTimeField(_("added at"), auto_now_add=True)

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering = ("source",)

    def __str__(self) -> str:
        return self.title

    @property
    def name(self) -> str:
        """The file's name; only administrators see its folder."""
        return PureWindowsPath(self.source).name or self.source


class Chunk(models.Model):
    document = models.ForeignKey(
        Document, models.CASCADE, related_name="chunks", verbose_name=_("document")
    )
    ordinal = models.PositiveIntegerField(_("position"))
    heading = models.CharField(_("heading"), max_length=500, blank=True)
    text = models.TextField(_("text"))

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
