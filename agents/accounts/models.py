"""Sign-in methods, sessions and failed attempts."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.models.catalog.rights import Role
from agents.models.secret import EncryptedTextField


def _user_foreign_key(related_name: str = "+") -> "models.ForeignKey[User, User]":
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name=related_name,
    )


class Profile(models.Model):
    """How a user appears to others, and how pages and agents address them."""

    personal = ("display_name", "about_me", "answer_style")
    MAX_INSTRUCTIONS = 1500

    class DateFormat(models.TextChoices):
        LANGUAGE = "", _("By language")
        ISO = "iso", "2026-11-17"
        DAY_FIRST = "dmy", "17/11/2026"
        MONTH_FIRST = "mdy", "11/17/2026"

    class Clock(models.TextChoices):
        FULL_DAY = "24", _("24-hour (15:04)")
        HALF_DAY = "12", _("12-hour (3:04 PM)")

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="profile",
    )
    display_name = models.CharField(_("display name"), max_length=60, blank=True)
    skeleton = models.CharField(
        _("name for look-alike checks"), max_length=180, blank=True, db_index=True
    )
    language = models.CharField(_("language"), max_length=10, blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)
    date_format = models.CharField(
        _("date format"), max_length=3, blank=True, choices=DateFormat.choices
    )
    clock = models.CharField(
        _("clock"), max_length=2, choices=Clock.choices, default=Clock.FULL_DAY
    )
    default_agent = models.ForeignKey(
        "agents.Agent",
        verbose_name=_("agent of new chats"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    has_single_keys = models.BooleanField(_("single-key shortcuts"), default=True)
    has_instructions = models.BooleanField(_("use custom instructions"), default=True)
    has_memory = models.BooleanField(_("use long-term memory"), default=True, db_default=True)
    has_setup_guide = models.BooleanField(
        _("setup checklist in the console"), default=True, db_default=True
    )
    about_me = models.TextField(
        _("what agents should know"), blank=True, max_length=MAX_INSTRUCTIONS
    )
    answer_style = models.TextField(
        _("how agents should answer"), blank=True, max_length=MAX_INSTRUCTIONS
    )

    class Meta:
        verbose_name = _("profile")
        verbose_name_plural = _("profiles")

    def __str__(self) -> str:
        return self.display_name or str(self.user)


class VisitQuerySet(models.QuerySet["Visit"]):
    def for_user(self, user: User) -> Self:
        """Return the user's active sessions, last seen first."""
        return self.filter(user=user.pk, session__expire_date__gt=models.functions.Now())


