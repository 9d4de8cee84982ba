"""Tools that a user allowed to run without asking each time."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..catalog.tools import ToolRegistration


class ToolGrant(models.Model):
    """One user's permission for one agent and one tool, as the tool was defined then.

    It ends with its row. `digest` covers the tool's definition and destination, so a changed
    tool is asked about again.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="tool_grants",
    )
    agent_name = models.CharField(_("agent name"), max_length=64)
    tool = models.ForeignKey(
        ToolRegistration,
        verbose_name=_("tool"),
        on_delete=models.CASCADE,
        related_name="grants",
    )
    digest = models.CharField(_("digest"), max_length=64)
    topic = models.CharField(
        _("chat"), max_length=80, blank=True, help_text=_("Empty: in all of the user's chats.")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("tool permission")
        verbose_name_plural = _("tool permissions")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "agent_name", "tool", "topic"], name="one_grant_a_tool"
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool} · {self.agent_name}"

    @property
    def tool_name(self) -> str:
        return self.tool.name

    @property
    def scope(self) -> str:
        return "chat" if self.topic else "user"
