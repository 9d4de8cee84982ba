"""Drafts of agents: changes that aren't published yet."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from .agents import Agent


class AgentDraft(models.Model):
    """What an agent would become, as typed; without an agent, one that isn't published yet.

    `values` has only the inputs that differ from the published agent, so that what is published
    meanwhile stays. They are saved as typed and may be invalid.
    """

    agent = models.OneToOneField(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="draft",
    )
    values = models.JSONField(_("values"), default=dict, help_text=_("Texts by input."))
    marks = models.JSONField(
        _("changes"), default=dict, help_text=_("Revision and user of each input's change.")
    )
    replaced = models.JSONField(
        _("replaced values"),
        null=True,
        blank=True,
        help_text=_("The values before they were discarded or overwritten, for undo."),
    )
    revision = models.PositiveIntegerField(_("revision"), default=0)
    editor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("last edited by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last edited"), auto_now=True)

    class Meta:
        verbose_name = _("agent draft")
        verbose_name_plural = _("agent drafts")
        ordering = ["-updated_at"]

    def __str__(self) -> str:
        return str(self.agent) if self.agent else self.text("name")

    def text(self, name: str) -> str:
        """Return what was typed into an input."""
        texts: list[str] = self.values.get(name, [])
        return texts[0] if texts else ""
