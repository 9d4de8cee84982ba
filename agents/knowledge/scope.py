"""Which collections a search may read. Only the server computes it, from rows.

Ids that a browser or a model names are intersected with it, never added to it.
"""

from collections.abc import Collection as Ids
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from agents.models import Agent, Collection
from agents.models.knowledge import CollectionQuerySet
from agents.models.types import AnyUser


@dataclass(frozen=True, slots=True)
class Scope:
    """The ids of the collections that can be searched."""

    collections: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.collections)

    def limited_to(self, wanted: Iterable[int]) -> Self:
        """Return the part of it that was asked for."""
        return type(self)(self.collections & frozenset(wanted))

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
    """
    visible = _visible_to(user)
    library = visible.library()
    if chosen is None:
        chosen = _chosen_by(agent)
    if chosen:
        library = library.filter(pk__in=chosen)
    # A run can outlast its user's membership: it may wait for days for an approval.
    own = visible.filter(topic__in={topic, *topics} - {""})
    return _scope(library, own)


def for_user(user: AnyUser) -> Scope:
    """Return everything a user can read, also the documents of their chats and projects."""
    return _scope(Collection.objects.for_user(user))


def for_collection(collection: int) -> Scope:
    """Return one collection; the caller has checked access to it."""
    return Scope(frozenset({collection}))


def open_to_everyone() -> Scope:
    return _scope(_visible_to(None))


def everything() -> Scope:
    """Return all collections of the library: for commands that the operator runs."""
    return _scope(Collection.objects.library().filter(deleted_at=None))


def _visible_to(user: int | None) -> CollectionQuerySet:
    if user is None:
        return Collection.objects.filter(is_open=True, deleted_at=None)
    found = get_user_model()._default_manager.filter(pk=user).first()
    return Collection.objects.for_user(found) if found else Collection.objects.none()


def _chosen_by(agent: Agent | None) -> Ids[int]:
    if agent is None or agent.pk is None:
        return ()
    return frozenset(
        Agent.collections.through.objects.filter(agent=agent.pk).values_list(
            "collection_id", flat=True
        )
    )


def _scope(*found: QuerySet[Collection]) -> Scope:
    present = (rows.filter(deleted_at=None) for rows in found)
    return Scope(frozenset(pk for rows in present for pk in rows.values_list("pk", flat=True)))
