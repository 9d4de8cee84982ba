"""Collections of documents, and who can read them."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _

from ..soft_delete import SoftDelete, SoftDeleteQuerySet
from ..types import AnyUser
from .access import Membership

# Who has it manages the collections of the installation.
MANAGE_PERMISSION = "agents.change_collection"
OF_INSTALLATION = models.Q(owner=None, topic="")
PROJECT_TOPIC_PREFIX = "project."


class CollectionQuerySet(SoftDeleteQuerySet["Collection"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return the collections this user can see, and whose documents they can open."""
        if not user.pk or not user.is_active:
            return self.none()
        return self.visible_to(user.pk, is_manager=user.has_perm(MANAGE_PERMISSION))

    def visible_to(self, user: int, *, is_manager: bool) -> Self:
        """Return what an active user can read, by their id."""
        may = _without_consent(user, is_manager=is_manager) | _shared_with(user)
        return self.filter(may, deleted_at=None).distinct()

    def searched_for(self, user: int, *, is_manager: bool) -> Self:
        """Return what searches and agents read for an active user, by their id.

        What another user shares with them is added when they, or an administrator, accept it:
        nobody else decides what a user's agents read.
        """
        answers = CollectionAcceptance.objects.filter(collection=models.OuterRef("pk"))
        own = answers.filter(user=user)
        of_groups = answers.filter(group__in=_groups_of(user))
        # An administrator decides for a group until a member decides for themselves.
        has_consent = (
            models.Q(owner=None)
            | models.Exists(own.filter(is_accepted=True))
            | (models.Exists(of_groups) & ~models.Exists(own))
        )
        may = _without_consent(user, is_manager=is_manager) | (_shared_with(user) & has_consent)
        return self.filter(may, deleted_at=None).distinct()

    def editable_by(self, user: AnyUser) -> Self:
        """Return collections to which this user can add documents."""
        if not user.pk or not user.is_active:
            return self.none()
        may = models.Q(owner=user.pk) | models.Q(shares__user=user.pk, shares__may_edit=True)
        writable = Membership.objects.filter(user=user.pk, may_write=True)
        may |= models.Q(topic__in=writable.values("topic"))
        if user.has_perm(MANAGE_PERMISSION):
            may |= OF_INSTALLATION
        return self.filter(may, deleted_at=None).distinct()

    def managed_by(self, user: AnyUser) -> Self:
        """Return collections that this user can rename, share and delete."""
        if not user.pk or not user.is_active:
            return self.none()
        may = models.Q(owner=user.pk, topic="")
        if user.has_perm(MANAGE_PERMISSION):
            may |= OF_INSTALLATION
        return self.filter(may, deleted_at=None)

    def library(self) -> Self:
        """Return collections that belong to no chat or project."""
        return self.filter(topic="")

    def with_page(self) -> Self:
        """Return collections with a page: the library's and those of projects, not of chats."""
        of_project = models.Q(topic__startswith=PROJECT_TOPIC_PREFIX)
        return self.filter(models.Q(topic="") | of_project)


def _groups_of(user: int) -> "models.QuerySet[Group]":
    return Group.objects.filter(user=user).order_by().values("pk")  # type: ignore[return-value]


def _shared_with(user: int) -> models.Q:
    return models.Q(groups__in=_groups_of(user)) | models.Q(shares__user=user)


def _without_consent(user: int, *, is_manager: bool) -> models.Q:
    """Return what is the user's own, joined by them, or chosen by an administrator."""
    may = (
        models.Q(owner=user)
        | models.Q(is_open=True)
        | models.Q(topic__in=Membership.objects.filter(user=user).values("topic"))
    )
    return may | OF_INSTALLATION if is_manager else may


class Collection(SoftDelete):
    """Documents that are searched together and have the same readers.

    Without an owner it belongs to the installation, and administrators manage it. With a topic,
    it belongs to one chat or project, and its members read it.
    """

    name = models.CharField(_("name"), max_length=80)
    description = models.CharField(
        _("description"),
        max_length=300,
        blank=True,
        help_text=_("What agents can find here. They read this to decide where to search."),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="collections",
        help_text=_("Leave empty if it belongs to the installation."),
    )
    topic = models.CharField(_("topic"), max_length=80, blank=True, editable=False)
    is_open = models.BooleanField(
        _("open to everyone"),
        default=False,
        help_text=_("Every signed-in user can search it and open its documents."),
    )
    groups = models.ManyToManyField(
        Group,
        verbose_name=_("groups"),
        blank=True,
        related_name="+",
        help_text=_("Members of these groups can search it and open its documents."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    deleted_from = models.ForeignKey(
        "self",
        verbose_name=_("deleted from"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="removals",
        help_text=_("The collection from which these documents were deleted together."),
    )

    objects = CollectionQuerySet.as_manager()

    class Meta:
        verbose_name = _("collection")
        verbose_name_plural = _("collections")
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["topic"],
                condition=~models.Q(topic=""),
                name="one_collection_a_topic",
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(topic="", owner=None, deleted_at=None),
                name="one_collection_a_name",
                violation_error_message=_("A collection with this name already exists."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class CollectionShare(models.Model):
    """A user with whom a collection is shared by name."""

    collection = models.ForeignKey(
        Collection,
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        related_name="shares",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        related_name="collection_shares",
    )
    may_edit = models.BooleanField(_("edit access"), default=False)

    class Meta:
        verbose_name = _("collection access")
        verbose_name_plural = _("collection access")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["collection", "user"], name="one_share_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.collection} {self.user}"


class CollectionAcceptance(models.Model):
    """Whether a shared collection is searched for a user, or for the members of a group.

    Users decide for themselves. An administrator who shares decides for those who receive it.
    """

    collection = models.ForeignKey(
        Collection,
        verbose_name=_("collection"),
        on_delete=models.CASCADE,
        related_name="acceptances",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
    )
    group = models.ForeignKey(
        Group, verbose_name=_("group"), on_delete=models.CASCADE, null=True, related_name="+"
    )
    is_accepted = models.BooleanField(
        _("searched"), default=True, help_text=_("No if the user has dismissed it.")
    )

    class Meta:
        verbose_name = _("accepted collection")
        verbose_name_plural = _("accepted collections")
        ordering = ["pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["collection", "user"], name="one_answer_a_person"),
            models.UniqueConstraint(fields=["collection", "group"], name="one_answer_a_group"),
            models.CheckConstraint(
                condition=models.Q(user=None) ^ models.Q(group=None), name="user_or_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.collection} {self.user_id or self.group_id}"
