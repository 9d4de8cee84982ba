"""Settings of the installation, and limits on what users, agents, models and tools can use."""

from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .knowledge.files import StoredFile


class InstallationSetting(models.Model):
    """A value that differs from its default; `agents.db.installation` knows type and limits."""

    key = models.CharField(_("setting"), max_length=60, unique=True)
    value = models.JSONField(_("value"), null=True, blank=True)
    file = models.ForeignKey(
        StoredFile,
        verbose_name=_("file"),
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="settings",
    )  # of a logo
    changed_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("setting")
        verbose_name_plural = _("settings")
        ordering = ["key"]

    def __str__(self) -> str:
        return self.key


class ConfigurationChange(models.Model):
    """Left by triggers when something changed that agents are built from."""

    value = models.CharField(_("value"), max_length=36)  # random
    changed_at = models.DateTimeField(_("changed"))

    class Meta:
        verbose_name = _("settings change")
        verbose_name_plural = _("settings changes")

    def __str__(self) -> str:
        return self.value


class QuotaQuerySet(models.QuerySet["Quota"]):
    def of(self, owner: Any) -> Self:
        """Return the quotas of a user, or of each member of a group."""
        if isinstance(owner, Group):
            return self.filter(group=owner, is_shared=False)
        return self.filter(user=owner)


OWNERS = ("user", "group", "agent", "language_model", "tool", "api_key")


def _owned_by(*owners: str) -> models.Q:
    """Return the condition that exactly these owners are set."""
    return models.Q(**{f"{name}__isnull": name not in owners for name in OWNERS})


class Quota(models.Model):
    """How much can be used in a calendar minute, day or month, and by whom.

    Of a user, a group, an agent, a model, a tool or an API key. Without an owner it is for all
    users together if shared, else the default of each user. A group's is for each member, or
    shared.
    """

    class Measure(models.TextChoices):
        RUNS = "runs", _("Runs")
        MESSAGES = "messages", _("Messages")
        CALLS = "calls", _("Calls")
        TOKENS = "tokens", _("Tokens")
        COST = "cost", _("Cost (USD)")
        SECONDS = "seconds", _("Active time (seconds)")

    class Window(models.TextChoices):
        MINUTE = "minute", _("per minute")
        DAY = "day", _("per day")
        MONTH = "month", _("per month")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="quotas",
    )
    group = models.ForeignKey(
        Group,
        verbose_name=_("group"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="quotas",
    )
    agent = models.ForeignKey(
        "agents.Agent",
        verbose_name=_("agent"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="quotas",
    )
    language_model = models.ForeignKey(
        "agents.LanguageModel",
        verbose_name=_("model"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="quotas",
    )
    tool = models.ForeignKey(
        "agents.ToolRegistration",
        verbose_name=_("tool"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="quotas",
    )
    api_key = models.ForeignKey(
        "agents.ApiKey",
        verbose_name=_("API key"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="quotas",
    )
    is_shared = models.BooleanField(
        _("shared"),
        default=False,
        db_default=False,
        help_text=_("Members share one limit. When off, each member has their own."),
    )
    measure = models.CharField(_("measure"), max_length=10, choices=Measure)
    window = models.CharField(pgettext_lazy("budget", "window"), max_length=6, choices=Window)
    limit = models.BigIntegerField(
        _("limit"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Leave empty for no limit. Cost is in millionths of a dollar."),
    )
    changed_at = models.DateTimeField(_("changed"), auto_now=True)

    objects = QuotaQuerySet.as_manager()

    class Meta:
        verbose_name = _("usage limit")
        verbose_name_plural = _("usage limits")
        ordering = ["measure", "window", "pk"]
        constraints = [
            *(
                models.UniqueConstraint(fields=[owner, *shared, "measure", "window"], name=name)
                for owner, shared, name in (
                    ("user", (), "one_quota_a_person"),
                    ("group", ("is_shared",), "one_quota_a_group"),
                    ("agent", (), "one_quota_an_agent"),
                    ("language_model", (), "one_quota_a_model"),
                    ("tool", (), "one_quota_a_tool"),
                    ("api_key", (), "one_quota_a_key"),
                )
            ),
            models.UniqueConstraint(
                fields=["is_shared", "measure", "window"],
                condition=_owned_by(),
                name="one_quota_of_all",
            ),
            models.CheckConstraint(
                condition=_owned_by()
                | _owned_by("user")
                | _owned_by("group")
                | _owned_by("agent")
                | _owned_by("language_model")
                | _owned_by("tool")
                | _owned_by("api_key"),
                name="quota_of_one_owner_at_most",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.owner or 'all'} {self.measure}/{self.window}"

    @property
    def owner(self) -> models.Model | None:
        """What it is for, e.g. a user or an agent; None if it is for all users."""
        owners = (getattr(self, name) for name in OWNERS if getattr(self, f"{name}_id"))
        return next(owners, None)
