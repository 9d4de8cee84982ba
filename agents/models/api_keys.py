"""API keys: what a program proves with that it acts for a user."""

from typing import Self

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> Self:
        """Return keys that are neither revoked nor expired, of enabled accounts."""
        unexpired = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(unexpired, revoked_at=None, user__is_active=True)


class ApiKey(models.Model):
    """A secret with which a program acts for its user, within its scopes.

    A service key's user is an account of its own, with which nobody signs in: its permissions
    and groups are those of the program. Only a digest of the secret is saved.
    """

    class Scope(models.TextChoices):
        ASK = "ask", _("Ask agents")
        READ = "read", _("Read own chats and runs")
        READ_ALL = "read_all", _("Read all runs that the user can review")
        APPROVE = "approve", _("Decide about approvals")
        CONFIGURE = "configure", _("Change agents, documents and examples")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="api_keys",
    )
    name = models.CharField(_("name"), max_length=80)
    prefix = models.CharField(
        _("beginning"), max_length=12, help_text=_("How the key begins, to recognize it.")
    )
    digest = models.CharField(_("digest"), max_length=64, unique=True)
    app = models.ForeignKey(
        "agents.OAuthApp",
        verbose_name=_("app"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_keys",
        help_text=_("The connected app whose access token it is, if it is one."),
    )
    scopes = models.JSONField(_("scopes"), default=list)
    is_service = models.BooleanField(_("service key"), default=False, db_default=False)
    requests_per_minute = models.PositiveIntegerField(
        _("requests per minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Leave empty for the default of the installation."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(
        pgettext_lazy("API key", "revoked"), null=True, blank=True
    )

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.beginning})"

    @property
    def beginning(self) -> str:
        """How the key begins, as pages and the audit log write it."""
        return f"{self.prefix}…"

    @property
    def is_usable(self) -> bool:
        is_expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.revoked_at is None and not is_expired and self.user.is_active
