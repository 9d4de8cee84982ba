"""Chats embedded in other sites: what one offers, and the accounts of its visitors."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from ..secret import EncryptedTextField
from .agents import Agent

PUBLIC_ID_BYTES = 12
SECRET_BYTES = 32
MAX_EXAMPLES = 3


def new_public_id() -> str:
    return secrets.token_urlsafe(PUBLIC_ID_BYTES)


class Embed(models.Model):
    """A chat with one agent in the pages of other sites.

    Its visitors are members of its group: what they can use, their limits and their memory are
    those of the group.
    """

    class Audience(models.TextChoices):
        ANONYMOUS = "anonymous", _("Everyone, without signing in")
        SIGNED = "signed", _("Users whom the site signs in")
        BOTH = "both", _("Both")

    class Theme(models.TextChoices):
        AUTO = "auto", pgettext_lazy("theme", "As the site")
        LIGHT = "light", pgettext_lazy("theme", "Light")
        DARK = "dark", pgettext_lazy("theme", "Dark")

    class Language(models.TextChoices):
        AUTO = "auto", pgettext_lazy("language", "As the site")
        ENGLISH = "en", "English"
        JAPANESE = "ja", "日本語"

    name = models.CharField(
        _("name"),
        max_length=80,
        unique=True,
        help_text=_("For this console, e.g. “Website help”."),
    )
    public_id = models.CharField(
        _("public ID"), max_length=40, unique=True, default=new_public_id, editable=False
    )
    agent = models.ForeignKey(
        Agent, verbose_name=_("agent"), on_delete=models.CASCADE, related_name="embeds"
    )
    group = models.OneToOneField(
        Group,
        verbose_name=_("group"),
        on_delete=models.PROTECT,
        related_name="embed",
        editable=False,
    )
    origins = models.TextField(
        _("allowed sites"),
        max_length=4000,
        help_text=_("One per line, as https://www.example.com."),
    )
    audience = models.CharField(
        _("who can use it"), max_length=10, choices=Audience, default=Audience.ANONYMOUS
    )
    secret = EncryptedTextField(
        _("signing secret"), blank=True, default="", db_default="", editable=False
    )
    approver = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("approvals go to"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Visitors can’t approve tool calls. This user decides."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    title = models.CharField(
        _("title"),
        max_length=60,
        blank=True,
        help_text=_("If empty, the name of this installation."),
    )
    greeting = models.CharField(
        _("greeting"),
        max_length=300,
        blank=True,
        help_text=_("If empty, “How can I help?”."),
    )
    examples = models.TextField(
        _("example questions"),
        max_length=600,
        blank=True,
        help_text=_("One per line, up to three."),
    )
    theme = models.CharField(_("theme"), max_length=5, choices=Theme, default=Theme.AUTO)
    language = models.CharField(
        _("language"), max_length=4, choices=Language, default=Language.AUTO
    )
    shows_steps = models.BooleanField(
        _("say what the agent is doing"),
        default=True,
        help_text=_("For example “Searching the documents…”. Visitors never see results."),
    )
    retention_days = models.PositiveIntegerField(
        _("days until conversations are deleted"),
        default=30,
        validators=[MinValueValidator(1), MaxValueValidator(3650)],
        help_text=_("After the last message. The visitor’s account is deleted with them."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = pgettext_lazy("chat in another site", "embedded chat")
        verbose_name_plural = pgettext_lazy("chats in other sites", "embedded chats")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def topic(self) -> str:
        """The topic that tells open frames to check access again."""
        return f"embed.{self.pk}"

    @property
    def allowed_origins(self) -> list[str]:
        return self.origins.split()

    @property
    def example_questions(self) -> list[str]:
        return [line.strip() for line in self.examples.splitlines() if line.strip()]

    @property
    def allows_anonymous(self) -> bool:
        return self.audience != self.Audience.SIGNED

    @property
    def allows_signed(self) -> bool:
        return self.audience != self.Audience.ANONYMOUS

    def new_secret(self) -> str:
        """Set a new secret, unsaved, and return it: it is known only now."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        self.secret = secret
        return secret

    def visitors(self) -> "models.QuerySet[EmbedVisitor, Any]":
        return EmbedVisitor.objects.filter(embed=self)


class EmbedVisitor(models.Model):
    """Who asks in an embedded chat: an account with which nobody signs in.

    A signed visitor is a subject of the site's tokens; another one proves who they are with a
    random token, of which only a digest is saved.
    """

    personal = ("subject", "email")

    embed = models.ForeignKey(
        Embed,
        verbose_name=_("embedded chat"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="embed_visit",
    )
    subject = models.CharField(_("subject"), max_length=255, blank=True)
    email = models.CharField(_("email"), max_length=254, blank=True)
    digest = models.CharField(_("digest"), max_length=64, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), auto_now_add=True)

    class Meta:
        verbose_name = _("visitor")
        verbose_name_plural = _("visitors")
        ordering = ["pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["embed", "subject"],
                condition=~models.Q(subject=""),
                name="one_visitor_a_subject",
            ),
            models.UniqueConstraint(
                fields=["digest"], condition=~models.Q(digest=""), name="one_visitor_a_token"
            ),
        ]

    def __str__(self) -> str:
        return str(self.user)

    @property
    def is_signed(self) -> bool:
        return bool(self.subject)
