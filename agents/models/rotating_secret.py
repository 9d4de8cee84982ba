"""Secrets that another service has, too: shown once, and rotated without a gap."""

import base64
import secrets
from contextlib import suppress
from datetime import timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from .secret import EncryptedTextField, UnreadableSecret

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
# How long the previous secret works, too, so that the other service can be changed meanwhile.
OVERLAP = timedelta(hours=24)


class RotatingSecret(models.Model):
    """A signing secret, with the one before it until that expires."""

    secret = EncryptedTextField(_("signing secret"), blank=True, editable=False)
    previous_secret = EncryptedTextField(
        _("previous signing secret"), blank=True, default="", db_default="", editable=False
    )
    previous_until = models.DateTimeField(
        _("previous secret works until"), null=True, blank=True, editable=False
    )

    class Meta:
        abstract = True

    def new_secret(self) -> str:
        """Set a new secret, unsaved, and return it: it is known only now."""
        if self.secret:
            self.previous_secret = self.secret
            self.previous_until = timezone.now() + OVERLAP
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
        self.secret = secret
        return secret

    def secrets_in_use(self) -> list[str]:
        """Return the secret, and the previous one while it works; raise UnreadableSecret."""
        in_use = [str(self.secret.reveal())]
        if self.previous_until is not None and self.previous_until > timezone.now():
            with suppress(UnreadableSecret):  # the current one is enough
                in_use.append(str(self.previous_secret.reveal()))
        return [secret for secret in in_use if secret]
