"""Members of a project: who reads its documents and memory, and who changes them."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import audit
from agents.db.sanitize import sanitize_text
from agents.models import Collection, Project, ProjectMember
from agents.web.library import deletion
from chat.models import ChatSession

MAX_MEMBERS = 100
MAX_PROJECTS = 200
ACCESS_LEVELS = {"read": gettext_lazy("Can view"), "write": gettext_lazy("Can edit")}


class ProjectRejected(Exception):
    """Raised when a change isn't possible; the user sees the reason."""


@transaction.atomic
def create(owner: User, name: str, **columns: object) -> Project:
    """Create a project with its owner as a member, and a place for its documents."""
    if Project.objects.filter(owner=owner).count() >= MAX_PROJECTS:
        sentence = _("You've reached the limit of %(most)d projects. Delete one first.")
        raise ProjectRejected(sentence % {"most": MAX_PROJECTS})
    project = Project.objects.create(owner=owner, name=name, **columns)
    _save_member(project, owner, may_write=True)
    Collection.objects.create(name=project.name, topic=project.topic)
    return project


def collection_of(project: Project) -> Collection:
    """Return the collection with the project's documents."""
    return Collection.objects.get_or_create(
        {"name": project.name}, topic=project.topic, deleted_at=None
    )[0]


def rename_collection(project: Project) -> None:
    Collection.objects.filter(topic=project.topic).update(name=project.name)


@transaction.atomic
def add(project: Project, name: str, right: str, by: User) -> None:
    """Add a user by name, or change a member's access; raise ProjectRejected."""
    name = sanitize_text(name).strip()
    person = get_user_model().objects.filter(username=name, is_active=True).first()
    if right not in ACCESS_LEVELS:
        raise ProjectRejected(_("Choose a permission."))
    if person is None:
        raise ProjectRejected(_("No user is named “%(name)s”.") % {"name": name[:150]})
    if person.pk == project.owner_id:
        raise ProjectRejected(_("You own this project, so you're already in it."))
    Project.objects.select_for_update().get(pk=project.pk)
    if guests(project).exclude(user=person).count() >= MAX_MEMBERS:
        sentence = _("This project has reached its limit of %(most)d members.")
        raise ProjectRejected(sentence % {"most": MAX_MEMBERS})
    _save_member(project, person, may_write=right == "write")
    who = audit.person(person)
    audit.record(by, audit.MEMBER_ADDED, _audit_subject(project), who=who, right=right)


@transaction.atomic
def remove(project: Project, user: int, by: User) -> None:
    """Remove a member; their chats leave the project. Raises ProjectMember.DoesNotExist."""
    member = guests(project).select_related("user").get(user=user)
    ChatSession.objects.filter(project=project, user=user).update(project=None)
    audit_person = audit.person(member.user)
    member.delete()
    audit.record(by, audit.MEMBER_REMOVED, _audit_subject(project), who=audit_person)


@transaction.atomic
def delete(project: Project, user: User | None) -> None:
    """Delete a project with its documents and memory; its chats stay, without it."""
    for collection in Collection.objects.filter(topic=project.topic, deleted_at=None):
        deletion.delete_collection(collection, user)
        # Restored alone, it would have no owner.
        Collection.objects.filter(pk=collection.pk).update(topic="", owner=project.owner)
    project.delete()


def leave_all(user: User) -> None:
    """Take a user out of all projects, before their account is erased.

    A project of theirs goes to the member who could edit it for the longest time.
    """
    for project in Project.objects.filter(owner=user):
        heir = guests(project).filter(may_write=True).order_by("pk").first()
        if heir is None:
            delete(project, None)
        else:
            Project.objects.filter(pk=project.pk).update(owner=heir.user)
    ProjectMember.objects.filter(user=user).delete()


def guests(project: Project) -> "models.QuerySet[ProjectMember]":
    """Return the members besides the owner."""
    return project.members.exclude(user=project.owner_id).order_by("pk")


def is_shared(project: Project) -> bool:
    return guests(project).exists()


def _save_member(project: Project, person: User, *, may_write: bool) -> None:
    defaults = {"may_write": may_write}
    create_defaults = {"topic": project.topic, **defaults}
    ProjectMember.objects.update_or_create(
        defaults, create_defaults, project=project, user_id=person.pk
    )


def _audit_subject(project: Project) -> str:
    return f"project:{project.pk}"
