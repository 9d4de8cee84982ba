"""Moves chats into and out of projects, and says what that changes."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Project
from chat.models import ChatSession
from chat.sessions import deletion

from . import membership


@dataclass(frozen=True, slots=True)
class MoveChoice:
    """A project that a chat can be moved to, and what changes for the chat then."""

    project: Project | None
    changes: list[str]
    is_here: bool = False


def choices(chat: ChatSession, user: User) -> list[MoveChoice]:
    """Return the projects of a user and, for a chat in one of them, none."""
    move_choices = [MoveChoice(None, [], is_here=chat.project_id is None)]
    for project in Project.objects.for_user(user):
        changes = [_("The agent gets the project's instructions and can search its documents.")]
        if membership.is_shared(project):
            changes.append(_("Your personal memory isn't used, because the project is shared."))
        changes.append(_("Only you see the chat, unless you share it."))
        is_here = project.pk == chat.project_id
        move_choices.append(MoveChoice(project, changes, is_here))
    return move_choices


@transaction.atomic
def move(chat: ChatSession, user: User, project: Project | None) -> None:
    """Move the user's own chat; what it has read before isn't sent to a model again."""
    ChatSession.objects.filter(pk=chat.pk, user=user).update(project=project)
    transaction.on_commit(lambda: deletion.announce([user.pk]))
