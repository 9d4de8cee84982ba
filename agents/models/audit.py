"""The audit log: append-only entries, each sealed together with its predecessor."""

import logging
import secrets
from typing import Any, NoReturn, Self

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from .secret import EncryptedTextField, UnreadableSecret

logger = logging.getLogger(__name__)

GENESIS = "0" * 64
ANONYMOUS_TOKEN = "nobody"
SHORT_TOKEN_CHARS = 8


class AuditLogImmutable(Exception):
    """Audit entries can't be changed or deleted through the ORM."""


def new_token() -> str:
    return secrets.token_hex(16)


def new_key() -> str:
    return Fernet.generate_key().decode()


class AuditPerson(models.Model):
    """The person behind entries, which only contain a token, so that the name can be erased.

    Other identifying details in entries are encrypted with a key that is erased too.
    """

    token = models.CharField(_("token"), max_length=32, unique=True, default=new_token)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("account"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    name = models.CharField(_("name"), max_length=150, blank=True)
    key = EncryptedTextField(_("encryption key"), blank=True, default=new_key)
    leaves_at = models.DateTimeField(
        _("erasure started"),
        null=True,
        blank=True,
        help_text=_("Continues until all data is erased."),
    )

    class Meta:
        verbose_name = _("audit log user")
        verbose_name_plural = _("audit log users")

    def __str__(self) -> str:
        if self.name or self.token == ANONYMOUS_TOKEN:
            return self.name
        return _now("erased person %(token)s") % {"token": self.token[:SHORT_TOKEN_CHARS]}

    @property
    def subject(self) -> str:
        return f"person:{self.token}"

    def encrypt(self, text: str) -> str:
        """Encrypt text with the person's key; with a new one if that is unreadable."""
        if not self.key:
            return ""
        try:
            key = self.key.reveal()
        except UnreadableSecret:
            key = self._rotate_key()
        return Fernet(key).encrypt(text.encode()).decode() if key else ""

    def decrypt(self, sealed: str) -> str:
        """Decrypt text; empty if the key is gone."""
        try:
            key = self.key.reveal()
            return Fernet(key).decrypt(sealed.encode()).decode() if key and sealed else ""
        except (UnreadableSecret, InvalidToken):
            return ""

    def _rotate_key(self) -> str:
        """Create a new key; of concurrent callers one does, and all use it."""
        logger.warning(
            "The key of %s is unreadable, so earlier IP addresses can't be decrypted.",
            self.token,
        )
        same = type(self)._default_manager.filter(pk=self.pk)
        same.filter(key=self.key).update(key=new_key())
        self.refresh_from_db(fields=["key"])
        return self.key.reveal()


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def by(self, user: User | None) -> Self:
        """Return what this user did; for None, what was done without an account."""
        return (
            self.filter(person__user=user)
            if user
            else self.filter(person__token=ANONYMOUS_TOKEN)
        )

    def update(self, **changes: Any) -> NoReturn:
        raise AuditLogImmutable(str(AuditLogImmutable.__doc__))

    def delete(self) -> NoReturn:
        raise AuditLogImmutable(str(AuditLogImmutable.__doc__))


class AuditEntry(models.Model):
    """One action. It is written once and never changed."""

    number = models.PositiveBigIntegerField(_("number"), unique=True)
    at = models.DateTimeField(_("time"), default=timezone.now, db_index=True)
    person = models.ForeignKey(
        AuditPerson,
        verbose_name=_("user"),
        on_delete=models.PROTECT,
        related_name="entries",
    )
    action = models.CharField(_("action"), max_length=40, db_index=True)
    subject = models.CharField(
        _("subject"), max_length=120, db_index=True, help_text=_("For example, run:12.")
    )
    detail = models.JSONField(_("details"), default=dict, blank=True)
    place = models.TextField(
        _("IP address and browser"),
        blank=True,
        help_text=_("Can't be read once the user is erased."),
    )
    key = models.CharField(_("signing key"), max_length=8)
    previous = models.CharField(_("previous signature"), max_length=64)
    seal = models.CharField(_("signature"), max_length=64)

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        verbose_name = _("audit log entry")
        verbose_name_plural = _("audit log")
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"#{self.number} {self.action}"

    def save(self, *args: Any, **options: Any) -> NoReturn:
        raise AuditLogImmutable(str(AuditLogImmutable.__doc__))

    def delete(self, *args: Any, **options: Any) -> NoReturn:
        raise AuditLogImmutable(str(AuditLogImmutable.__doc__))

    @property
    def actor(self) -> User | None:
        """The account, while it exists."""
        return self.person.user

    @property
    def actor_name(self) -> str:
        return str(self.person)


class AuditHead(models.Model):
    """The end of the chain: appending locks this row."""

    ONLY = 1

    number = models.PositiveBigIntegerField(default=0)
    seal = models.CharField(max_length=64, default=GENESIS)
    cut = models.PositiveBigIntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = _("audit log head")
        verbose_name_plural = _("audit log head")

    def __str__(self) -> str:
        return str(self.number)
