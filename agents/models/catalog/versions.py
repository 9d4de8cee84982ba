"""Versions of agents, which never change."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from .agents import Agent


class AgentVersion(models.Model):
    """A version of an agent, as plain values (agents.catalog.agent_spec)."""

    agent = models.ForeignKey(
        Agent, verbose_name=_("agent"), on_delete=models.CASCADE, related_name="versions"
    )
    number = models.PositiveIntegerField(_("version"))
    snapshot = models.JSONField(_("snapshot"))
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("changed by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(_("changed"), auto_now_add=True)
    note = models.CharField(_("note"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("agent version")
        verbose_name_plural = _("agent versions")
        ordering = ["agent_id", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "number"], name="one_agent_version_a_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.agent} · {self.number}"
