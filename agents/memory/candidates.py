"""The notes that a run may use: the one place that decides it.

A person's own notes are for their own runs, outside of shared chats and shared projects; those
of a project are for runs of its members.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q, QuerySet

from agents.db.compiled_queries import compiled_query
from agents.models import (
    Agent,
    Experience,
    HiddenTopic,
    Membership,
    Memory,
    ProjectMember,
    Run,
)

from . import policy, texts

MAX_CANDIDATES = 500
Scope = Experience.Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a run's user can use: tools by name, and collections, which are read if needed."""

    tools: frozenset[str]
    collections: Callable[[], frozenset[int]] = frozenset

    def covers(self, experience: Experience) -> bool:
        """Whether everything that an experience is about is within reach."""
        if not self.tools.issuperset(experience.tools):
            return False
        collections = experience.collections
        return not collections or self.collections().issuperset(collections)


def find_memories(run: Run, agent: Agent) -> list[Memory]:
    """Return what the run's user, or its project, has in memory; none in a temporary chat."""
    if run.user_id is None or not policy.is_possible(run, agent):
        return []
    if run.project_id is None:
        return _personal_memories(run.user_id, run.topic)
    return _project_memories(run.user_id, run.project_id, run.topic)


# One query, which most users' runs have no rows for.
@compiled_query
def _personal_memories(user: int, topic: str) -> QuerySet[Memory]:
    own = Q(user=user, project=None) & ~_is_shared(topic)
    return _latest_memories(user, topic, own)


@compiled_query
def _project_memories(user: int, project: int, topic: str) -> QuerySet[Memory]:
    own = Q(user=user, project=None) & ~_is_shared(topic) & ~_has_others(project, user)
    shared = Q(project=project, project__uses_memory=True) & _is_member(project, user)
    return _latest_memories(user, topic, own | shared)


def _latest_memories(user: int, topic: str, condition: Q) -> QuerySet[Memory]:
    people = get_user_model()._default_manager.filter(pk=user)
    is_off = Q(Exists(people.filter(policy.excluded_condition(user))))
    rows = Memory.objects.current().filter(condition, ~is_off, ~_is_temporary(topic))
    return rows.order_by("-valid_from", "-pk")[:MAX_CANDIDATES]


def find_experiences(run: Run, agent: Agent, reach: Reach) -> list[Experience]:
    """Return what this run may use: of its user, its project or its agent."""
    if not agent.learns or run.workflow_id is not None:
        return []
    rows = Experience.objects.current().filter(_is_usable(run), agent=agent.pk)
    # In a test, the lesson of the same question would give the answer away.
    if run.origin_id is not None:
        rows = rows.exclude(run=run.origin_id)
    if run.is_draft_run:
        rows = rows.exclude(question=texts.gist(run.query))
    best = rows.order_by("-helpful", "-pk")[:MAX_CANDIDATES]
    return [experience for experience in best if reach.covers(experience)]


def _is_usable(run: Run) -> Q:
    """Return the condition; a test of a draft only uses those reviewed for everyone."""
    everyones = Q(scope=Scope.AGENT)
    is_others = run.origin is not None and run.origin.user_id != run.user_id
    if run.user_id is None or run.is_draft_run or is_others:
        return everyones
    user = run.user_id
    project = run.project_id
    people = get_user_model()._default_manager.filter(pk=user)
    is_off = Q(personalization__learns=False) | policy.excluded_condition(user)
    own = Q(scope=Scope.PERSON, user=user) & (Q(project=None) | Q(project=project))
    own &= ~_is_shared(run.topic) & ~_is_temporary(run.topic)
    own &= ~Q(Exists(people.filter(is_off)))
    if project is None:
        return everyones | own
    shared = Q(scope=Scope.PROJECT, project=project) & _is_member(project, user)
    return everyones | shared | (own & ~_has_others(project, user))


def _is_shared(topic: Any) -> Q:
    return Q(Exists(Membership.objects.filter(topic=topic)))


def _is_temporary(topic: Any) -> Q:
    return Q(Exists(HiddenTopic.objects.filter(topic=topic)))


def _is_member(project: Any, user: Any) -> Q:
    members = ProjectMember.objects.filter(project=project, user=user, user__is_active=True)
    return Q(Exists(members))


def _has_others(project: Any, user: Any) -> Q:
    return Q(Exists(ProjectMember.objects.filter(project=project).exclude(user=user)))
