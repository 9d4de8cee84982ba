"""The branches of a chat: a tree of messages, of which each user sees one path.

A message only stores its parent. Everything else is derived from one read of a chat's ids:
children have higher ids than their parent, and siblings are ordered by id. The model's history
is the path from the root to the message before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.db.compiled_queries import compiled_query
from chat.models import BranchPosition, ChatSession, Message


@dataclass(frozen=True)
class Tree:
    """The posted messages of a chat: each id with its parent's, in the order of ids."""

    parents: dict[int, int | None]
    children: dict[int | None, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        children: dict[int | None, list[int]] = {}
        for pk, parent in self.parents.items():
            children.setdefault(parent if parent in self.parents else None, []).append(pk)
        object.__setattr__(self, "children", children)

    def __contains__(self, pk: object) -> bool:
        return pk in self.parents

    @property
    def is_linear(self) -> bool:
        """Whether no message has siblings."""
        return len(self.children) == len(self.parents)

    def path(self, leaf: int | None) -> list[int]:
        """Return the ids from the root to this message."""
        path = []
        while leaf is not None and leaf in self.parents:
            path.append(leaf)
            leaf = self.parents[leaf]
        return path[::-1]

    def parent(self, pk: int) -> int | None:
        """Return the parent, if it still exists."""
        parent = self.parents[pk]
        return parent if parent in self.parents else None

    def siblings(self, pk: int) -> list[int]:
        """Return the alternatives at this message's fork, including itself."""
        return self.children[self.parent(pk)]

    def descendants(self, pk: int) -> Iterator[int]:
        """Yield everything below this message."""
        below = list(self.children.get(pk, ()))
        while below:
            yield (last := below.pop())
            below += self.children.get(last, ())

    def newest_leaf(self, below: int | None = None) -> int | None:
        """Return the newest message below this one, or of the chat; itself if there is none."""
        if below is None:
            return next(reversed(self.parents), None)
        return max(self.descendants(below), default=below)


def read(session: int) -> Tree:
    """Return the tree of a chat's posted messages, in one query."""
    return Tree(dict(_ids_with_parents(session)))


@compiled_query
def _ids_with_parents(session: int) -> QuerySet[Message, tuple[int, int | None]]:
    posted = Message.objects.posted().filter(session=session)
    return posted.values_list("pk", "parent_id")


def visible_leaf(tree: Tree, session: int, user: int) -> int | None:
    """Return the end of the branch that this user sees: the newest, if they never chose one."""
    if tree.is_linear:
        return tree.newest_leaf()
    chosen = next(iter(_visible_leaves(session, user)), None)
    return tree.newest_leaf(chosen if chosen in tree else None)


@compiled_query
def _visible_leaves(session: int, user: int) -> QuerySet[BranchPosition, int]:
    here = BranchPosition.objects.filter(session=session, user=user, branch=None)
    return here.values_list("leaf_id", flat=True)


def visible_path(session: ChatSession, user: User) -> list[int]:
    """Return the ids of the messages that this user sees, from the first to the last."""
    tree = read(session.pk)
    return tree.path(visible_leaf(tree, session.pk, user.pk))


def reattach_children(doomed: Iterable[int], session: int) -> None:
    """Attach what follows these messages to what precedes them, before they are deleted."""
    tree, gone = read(session), set(doomed)
    for pk in gone & tree.parents.keys():
        left = Message.objects.filter(parent=pk).exclude(pk__in=gone)
        left.update(parent=_nearest_other(tree, pk, gone))


def _nearest_other(tree: Tree, pk: int, gone: set[int]) -> int | None:
    """Return the nearest ancestor that stays."""
    return next(
        (ancestor for ancestor in reversed(tree.path(pk)) if ancestor not in gone), None
    )
