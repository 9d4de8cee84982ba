"""Which collections a search may read. Only the server computes it, from rows.

Ids that a browser or a model names are intersected with it, never added to it.
"""

from collections.abc import Collection as Ids
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission, User
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When

from agents.db.compiled_queries import compiled_query
from agents.models import Agent, Collection, EmbedVisitor
from agents.models.sharing.collections import MANAGE_PERMISSION, CollectionQuerySet
from agents.models.types import AnyUser


@dataclass(frozen=True, slots=True)
class Scope:
    """The ids of the collections that can be searched."""

    collections: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.collections)

    def limited_to(self, collections: Iterable[int]) -> Self:
        """Return the part of it that was asked for."""
        return type(self)(self.collections & frozenset(collections))

    def rows(self) -> QuerySet[Collection]:
        """Return its collections, by name."""
        return Collection.objects.filter(pk__in=self.collections)


def for_run(
    user: int | None,
    topic: str,
    agent: Agent | None,
    *,
    topics: Iterable[str] = (),
    chosen: Ids[int] | None = None,
) -> Scope:
    """Return what a run can search: the library as its user sees it, and its own documents.

    An agent can have a choice of collections (`chosen`, if it isn't saved yet), and never sees
    more than the user. `topics` are those of its project. Without a user, it sees what is open.
    For a visitor of another site, what is open to everyone must also be the agent's choice.
    """
    if chosen is None and agent is not None and agent.pk is not None:
        chosen = _chosen_by(agent.pk)
    own = {topic, *topics} - {""}
    # Its own documents too: a run can outlast its user's membership, while it waits for days.
    visible = {
        pair
        for name in own or {""}
        for pair in _searched_with(user, name, has_choice=bool(chosen))
    }
    return Scope(
        frozenset(
            pk
            for pk, collection_topic in visible
            if collection_topic or not chosen or pk in chosen
        )
    )


def for_visitors(group: int, agent: Agent) -> Scope:
    """Return what the visitors of an embedded chat search, who are members of this group."""
    shared = Collection.objects.filter(groups=group, owner=None, topic="")
    chosen = set(_chosen_by(agent.pk))
    if not chosen:
        return _scope(shared)
    return _scope(shared | _open_collections().filter(topic="")).limited_to(chosen)


def for_user(user: AnyUser) -> Scope:
    """Return everything that is searched for a user, also in their chats and projects."""
    if not user.pk or not user.is_active:
        return Scope(frozenset())
    is_manager = user.has_perm(MANAGE_PERMISSION)
    return _scope(Collection.objects.searched_for(user.pk, is_manager=is_manager))


def for_collection(collection: int) -> Scope:
    """Return one collection; the caller has checked access to it."""
    return Scope(frozenset({collection}))


def open_to_everyone() -> Scope:
    return _scope(_open_collections())


def everything() -> Scope:
    """Return all collections of the library: for commands that the operator runs."""
    return _scope(Collection.objects.library().filter(deleted_at=None))


def _open_collections() -> CollectionQuerySet:
    return Collection.objects.filter(is_open=True, deleted_at=None)


# Every run asks these.


def _searched_with(user: int | None, topic: str, *, has_choice: bool) -> list[tuple[int, str]]:
    """Return the library and a topic's documents as this user sees them, with their topics.

    Without a user, it is what is open to everyone.
    """
    if user is None:
        return _open(topic)
    for _pk, is_manager, is_visitor in _active_user(user):
        if is_visitor and not has_choice:
            return _shared_with_visitor(user, topic)
        return (
            _searched_for_manager(user, topic)
            if is_manager
            else _searched_for_user(user, topic)
        )
    return []


@compiled_query
def _active_user(pk: int) -> QuerySet[User, tuple[int, bool, bool]]:
    """Return an active user, whether they manage the library, as `has_perm` says, or visit."""
    app, code = MANAGE_PERMISSION.split(".")
    granted = Permission.objects.filter(content_type__app_label=app, codename=code)
    by_group = granted.filter(group__user=OuterRef("pk"))
    by_user = granted.filter(user=OuterRef("pk"))
    may = Q(is_superuser=True) | Exists(by_user) | Exists(by_group)
    users = get_user_model()._default_manager.filter(pk=pk, is_active=True).order_by()
    is_manager = Case(When(may, then=Value(1)), default=Value(0))
    visits = Exists(EmbedVisitor.objects.filter(user=OuterRef("pk")))
    is_visitor = Case(When(visits, then=Value(1)), default=Value(0))
    return users.values_list("pk", is_manager, is_visitor)


@compiled_query
def _searched_for_user(user: int, topic: str) -> QuerySet[Collection, tuple[int, str]]:
    return _with(Collection.objects.searched_for(user, is_manager=False), topic)


@compiled_query
def _searched_for_manager(user: int, topic: str) -> QuerySet[Collection, tuple[int, str]]:
    return _with(Collection.objects.searched_for(user, is_manager=True), topic)


@compiled_query
def _shared_with_visitor(user: int, topic: str) -> QuerySet[Collection, tuple[int, str]]:
    """Return what an administrator shares with a visitor's group."""
    shared = Collection.objects.filter(groups__user=user, owner=None, deleted_at=None)
    return _with(shared.distinct(), topic)


@compiled_query
def _open(topic: str) -> QuerySet[Collection, tuple[int, str]]:
    return _with(_open_collections(), topic)


@compiled_query
def _chosen_by(agent: int) -> QuerySet[Any, int]:
    chosen = Agent.collections.through.objects.filter(agent=agent)
    return chosen.values_list("collection_id", flat=True)


def _with(rows: CollectionQuerySet, topic: str) -> QuerySet[Collection, tuple[int, str]]:
    """Return the library's ids and those of a topic."""
    return rows.filter(Q(topic="") | Q(topic=topic)).order_by().values_list("pk", "topic")


def _scope(rows: QuerySet[Collection]) -> Scope:
    return Scope(frozenset(rows.filter(deleted_at=None).values_list("pk", flat=True)))
