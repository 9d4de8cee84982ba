"""Whether a run remembers, and whose memory it uses."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q, QuerySet
from django.utils.translation import gettext as _

from agents.db.compiled_queries import compiled_query
from agents.models import (
    Agent,
    HiddenTopic,
    Membership,
    MemoryExclusion,
    Project,
    Run,
)

from .errors import MemoryRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScope:
    """Where a run's memories are saved: with its user, or in its project."""

    user: int
    project: int | None = None


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


def scope_of(run: Run, agent: Agent) -> MemoryScope:
    """Return where this run can save memories; raise MemoryRejected with the reason."""
    if run.user_id is None or not is_possible(run, agent):
        raise MemoryRejected(_("This agent doesn't save memories."))
    if agent.personal_data == Agent.PersonalData.UNKEPT:
        raise MemoryRejected(_("This agent saves no personal data, so it has no memory."))
    if is_excluded(run.user_id):
        raise MemoryRejected(_("Your memory is turned off."))
    if HiddenTopic.objects.filter(topic=run.topic).exists():
        raise MemoryRejected(_("Nothing is remembered in a temporary chat."))
    if run.project_id is not None:
        return _project_scope(run.user_id, run.project_id)
    if Membership.objects.filter(topic=run.topic).exists():
        raise MemoryRejected(_("This chat is shared, so nothing is saved to your memory."))
    return MemoryScope(user=run.user_id)


def _project_scope(user: int, project: int) -> MemoryScope:
    """Return the project's memory, which later members will read, too."""
    if not Project.objects.editable_by(user).filter(pk=project, uses_memory=True).exists():
        raise MemoryRejected(_("You can't save memories in this project."))
    return MemoryScope(user=user, project=project)


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
    return Q(profile__has_memory=False) | Q(Exists(groups))
