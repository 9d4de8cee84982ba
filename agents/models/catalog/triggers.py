"""Triggers: incoming webhooks that start an agent or a workflow."""

import secrets

from django.db import models
from django.utils.translation import gettext_lazy as _

from ..rotating_secret import RotatingSecret
from .automatic_starts import AutomaticStart

PUBLIC_ID_BYTES = 16


def new_public_id() -> str:
    return secrets.token_urlsafe(PUBLIC_ID_BYTES)


class Trigger(AutomaticStart, RotatingSecret):
    """A URL that starts an agent or a workflow when another service calls it."""

    class Verification(models.TextChoices):
        STANDARD = "standard", _("Standard Webhooks signature")
        GITHUB = "github", _("GitHub signature (X-Hub-Signature-256)")
        BEARER = "bearer", _("Secret as a bearer token")

    name = models.CharField(_("name"), max_length=80, unique=True)
    public_id = models.CharField(
        _("public ID"), max_length=40, unique=True, default=new_public_id, editable=False
    )
    verification = models.CharField(
        _("how requests are verified"),
        max_length=10,
        choices=Verification,
        default=Verification.STANDARD,
    )

    class Meta:
        verbose_name = _("trigger")
        verbose_name_plural = _("triggers")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class TriggerCall(models.Model):
    """A call of a trigger that started something: the same call starts nothing twice."""

    trigger = models.ForeignKey(
        Trigger, verbose_name=_("trigger"), on_delete=models.CASCADE, related_name="calls"
    )
    digest = models.CharField(_("digest"), max_length=64)
    run = models.ForeignKey(
        "agents.Run",
        verbose_name=_("run"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(_("time"), auto_now_add=True, db_index=True)

    class Meta:
        verbose_name = _("trigger call")
        verbose_name_plural = _("trigger calls")
        ordering = ["-pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["trigger", "digest"], name="one_call_a_message")
        ]

    def __str__(self) -> str:
        return f"{self.trigger_id} {self.at}"
