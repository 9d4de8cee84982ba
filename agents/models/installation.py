"""Settings of the installation, and quotas of users and groups."""

from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class InstallationSetting(models.Model):
    """A value that differs from its default; `agents.installation` knows type and limits."""

    key = models.CharField(_("setting"), max_length=60, unique=True)
    value = models.JSONField(_("value"), null=True, blank=True)
    changed_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("setting")
        verbose_name_plural = _("settings")
        ordering = ["key"]

    def __str__(self) -> str:
        return self.key


class QuotaQuerySet(models.QuerySet["Quota"]):
    def of(self, owner: Any) -> Self:
        """Return the quotas of a user or of a group."""
        is_group = isinstance(owner, Group)
        return self.filter(group=owner) if is_group else self.filter(user=owner)


class Quota(models.Model):
    """How much a user, or each member of a group, can use in a calendar day or month."""

    class Measure(models.TextChoices):
        RUNS = "runs", _("Runs")
        MESSAGES = "messages", _("Messages")
        TOKENS = "tokens", _("Tokens")
        COST = "cost", _("Cost (USD)")

    class Window(models.TextChoices):
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
    measure = models.CharField(_("measure"), max_length=10, choices=Measure)
    window = models.CharField(_("window"), max_length=6, choices=Window)
    limit = models.BigIntegerField(
        _("limit"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Empty: no limit. Cost is in millionths of a dollar."),
    )
    changed_at = models.DateTimeField(_("changed"), auto_now=True)

    objects = QuotaQuerySet.as_manager()

    class Meta:
        verbose_name = _("quota")
        verbose_name_plural = _("quotas")
        ordering = ["measure", "window", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "measure", "window"], name="one_quota_a_person"
            ),
            models.UniqueConstraint(
                fields=["group", "measure", "window"], name="one_quota_a_group"
            ),
            models.CheckConstraint(
                condition=models.Q(user__isnull=False, group__isnull=True)
                | models.Q(user__isnull=True, group__isnull=False),
                name="quota_of_one_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group} {self.measure}/{self.window}"
