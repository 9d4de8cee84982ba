"""Who can use what: everyone, or members of some groups."""

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.utils.translation import gettext_lazy as _

from ..types import LazyText

Row = TypeVar("Row", bound="Restricted")


class Role(models.TextChoices):
    """What a user can do; each role is also a group of this name."""

    PERSON = "person", _("User")
    REVIEWER = "reviewer", _("Reviewer")
    ADMINISTRATOR = "administrator", _("Administrator")


def group_label(group: Group) -> LazyText:
    """Return a group's name, or the role's label in the reader's language."""
    return Role(group.name).label if group.name in Role.values else group.name


class RestrictedQuerySet(models.QuerySet[Row]):
    def usable_by(self, user: User | None) -> Self:
        """Return what this user can use; None is the terminal's user."""
        return self if user is None or user.is_superuser else self.open_to(user.pk)

    def open_to(self, user: int) -> Self:
        """Return what a user with this id can use."""
        return self.exclude(pk__in=self.model.objects.closed_to(user).values("pk"))

    def closed_to(self, user: int) -> Self:
        """Return rows restricted to groups this user isn't in; none for a superuser."""
        theirs = Group.objects.filter(user=user).order_by().values("pk")
        may_all = get_user_model()._default_manager.filter(pk=user, is_superuser=True)
        restricted = self.filter(groups__isnull=False).exclude(groups__in=theirs)
        return restricted.exclude(models.Exists(may_all)).order_by().distinct()


class Restricted(models.Model):
    groups = models.ManyToManyField(
        Group,
        verbose_name=_("allowed groups"),
        blank=True,
        related_name="+",
        help_text=_(
            "Only members of these groups can use it. If none is selected, everyone can."
        ),
    )

    objects = RestrictedQuerySet.as_manager()

    class Meta:
        abstract = True


def exclusive_to(groups: Iterable[int]) -> list[Restricted]:
    """Return rows only for these groups: without them they would be for everyone."""
    other_groups = Group.objects.exclude(pk__in=groups)
    return [
        row
        for kind in Restricted.__subclasses__()
        for row in kind.objects.filter(groups__in=groups)
        .exclude(groups__in=other_groups)
        .distinct()
    ]


@receiver(pre_delete, sender=Group)
def _protect_restricted(
    sender: type[Group], instance: Group, origin: object = None, **signal: Any
) -> None:
    going = origin if isinstance(origin, models.QuerySet) else [instance]
    if rows := exclusive_to([group.pk for group in going]):
        names = ", ".join(map(str, rows))
        raise models.ProtectedError(f"Only for {instance}: {names}.", set(rows))
