"""Whether a run remembers or teaches anything, and for whom."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from agents.db.compiled_queries import compiled_query
from agents.models import (
    Agent,
    EmbedVisitor,
    HiddenTopic,
    Membership,
    Memory,
    MemoryExclusion,
    Personalization,
    Project,
    Run,
)
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX

from .errors import NoteRejected


def is_possible(run: Run, agent: Agent) -> bool:
    """Whether the run can use memory at all, by what is known without a query.

    A workflow and a test of a draft run as their author wrote them, and a rerun of another
    user's question is about neither of them.
    """
    if run.user_id is None or not agent.uses_memory:
        return False
    if run.workflow_id is not None or run.is_draft_run:
        return False
    if run.is_rerun:  # of whose question is unknown once that is deleted
        return run.origin is not None and run.origin.user_id == run.user_id
    return True


def new_memory(run: Run, agent: Agent) -> Memory:
    """Return an empty memory of the run's user or its project; raise NoteRejected."""
    if run.user_id is None or not is_possible(run, agent):
        raise NoteRejected(_("This agent doesn't save memories."))
    if agent.personal_data == Agent.PersonalData.UNKEPT:
        raise NoteRejected(_("This agent saves no personal data, so it has no memory."))
    if is_excluded(run.user_id):
        raise NoteRejected(_("Your memory is turned off."))
    if HiddenTopic.objects.filter(topic=run.topic).exists():
        raise NoteRejected(_("Temporary chats aren't saved to memory."))
    if run.project_id is not None:  # its later members will read it, too
        projects = Project.objects.editable_by(run.user_id)
        if not projects.filter(pk=run.project_id, uses_memory=True).exists():
            raise NoteRejected(_("You can't save memories in this project."))
    elif Membership.objects.filter(topic=run.topic).exists():
        raise NoteRejected(_("This chat is shared, so nothing is saved to your memory."))
    return Memory(user_id=run.user_id, project_id=run.project_id, run=run)


def is_excluded(user: int) -> bool:
    """Whether the user, or an administrator for one of their groups, has turned memory off."""
    return bool(_excluded(user))


@compiled_query
def _excluded(user: int) -> QuerySet[Any, int]:
    people = get_user_model()._default_manager.filter(pk=user)
    return people.filter(excluded_condition(user)).values_list("pk", flat=True)


def excluded_condition(user: Any) -> Q:
    """Return the condition on users for whom memory is off."""
    groups = MemoryExclusion.objects.filter(group__user=user)
    anonymous = EmbedVisitor.objects.filter(user=user, subject="")
    return Q(profile__has_memory=False) | Q(Exists(groups)) | Q(Exists(anonymous))


def learnable() -> Q:
    """Return the condition on runs that something can be learned from.

    Nothing is learned from temporary and deleted chats, tests, workflows, imported answers,
    agents that save no personal data, visitors of other sites, and users who turned it off.
    """
    visitors = EmbedVisitor.objects.filter(user=OuterRef("user"))
    hidden = HiddenTopic.objects.filter(topic=OuterRef("topic"))
    off = Personalization.objects.filter(user=OuterRef("user"), learns=False)
    return (
        Q(agent__learns=True, user__is_active=True, workflow=None, origin=None)
        & ~Q(agent__personal_data=Agent.PersonalData.UNKEPT)
        & ~Q(route=Run.IMPORTED)
        & ~Q(topic__startswith=DRAFT_TOPIC_PREFIX)
        & ~Q(Exists(hidden))
        & ~Q(Exists(visitors))
        & ~Q(Exists(off))
    )
