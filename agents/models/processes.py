"""Web and worker processes, as reported by themselves."""

from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class ServerProcessQuerySet(models.QuerySet["ServerProcess"]):
    def with_silence(self) -> Self:
        """Annotate with the database's time, because machines' clocks differ."""
        now = models.ExpressionWrapper(Now(), output_field=models.DateTimeField())
        return self.annotate(now=now)


class ServerProcess(models.Model):
    """One process, as last reported."""

    class Kind(models.TextChoices):
        WEB = "web", _("web")
        WORKER = "worker", _("worker")

    name = models.CharField(_("name"), max_length=120, unique=True)
    kind = models.CharField(_("type"), max_length=10, choices=Kind)
    version = models.CharField(_("version"), max_length=40)
    started_at = models.DateTimeField(_("started"))
    seen_at = models.DateTimeField(_("last heartbeat"))
    runs = models.PositiveIntegerField(_("runs"), default=0)
    sockets = models.PositiveIntegerField(_("WebSocket connections"), default=0)
    memory = models.PositiveBigIntegerField(_("memory"), default=0, help_text=_("In bytes."))
    lateness = models.FloatField(
        _("event loop lag"),
        default=0,
        help_text=_("Current delay of the event loop, in seconds."),
    )
    stalls = models.PositiveIntegerField(
        _("times blocked"), default=0, help_text=_("How many times the event loop was blocked.")
    )
    longest_stall = models.FloatField(_("longest block"), default=0)
    stalled_in = models.TextField(_("blocked in"), blank=True)
    stalled_at = models.DateTimeField(_("last blocked"), null=True, blank=True)
    journal_lag = models.FloatField(
        _("event save lag"), default=0, help_text=_("Seconds until an event is saved.")
    )
    mcp_instances = models.JSONField(
        _("MCP server instances"), default=dict, help_text=_("Running now, by server.")
    )

    objects = ServerProcessQuerySet.as_manager()

    class Meta:
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        ordering = ["kind", "started_at", "pk"]

    now: datetime  # set by with_silence()

    def __str__(self) -> str:
        return self.name

    @property
    def short_name(self) -> str:
        """The process's name for people: 4711@machine."""
        pid, _, host = self.name.partition("@")
        return f"{pid.partition('.')[0]}@{host.partition('/')[0]}"

    @property
    def silence(self) -> timedelta:
        return max(self.now - self.seen_at, timedelta())
