"""What starts by itself: the columns that schedules and triggers share."""

from django.conf import settings
from django.core.validators import MaxLengthValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from .agents import Agent

MAX_QUESTION_CHARS = 20_000


class AutomaticStart(models.Model):
    """An agent or a workflow that is started without a user, and where its answer goes.

    It runs with the permissions and limits of its user.
    """

    workflow = models.ForeignKey(
        "agents.Workflow",
        verbose_name=_("workflow"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="%(class)ss",
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="%(class)ss",
    )
    question = models.TextField(
        _("message to the agent"),
        blank=True,
        default="",
        db_default="",
        validators=[MaxLengthValidator(MAX_QUESTION_CHARS)],
    )
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="+",
        help_text=_("It runs as this user, who also gets its approval requests."),
    )
    into_chat = models.BooleanField(
        _("answer in a new chat"),
        default=False,
        db_default=False,
        help_text=_("Each run of an agent starts a chat of this user."),
    )
    result_channel = models.ForeignKey(
        "alerts.AlertChannel",
        verbose_name=_("send the answer to"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("A webhook, email or notification channel."),
    )
    last_run_at = models.DateTimeField(_("last run"), null=True, blank=True)
    trouble = models.TextField(_("error"), blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)

    class Meta:
        abstract = True

    @property
    def target(self) -> str:
        """The name of what it starts."""
        if self.workflow is not None:
            return self.workflow.name
        return self.agent.name if self.agent is not None else ""
