"""Who may use what an administrator set up: everybody, or the people of some groups."""

from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _


class RestrictedQuerySet(models.QuerySet):
    def usable_by(self, user):
        """Those that this person may use; whoever has no account works at the terminal."""
        if user is None or user.is_superuser:
            return self
        return self.filter(
            models.Q(groups__isnull=True) | models.Q(groups__user=user)
        ).distinct()


class Restricted(models.Model):
    groups = models.ManyToManyField(
        Group,
        verbose_name=_("only for"),
        blank=True,
        related_name="+",
        help_text=_("The groups whose people may use it. None: everybody may."),
    )

    objects = RestrictedQuerySet.as_manager()

    class Meta:
        abstract = True
