"""Whether a run learns, and which experiences it may use: the one place that decides it."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q

from agents.memory import policy as memory_policy
from agents.models import (
    Agent,
    Experience,
    HiddenTopic,
    Membership,
    Personalization,
    ProjectMember,
    Run,
)
from agents.models.experiences import ExperienceQuerySet
from agents.models.runs import DRAFT_TOPIC_PREFIX

from . import texts

Scope = Experience.Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a run's user can use: tools by name, and collections, which are read if needed."""

    tools: frozenset[str]
    collections: Callable[[], frozenset[int]] = frozenset

    def covers(self, tools: list[str], collections: list[int]) -> bool:
        """Whether everything that an experience is about is within reach."""
        if not self.tools.issuperset(tools):
            return False
        return not collections or self.collections().issuperset(collections)


def usable_by(run: Run, agent: Agent) -> ExperienceQuerySet:
    """Return the experiences that this run may use, before its tools are considered.

    Those of a person are for their own runs outside of shared chats and projects. A test of a
    draft and an experiment only use those that were reviewed for everyone.
    """
    if not agent.learns or run.workflow_id is not None:
        return Experience.objects.none()
    rows = Experience.objects.current().filter(agent=agent.pk)
    # In a test, the lesson of the same question would give the answer away.
    if run.origin_id is not None:
        rows = rows.exclude(run=run.origin_id)
    if run.is_draft_run:
        rows = rows.exclude(question=texts.gist(run.query))
    return rows.filter(Q(scope=Scope.AGENT) | _of_person(run) | _of_project(run))


def _of_person(run: Run) -> Q:
    if run.user_id is None or run.is_draft_run or _is_others(run):
        return Q(pk__in=())
    is_shared = Exists(Membership.objects.filter(topic=run.topic))
    is_temporary = Exists(HiddenTopic.objects.filter(topic=run.topic))
    others = ProjectMember.objects.filter(project=run.project_id).exclude(user=run.user_id)
    here = Q(project=None) | Q(project=run.project_id)
    mine = Q(scope=Scope.PERSON, user=run.user_id) & here
    mine &= ~Q(is_shared) & ~Q(is_temporary) & ~Q(_is_off(run.user_id))
    return mine if run.project_id is None else mine & ~Q(Exists(others))


def _of_project(run: Run) -> Q:
    if run.user_id is None or run.project_id is None or run.is_draft_run or _is_others(run):
        return Q(pk__in=())
    members = ProjectMember.objects.filter(
        project=run.project_id, user=run.user_id, user__is_active=True
    )
    return Q(Exists(members), scope=Scope.PROJECT, project=run.project_id)


def _is_others(run: Run) -> bool:
    """Whether it repeats another user's question."""
    return run.origin is not None and run.origin.user_id != run.user_id


def _is_off(user: int) -> Exists:
    """Return whether nothing is learned from a user: by their switch, or by their group's."""
    people = get_user_model()._default_manager.filter(pk=user)
    is_off = Q(personalization__learns=False) | memory_policy.excluded_condition(user)
    return Exists(people.filter(is_off))


def learnable() -> Q:
    """Return the condition on runs that something can be learned from.

    Nothing is learned from temporary and deleted chats, tests, workflows, imported answers,
    agents that save no personal data, and users who turned it off.
    """
    hidden = HiddenTopic.objects.filter(topic=OuterRef("topic"))
    off = Personalization.objects.filter(user=OuterRef("user"), learns=False)
    return (
        Q(agent__learns=True, user__is_active=True, workflow=None, origin=None)
        & ~Q(agent__personal_data=Agent.PersonalData.UNKEPT)
        & ~Q(route=Run.IMPORTED)
        & ~Q(topic__startswith=DRAFT_TOPIC_PREFIX)
        & ~Exists(hidden)
        & ~Exists(off)
    )