class Visit(models.Model):
    """A signed-in session: method, origin and last use. It is deleted with its session."""

    session = models.OneToOneField(
        Session, verbose_name=_("session"), on_delete=models.CASCADE, related_name="visit"
    )
    user = _user_foreign_key(related_name="visits")
    way = models.CharField(_("sign-in method"), max_length=20)
    device = models.CharField(_("device"), max_length=300, blank=True)
    address = models.CharField(_("IP address"), max_length=45, blank=True)
    began_at = models.DateTimeField(_("since"), auto_now_add=True)
    seen_at = models.DateTimeField(_("last active"), auto_now_add=True)

    objects = VisitQuerySet.as_manager()

    class Meta:
        verbose_name = _("sign-in session")
        verbose_name_plural = _("sign-in sessions")
        ordering = ["-seen_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.user} {self.seen_at:%F}"


class Authenticator(models.Model):
    """An app that shows a new code every 30 s (TOTP)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="authenticator",
    )
    secret = EncryptedTextField(_("secret"))
    last_step = models.BigIntegerField(
        _("last time step"),
        default=0,
        help_text=_("Each code works once; earlier codes are rejected."),
    )
    added_at = models.DateTimeField(_("date added"), auto_now_add=True)
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("authenticator app")
        verbose_name_plural = _("authenticator apps")

    def __str__(self) -> str:
        return str(self.user)


class Passkey(models.Model):
    """A passkey of a device or password manager (WebAuthn). What is saved is public."""

    user = _user_foreign_key(related_name="passkeys")
    name = models.CharField(_("name"), max_length=60)
    key_id = models.CharField(_("key ID"), max_length=1400, unique=True)
    public_key = models.TextField(_("public key"))
    uses = models.BigIntegerField(
        _("use count"),
        default=0,
        help_text=_("Counter reported by the passkey; many always report 0."),
    )
    added_at = models.DateTimeField(_("date added"), auto_now_add=True)
    used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("passkey")
        verbose_name_plural = _("passkeys")
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class RecoveryCode(models.Model):
    """A recovery code; only its digest is saved, until it is used."""

    user = _user_foreign_key(related_name="recovery_codes")
    digest = models.CharField(_("digest"), max_length=64)

    class Meta:
        verbose_name = _("recovery code")
        verbose_name_plural = _("recovery codes")
        constraints = [
            models.UniqueConstraint(fields=["user", "digest"], name="one_recovery_code")
        ]

    def __str__(self) -> str:
        return str(self.user)


class Identity(models.Model):
    """A user's identity at the OpenID Connect provider."""

    user = _user_foreign_key(related_name="identities")
    issuer = models.CharField(_("issuer"), max_length=200)
    subject = models.CharField(pgettext_lazy("sign-in", "subject"), max_length=255)
    added_at = models.DateTimeField(_("date added"), auto_now_add=True)

    class Meta:
        verbose_name = _("identity")
        verbose_name_plural = _("identities")
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_identity")
        ]

    def __str__(self) -> str:
        return f"{self.issuer} {self.subject}"


class AccountInvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> Self:
        """Return invitations that can still be accepted."""
        usable = models.Q(uses__lt=models.F("max_uses"), revoked_at=None)
        return self.filter(usable, expires_at__gt=models.functions.Now())


class Invitation(models.Model):
    """A link that creates accounts with a role and groups; only its digest is saved."""

    class State(models.TextChoices):
        OPEN = "open", _("open")
        USED = "used", _("accepted")
        EXPIRED = "expired", _("expired")
        REVOKED = "revoked", _("revoked")

    digest = models.CharField(_("digest"), max_length=64, unique=True)
    email = models.EmailField(
        _("email address"),
        blank=True,
        help_text=_(
            "The new account gets this address. Deleted here once the invitation is accepted."
        ),
    )
    role = models.CharField(_("role"), max_length=20, choices=Role.choices, default=Role.PERSON)
    groups = models.ManyToManyField(
        Group, verbose_name=_("groups"), blank=True, related_name="+"
    )
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("invited by"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    max_uses = models.PositiveIntegerField(_("max uses"), default=1)
    uses = models.PositiveIntegerField(_("uses"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    objects = AccountInvitationQuerySet.as_manager()

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.email or str(self.pk)

    @property
    def state(self) -> "Invitation.State":
        if self.revoked_at is not None:
            return self.State.REVOKED
        if self.uses >= self.max_uses:
            return self.State.USED
        return self.State.EXPIRED if self.expires_at <= timezone.now() else self.State.OPEN


class Attempts(models.Model):
    """Sign-in attempts for a name, an address, or both."""

    key = models.CharField(_("key"), max_length=64, primary_key=True)
    count = models.PositiveIntegerField(_("failed attempts"), default=0)
    last_at = models.DateTimeField(_("last attempt"), db_index=True)
    wait_until = models.DateTimeField(_("blocked until"), null=True, blank=True)
    succeeded_at = models.DateTimeField(_("last success"), null=True, blank=True)

    class Meta:
        verbose_name = _("sign-in attempts")
        verbose_name_plural = _("sign-in attempts")

    def __str__(self) -> str:
        return f"{self.key[:8]}: {self.count}"
