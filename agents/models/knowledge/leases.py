"""Rows that one process at a time works on."""

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class Leased(models.Model):
    """A row that `agents.db.claims` gives to one process at a time."""

    # How long a process has it without renewing the lease.
    LEASE: ClassVar[timedelta] = timedelta(seconds=60)

    lease = models.CharField(
        _("lease"),
        max_length=16,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("A random value of the process that works on it; empty if none does."),
    )
    lease_until = models.DateTimeField(
        _("leased until"),
        null=True,
        blank=True,
        help_text=_("After this time another process can work on it."),
    )

    # Set by a claim: the process that had it before has ended without giving it back.
    was_abandoned = False

    class Meta:
        abstract = True
