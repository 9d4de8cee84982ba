"""Prompts that people save to use them again."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.catalog.rights import Role
from agents.models.soft_delete import SoftDelete, SoftDeleteQuerySet

SHARE_PERMISSION = "chat.share_prompts"


class PromptQuerySet(SoftDeleteQuerySet["Prompt"]):
    def for_user(self, user: User) -> Self:
        """Return the prompts this user can use: their own and those shared with them."""
        shared = models.Q(sharing=Prompt.Sharing.EVERYONE) | models.Q(
            sharing=Prompt.Sharing.GROUPS, groups__in=user.groups.values("pk")
        )
        if user.has_perm(SHARE_PERMISSION):
            shared = ~models.Q(sharing=Prompt.Sharing.PRIVATE)
        usable = self.model.objects.present().filter(models.Q(user=user) | shared)
        return self.filter(pk__in=usable.order_by().values("pk"))

    def writable_by(self, user: User) -> Self:
        """Return the prompts this user can edit and delete."""
        return self.present().managed_by(user)

    def managed_by(self, user: User) -> Self:
        """Return what this user can edit, delete and restore.

        Who can share with everyone also takes care of what others share.
        """
        if user.has_perm(SHARE_PERMISSION):
            return self.filter(models.Q(user=user) | ~models.Q(sharing=Prompt.Sharing.PRIVATE))
        return self.filter(user=user)


class Prompt(SoftDelete):
    """A text with variables, inserted into the composer by its name."""

    class Sharing(models.TextChoices):
        PRIVATE = "private", _("Only me")
        GROUPS = "groups", _("Groups")
        EVERYONE = "everyone", _("Everyone")

    personal = ("title", "text")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        related_name="prompts",
    )
    name = models.CharField(_("name"), max_length=40)
    title = models.CharField(_("title"), max_length=80)
    text = models.TextField(_("text"))
    sharing = models.CharField(
        _("shared with"), max_length=10, choices=Sharing, default=Sharing.PRIVATE
    )
    groups = models.ManyToManyField(
        Group, verbose_name=_("groups"), blank=True, related_name="+"
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    objects = PromptQuerySet.as_manager()

    class Meta:
        verbose_name = _("prompt")
        verbose_name_plural = _("prompts")
        ordering = ["name", "pk"]
        permissions = [("share_prompts", "Can share prompts with everyone")]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"],
                condition=models.Q(deleted_at=None),
                name="one_prompt_a_name",
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_shared(self) -> bool:
        return self.sharing != self.Sharing.PRIVATE


def sharable_groups(user: User) -> models.QuerySet[Group]:
    """Return the groups this user can share with: their teams; administrators all."""
    groups = Group.objects.order_by("name")
    if user.has_perm(SHARE_PERMISSION):
        return groups
    return groups.filter(user=user).exclude(name__in=Role.values)
