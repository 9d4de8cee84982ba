"""The tools of an agent, and its own settings for them."""

from collections.abc import Iterable
from copy import copy
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from .agents import Agent
from .tools import ToolRegistration

# An agent's own settings of a tool, in versions and files as well.
TOOL_SETTINGS = (
    *("approval", "effect", "timeout", "max_calls", "retries", "sending", "description"),
)


class AgentTool(models.Model):
    """A tool of an agent. Empty settings are the tool's own."""

    class ApprovalMode(models.TextChoices):
        AS_SET_UP = "", _("tool default")
        ALWAYS = "always", _("always")
        NEVER = "never", _("never")

    class Effect(models.TextChoices):
        AS_SET_UP = "", _("tool default")
        READ = "read", _("read-only")
        IDEMPOTENT = "idempotent", _("makes changes")
        AT_MOST_ONCE = "at_most_once", _("irreversible")

    class Sending(models.TextChoices):
        AUTO = "", _("if it fits the message")
        ALWAYS = "always", _("always")

    agent = models.ForeignKey(
        Agent, verbose_name=_("agent"), on_delete=models.CASCADE, related_name="links"
    )
    tool = models.ForeignKey(
        ToolRegistration,
        verbose_name=_("tool"),
        on_delete=models.CASCADE,
        related_name="links",
        db_column="toolregistration_id",
    )
    approval = models.CharField(
        _("requires approval"),
        max_length=10,
        choices=ApprovalMode,
        blank=True,
        default="",
        db_default="",
    )
    effect = models.CharField(
        _("side effects"), max_length=12, choices=Effect, blank=True, default="", db_default=""
    )
    timeout = models.PositiveIntegerField(
        _("timeout (seconds)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
    )
    max_calls = models.PositiveIntegerField(
        _("max calls"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    retries = models.PositiveSmallIntegerField(
        _("retries"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(10)],
        help_text=_("How often a failed call is retried, 0–10."),
    )
    sending = models.CharField(
        _("sent to the model"),
        max_length=10,
        choices=Sending,
        blank=True,
        default="",
        db_default="",
        help_text=_("Matters only if the agent has too many tools to send all of them."),
    )
    description = models.TextField(
        _("description for the model"), blank=True, default="", db_default=""
    )

    class Meta:
        verbose_name = _("agent tool")
        verbose_name_plural = _("agent tools")
        db_table = "agents_agent_tools"
        ordering = ["tool__name"]
        unique_together = [("agent", "tool")]

    def __str__(self) -> str:
        """Return the text for the audit log, also without an agent."""
        settings = ", ".join(
            f"{name} {value}" for name, value in self.settings.items() if _is_set(value)
        )
        return f"{self.tool} ({settings})" if settings else str(self.tool)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that can differ for this agent."""
        return {name: getattr(self, name) for name in TOOL_SETTINGS}

    def configured_tool(self) -> ToolRegistration:
        """Return the tool with this agent's settings; the tool's row stays unchanged."""
        # The number of calls is a limit of the run, and what is sent is up to the agent.
        of_agent = {"max_calls", "sending"}
        own = {name: value for name, value in self.settings.items() if name not in of_agent}
        different = {name: value for name, value in own.items() if _is_set(value)}
        tool = copy(self.tool) if different else self.tool
        vars(tool).update(different)
        return tool


def links_of(agent: Agent) -> Iterable[AgentTool]:
    """Return the agent's tools with its settings, without a query if they were prefetched."""
    is_prefetched = "links" in getattr(agent, "_prefetched_objects_cache", ())
    return agent.links.all() if is_prefetched else agent.links.select_related("tool")


def replace_tools(agent: Agent, links: Iterable[AgentTool]) -> None:
    """Give the agent these tools with their settings, and no others."""
    links_by_tool = {link.tool.pk: link for link in links}
    current = {link.tool.pk: link for link in links_of(agent)}
    if current.keys() - links_by_tool.keys():
        agent.links.exclude(tool__in=links_by_tool).delete()
    changed = [
        AgentTool(agent=agent, tool=link.tool, **link.settings)
        for pk, link in links_by_tool.items()
        if pk not in current or current[pk].settings != link.settings
    ]
    AgentTool.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["agent", "tool"],
        update_fields=TOOL_SETTINGS,
    )


def _is_set(value: Any) -> bool:
    return value not in ("", None)
