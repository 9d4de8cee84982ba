"""Projects: chats with instructions, documents, members and a memory of their own."""

from typing import Self

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from ..catalog.agents import Agent
from ..types import AnyUser
from .access import Membership
from .collections import PROJECT_TOPIC_PREFIX


class ProjectQuerySet(models.QuerySet["Project"]):
    def for_user(self, user: AnyUser | int) -> Self:
        """Return the projects this user is a member of."""
        return self.filter(pk__in=_projects_of(user))

    def editable_by(self, user: AnyUser | int) -> Self:
        """Return the projects whose instructions and documents this user can change."""
        return self.filter(pk__in=_projects_of(user).filter(may_write=True))

    def owned_by(self, user: AnyUser | int) -> Self:
        """Return the projects this user can share and delete."""
        return self.for_user(user).filter(owner=_key(user))


def _projects_of(user: AnyUser | int) -> "models.QuerySet[ProjectMember]":
    members = ProjectMember.objects.filter(user=_key(user), user__is_active=True)
    return members.order_by().values("project")  # type: ignore[return-value]


def _key(user: AnyUser | int) -> int | None:
    # Compiled queries have a placeholder instead of a user.
    return user.pk if hasattr(user, "pk") else user


class Project(models.Model):
    """Chats that share instructions, documents, members and memory."""

    personal = ("name", "description", "instructions")
    MAX_INSTRUCTIONS = 8_000

    name = models.CharField(_("name"), max_length=80)
    description = models.CharField(_("description"), max_length=300, blank=True)
    instructions = models.TextField(
        _("instructions"),
        blank=True,
        max_length=MAX_INSTRUCTIONS,
        help_text=_(
            "Sent with every chat of the project, instead of your custom instructions."
        ),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        related_name="projects",
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("default agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Answers new chats of the project unless another one is chosen."),
    )
    uses_memory = models.BooleanField(
        _("use memory"),
        default=True,
        db_default=True,
        help_text=_("Save memories for this project. Members can read and change them."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("chat:project", args=[self.pk])

    @property
    def topic(self) -> str:
        return f"{PROJECT_TOPIC_PREFIX}{self.pk}"


class ProjectMember(Membership):
    """A member of a project, including its owner."""

    project = models.ForeignKey(
        Project, verbose_name=_("project"), on_delete=models.CASCADE, related_name="members"
    )

    class Meta:
        verbose_name = _("project member")
        verbose_name_plural = _("project members")
        ordering = ["pk"]
