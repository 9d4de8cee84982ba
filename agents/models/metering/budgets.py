"""What was used in a window, and what calls in progress may still use."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class BudgetCounter(models.Model):
    """What a scope has used in one window; the window's start is part of the key.

    A scope is "user:5", "group:3", "agent:2", "model:7", "tool:4" or "all". A new window is a
    new row, so that nothing has to be reset.
    """

    scope = models.CharField(_("scope"), max_length=40)
    window = models.CharField(pgettext_lazy("budget", "window"), max_length=6)
    start = models.DateTimeField(_("window start"))
    runs = models.BigIntegerField(_("runs"), default=0)
    messages = models.BigIntegerField(_("messages"), default=0)
    calls = models.BigIntegerField(_("calls"), default=0)
    tokens = models.BigIntegerField(_("tokens"), default=0)
    cost = models.BigIntegerField(
        _("cost"), default=0, help_text=_("In millionths of a dollar.")
    )
    seconds = models.BigIntegerField(_("active time"), default=0, help_text=_("In ms."))
    seeded_at = models.DateTimeField(
        _("seeded"),
        null=True,
        blank=True,
        help_text=_("When recorded usage was added: a limit may be newer than the window."),
    )

    class Meta:
        verbose_name = _("usage counter")
        verbose_name_plural = _("usage counters")
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "window", "start"], name="one_counter_a_window"
            )
        ]
        indexes = [models.Index(fields=["window", "start"], name="counters_of_a_window")]

    def __str__(self) -> str:
        return f"{self.scope} {self.window} {self.start:%Y-%m-%d %H:%M}"


class BudgetHold(models.Model):
    """What one call may still use of one counter. It isn't part of the counter.

    `used_…` is what the call has used so far. It is counted if the call's process doesn't
    renew the hold in time; settling it later counts the difference.
    """

    call = models.UUIDField(_("call"), default=uuid.uuid4)
    counter = models.ForeignKey(
        BudgetCounter,
        verbose_name=_("counter"),
        on_delete=models.CASCADE,
        related_name="holds",
        db_index=False,
    )
    run = models.BigIntegerField(_("run"), null=True, blank=True)
    calls = models.BigIntegerField(_("calls"), default=0)
    tokens = models.BigIntegerField(_("tokens"), default=0)
    cost = models.BigIntegerField(_("cost"), default=0)
    seconds = models.BigIntegerField(_("active time"), default=0)
    used_tokens = models.BigIntegerField(_("tokens so far"), default=0)
    used_cost = models.BigIntegerField(_("cost so far"), default=0)
    used_seconds = models.BigIntegerField(_("active time so far"), default=0)
    expires_at = models.DateTimeField(_("expires"))
    is_counted = models.BooleanField(
        _("counted"),
        default=False,
        help_text=_("It has expired, and what was used so far has been counted."),
    )

    class Meta:
        verbose_name = _("reservation")
        verbose_name_plural = _("reservations")
        constraints = [
            models.UniqueConstraint(fields=["call", "counter"], name="one_hold_a_call")
        ]
        indexes = [
            models.Index(fields=["counter", "is_counted"], name="holds_of_a_counter"),
        ]

    def __str__(self) -> str:
        return f"{self.call} {self.counter_id}"
