"""Foreign keys that several models of reviews have."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Run
from agents.models.types import LazyText

MAX_NAME_CHARS = 64


def user_foreign_key(
    label: LazyText, related_name: str = "+"
) -> "models.ForeignKey[User | None, User | None]":
    """Return a foreign key to a user whose account may be deleted."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=label,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name=related_name,
    )


def run_foreign_key(related_name: str) -> "models.ForeignKey[Run, Run]":
    return models.ForeignKey(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name=related_name
    )
