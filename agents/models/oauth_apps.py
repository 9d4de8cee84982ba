"""OAuth: apps that users connect, the codes on the way, and what was granted."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from .api_keys import ApiKey


class OAuthApp(models.Model):
    """An app that asks users for access. Its name is what it says about itself."""

    class Source(models.TextChoices):
        REGISTERED = "registered", _("Registered itself")
        DOCUMENT = "document", _("Describes itself at its client ID")
        BUILT_IN = "built_in", _("Part of this product")

    client_id = models.CharField(_("client ID"), max_length=500, unique=True)
    secret_digest = models.CharField(max_length=64, blank=True, editable=False)
    auth_method = models.CharField(max_length=30, default="none", editable=False)
    source = models.CharField(
        pgettext_lazy("app", "registration"), max_length=12, choices=Source
    )
    name = models.CharField(_("name"), max_length=100)
    homepage = models.CharField(_("website"), max_length=500, blank=True)
    redirect_uris = models.JSONField(_("redirect URIs"), default=list)
    grant_types = models.JSONField(_("grant types"), default=list)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    fetched_at = models.DateTimeField(null=True, editable=False)
    blocked_at = models.DateTimeField(
        pgettext_lazy("app", "blocked"), null=True, blank=True, editable=False
    )

    class Meta:
        verbose_name = _("app")
        verbose_name_plural = _("connected apps")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name


class AuthorizationCode(models.Model):
    """A code that an app exchanges for tokens, once and within a minute."""

    app = models.ForeignKey(OAuthApp, on_delete=models.CASCADE, related_name="codes")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    redirect_uri = models.CharField(max_length=2_000)
    challenge = models.CharField(max_length=128)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    # What it was exchanged for: revoked if somebody brings the code again.
    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, null=True, related_name="+")

    class Meta:
        verbose_name = _("authorization code")
        verbose_name_plural = _("authorization codes")

    def __str__(self) -> str:
        return f"{self.app_id} {self.user_id}"


class DeviceCode(models.Model):
    """A device that waits for its user to allow it in a browser."""

    app = models.ForeignKey(OAuthApp, on_delete=models.CASCADE, related_name="device_codes")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    digest = models.CharField(max_length=64, unique=True)
    user_code_digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    is_allowed = models.BooleanField(null=True)
    polled_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("device code")
        verbose_name_plural = _("device codes")

    def __str__(self) -> str:
        return f"{self.app_id} {self.user_id or '?'}"

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()


class OAuthGrant(models.Model):
    """The refresh token of an app's key, which is the access token.

    A refresh token is a family, which stays, and a secret, which changes with each use. So one
    row recognizes every old token: its family is right and its secret is not.
    """

    key = models.OneToOneField(ApiKey, on_delete=models.CASCADE, related_name="grant")
    family_digest = models.CharField(max_length=64, unique=True)
    secret_digest = models.CharField(max_length=64)
    # Of the grant; a key can have fewer, if the app asked for fewer.
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("grant of an app")
        verbose_name_plural = _("grants of apps")

    def __str__(self) -> str:
        return f"{self.key_id}"
