"""Saved results of tools and replies of models, and what they have saved."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..runs.runs import Run


class CacheKind(models.TextChoices):
    TOOL = "tool", _("Tool result")
    MODEL = "model", _("Model response")


class CacheGroup(models.Model):
    """What tools read together, e.g. an MCP server: a change to it makes all of it stale.

    The generation is part of each key, so a result that was read before a change and is saved
    after it is never found.
    """

    name = models.CharField(_("name"), max_length=300, unique=True)
    generation = models.PositiveBigIntegerField(_("generation"), default=0, db_default=0)
    changed_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("cache group")
        verbose_name_plural = _("cache groups")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class CacheEntry(models.Model):
    """One saved result. It is deleted with the run it comes from and with its user."""

    key = models.CharField(_("key"), max_length=64, unique=True)
    kind = models.CharField(_("kind"), max_length=6, choices=CacheKind)
    source = models.CharField(
        pgettext_lazy("cache", "source"),
        max_length=40,
        help_text=_("The tool or agent, e.g. tool:12."),
    )
    group = models.ForeignKey(
        CacheGroup, on_delete=models.CASCADE, null=True, blank=True, related_name="entries"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Empty if the result is declared the same for everyone."),
    )
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    value = models.JSONField(_("value"))
    size = models.PositiveIntegerField(_("size (bytes)"))
    seconds = models.FloatField(_("duration (seconds)"), default=0.0)
    cost_micros = models.BigIntegerField(_("cost (millionths of USD)"), default=0)
    hits = models.PositiveIntegerField(_("hits"), default=0)
    saved_at = models.DateTimeField(_("saved"))
    used_at = models.DateTimeField(_("last used"), db_index=True)
    expires_at = models.DateTimeField(_("expires"), db_index=True)

    class Meta:
        verbose_name = _("cached result")
        verbose_name_plural = _("cached results")
        ordering = ["-used_at"]
        indexes = [models.Index(fields=["source"], name="entries_of_a_source")]

    def __str__(self) -> str:
        return f"{self.source} {self.key[:12]}"


class CacheUsage(models.Model):
    """Hits and misses of a tool or agent on one day, and what the hits have saved."""

    day = models.DateField(_("day"))
    source = models.CharField(pgettext_lazy("cache", "source"), max_length=40)
    kind = models.CharField(_("kind"), max_length=6, choices=CacheKind)
    hits = models.PositiveBigIntegerField(_("hits"), default=0, db_default=0)
    misses = models.PositiveBigIntegerField(_("misses"), default=0, db_default=0)
    seconds = models.FloatField(_("saved (seconds)"), default=0.0, db_default=0.0)
    cost_micros = models.BigIntegerField(
        _("saved (millionths of USD)"), default=0, db_default=0
    )

    class Meta:
        verbose_name = _("cache usage")
        verbose_name_plural = _("cache usage")
        ordering = ["-day", "source"]
        constraints = [
            models.UniqueConstraint(fields=["day", "source"], name="one_cache_usage_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.day}"
