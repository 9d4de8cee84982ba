"""The memories that a run may use: one query, which most users' runs have no rows for."""

from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q, QuerySet

from agents.db.compiled_queries import compiled_query
from agents.models import Agent, HiddenTopic, Membership, Memory, ProjectMember, Run

from . import policy

MAX_CANDIDATES = 500
COLUMNS = (
    *("pk", "text", "subject", "kind", "valid_from", "vector", "vector_model"),
    "project_id",
)


class Candidate(NamedTuple):
    """A memory that may fit the question."""

    pk: int
    text: str
    subject: str
    kind: str
    since: datetime
    vector: bytes | None
    vector_model: str
    project: int | None = None


def find_candidates(run: Run, agent: Agent) -> list[Candidate]:
    """Return what the run's user, or its project, has in memory.

    In a shared project and in a shared chat there is no personal memory, and none at all in a
    temporary chat.
    """
    if run.user_id is None or not policy.is_possible(run, agent):
        return []
    if run.project_id is None:
        return [Candidate(*row) for row in _personal(run.user_id, run.topic)]
    rows = _of_project(run.user_id, run.project_id, run.topic)
    return [Candidate(*row) for row in rows]


@compiled_query
def _personal(user: int, topic: str) -> QuerySet[Any, tuple[Any, ...]]:
    return _columns(_current(user, topic).filter(_is_personal(user, topic)))


@compiled_query
def _of_project(user: int, project: int, topic: str) -> QuerySet[Any, tuple[Any, ...]]:
    members = ProjectMember.objects.filter(project=project)
    is_member = Exists(members.filter(user=user))
    in_project = Q(is_member, project=project, project__uses_memory=True)
    is_alone = ~Exists(members.exclude(user=user))
    personal = _is_personal(user, topic) & Q(is_alone)
    return _columns(_current(user, topic).filter(in_project | personal))


def _current(user: int, topic: str) -> QuerySet[Memory]:
    people = get_user_model()._default_manager.filter(pk=user)
    is_off = Exists(people.filter(policy.excluded_condition(user)))
    is_temporary = Exists(HiddenTopic.objects.filter(topic=topic))
    return Memory.objects.current().exclude(is_off).exclude(is_temporary)


def _is_personal(user: int, topic: str) -> Q:
    is_shared = Exists(Membership.objects.filter(topic=topic))
    return Q(~is_shared, user=user, project=None)


def _columns(rows: QuerySet[Memory]) -> QuerySet[Any, tuple[Any, ...]]:
    return rows.order_by("-valid_from", "-pk").values_list(*COLUMNS)[:MAX_CANDIDATES]
