"""The branches of a chat: a tree of messages, of which each user sees one path.

A message only stores its parent. Everything else is derived from one read of a chat's ids:
children have higher ids than their parent, and siblings are ordered by id. The model's history
is the path from the root to the message before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from agents.db.compiled_queries import compiled_query
from agents.models import Run
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
    positions = BranchPosition.objects.filter(session=session, user=user, branch=None)
    return positions.values_list("leaf_id", flat=True)


def visible_path(session: ChatSession, user: User) -> list[int]:
    """Return the ids of the messages that this user sees, from the first to the last."""
    tree = read(session.pk)
    return tree.path(visible_leaf(tree, session.pk, user.pk))


@dataclass(frozen=True, slots=True)
class Versions:
    """A place among the versions of a question, or of its answer."""

    number: int
    count: int
    previous: int | None
    next: int | None

    def __str__(self) -> str:
        return f"{self.number}/{self.count} {self.previous or ''} {self.next or ''}"


@dataclass(frozen=True, slots=True)
class Fork:
    """A message's place among its siblings: another question, or the same one asked again."""

    question: Versions | None
    answer: Versions | None

    def __str__(self) -> str:
        return f"{self.question or ''} {self.answer or ''}"


def forks(tree: Tree, path: Iterable[int]) -> dict[int, Fork]:
    """Return the messages of a path that have siblings."""
    if tree.is_linear:
        return {}
    siblings_by_message = {
        pk: siblings for pk in path if len(siblings := tree.siblings(pk)) > 1
    }
    every = [sibling for siblings in siblings_by_message.values() for sibling in siblings]
    texts = dict(Message.objects.filter(pk__in=every).values_list("pk", "text"))
    return {
        pk: _fork(pk, siblings, texts)
        for pk, siblings in siblings_by_message.items()
        if pk in texts
    }


def _fork(pk: int, siblings: Sequence[int], texts: Mapping[int, str]) -> Fork:
    """Return the place of a message; another question is entered at its newest answer."""
    answers_by_text: dict[str, list[int]] = {}
    for sibling in siblings:
        if sibling in texts:  # it may have been deleted in the meantime
            answers_by_text.setdefault(texts[sibling], []).append(sibling)
    answers = answers_by_text[texts[pk]]
    questions = [pk if answers is group else group[-1] for group in answers_by_text.values()]
    return Fork(question=_versions(pk, questions), answer=_versions(pk, answers))


def _versions(pk: int, among: Sequence[int]) -> Versions | None:
    if len(among) < 2:
        return None
    index = among.index(pk)
    return Versions(
        number=index + 1,
        count=len(among),
        previous=among[index - 1] if index else None,
        next=among[index + 1] if index + 1 < len(among) else None,
    )


def show(session: ChatSession, user: User, message: int) -> bool:
    """Show this user the branch of a message, as they left it; return whether it exists."""
    with transaction.atomic():
        tree = read(session.pk)
        if message not in tree:
            return False
        previous_leaf = visible_leaf(tree, session.pk, user.pk)
        left_branch, entered_branch = _parting(tree.path(previous_leaf), tree.path(message))
        if entered_branch is None:  # it is on the visible path
            return True
        if left_branch is not None:
            _remember(session.pk, user.pk, left_branch, previous_leaf)
        _remember(session.pk, user.pk, None, _leaf_below(tree, user.pk, message))
    return True


def linked_leaf(tree: Tree, session: int, user: int, message: int | None) -> int | None:
    """Return the end of the branch that a link to a message displays; nothing is saved."""
    visible = visible_leaf(tree, session, user)
    if message is None or message not in tree or message in tree.path(visible):
        return visible
    return _leaf_below(tree, user, message)


def _leaf_below(tree: Tree, user: int, message: int) -> int | None:
    """Return the end of a message's branch, as this user left it."""
    position = BranchPosition.objects.filter(user=user, branch=message).first()
    return tree.newest_leaf(
        position.leaf_id if position and position.leaf_id in tree else message
    )


def _parting(old_path: list[int], new_path: list[int]) -> tuple[int | None, int | None]:
    """Return the first message on each path that isn't on the other one."""
    pairs = zip_longest(old_path, new_path)
    return next(((old, new) for old, new in pairs if old != new), (None, None))


def _remember(session: int, user: int, branch: int | None, leaf: int | None) -> None:
    if leaf is not None:
        BranchPosition.objects.update_or_create(
            {"leaf_id": leaf}, session_id=session, user_id=user, branch_id=branch
        )


def keep_readers(session: ChatSession, tree: Tree, parent: int | None) -> None:
    """Keep everybody where they are, before a message is added that isn't on every path.

    A stored position means the end of the branch below it, so it has to be the end when that
    branch gets a fork; and without one, the newest message counts.
    """
    newest = tree.newest_leaf()
    if newest is None or parent == newest:
        return
    positions = list(BranchPosition.objects.filter(session=session))
    for position in positions:
        leaf = tree.newest_leaf(position.leaf_id)
        if leaf is not None and leaf != position.leaf_id:
            BranchPosition.objects.filter(pk=position.pk).update(leaf=leaf)
    placed = {position.user_id for position in positions if position.branch_id is None}
    readers = {session.user_id, *session.members.values_list("user", flat=True)}
    BranchPosition.objects.bulk_create(
        BranchPosition(session=session, user_id=user, leaf_id=newest)
        for user in readers - placed
    )


def enter(message: Message) -> None:
    """Show its author a message on a new branch, and remember the branch they were on."""
    tree = read(message.session_id)
    previous_leaf = visible_leaf(tree, message.session_id, message.author_id)
    left_branch, entered_branch = _parting(tree.path(previous_leaf), tree.path(message.pk))
    if entered_branch is None:
        return
    if left_branch is not None:
        _remember(message.session_id, message.author_id, left_branch, previous_leaf)
    _remember(message.session_id, message.author_id, None, message.pk)


def detach(session: ChatSession, doomed: set[int]) -> None:
    """Prepare a deletion: what follows these messages is attached to what precedes them.

    Readers of a deleted branch see the newest one of what is left at its fork.
    """
    tree = read(session.pk)
    moved = {}
    for position in BranchPosition.objects.filter(session=session, leaf__in=doomed):
        leaf = tree.newest_leaf(position.leaf_id) or position.leaf_id
        survivor = leaf if leaf not in doomed else _nearest_other(tree, leaf, doomed)
        if survivor is not None and position.branch_id not in doomed:
            moved[position.pk] = survivor
    reattach_children(doomed, session.pk)
    remaining = Tree(
        {pk: parent for pk, parent in read(session.pk).parents.items() if pk not in doomed}
    )
    for pk, survivor in moved.items():
        BranchPosition.objects.filter(pk=pk).update(leaf=remaining.newest_leaf(survivor))
    gone = Q(leaf__in=doomed) | Q(branch__in=doomed)
    BranchPosition.objects.filter(gone, session=session).delete()


def reattach_children(doomed: Iterable[int], session: int) -> None:
    """Attach what follows these messages to what precedes them, before they are deleted."""
    tree = read(session)
    gone = set(doomed)
    for pk in gone & tree.parents.keys():
        if any(child not in gone for child in tree.children.get(pk, ())):
            children = Message.objects.filter(parent=pk).exclude(pk__in=gone)
            children.update(parent=_nearest_other(tree, pk, gone))


def _nearest_other(tree: Tree, pk: int, gone: set[int]) -> int | None:
    """Return the nearest ancestor that stays."""
    ancestor: int | None = pk
    while ancestor in gone:
        ancestor = tree.parents.get(ancestor)
    return ancestor if ancestor in tree else None


def run_tree(run: Run) -> dict[int, int | None]:
    """Return the runs of this run's chat, each with the one before it."""
    session = Message.objects.filter(run=run).values_list("session", flat=True).first()
    if session is None:
        return {}
    posted = Message.objects.posted().filter(session=session)
    rows = {
        pk: (parent, run) for pk, parent, run in posted.values_list("pk", "parent_id", "run")
    }
    previous_runs: dict[int, int | None] = {}
    for parent, own in rows.values():
        while parent in rows and rows[parent][1] is None:  # its run was deleted
            parent = rows[parent][0]
        if own is not None:
            previous_runs[own] = rows[parent][1] if parent in rows else None
    return previous_runs


def regenerated_runs(runs: Sequence[int]) -> list[tuple[int, int]]:
    """Return each run with the next one that answered the same message again.

    One of them is among the given ones.
    """
    answered = Message.objects.filter(run__in=runs).values_list("session_id", "parent_id")
    parents = {parent for _session, parent in answered if parent is not None}
    sessions = {session for session, parent in answered if parent is None}
    is_sibling = Q(parent__in=parents) | Q(parent=None, session__in=sessions)
    siblings = Message.objects.posted().filter(is_sibling, run__isnull=False)
    answers: dict[tuple[int, int | None, str], list[int]] = {}
    columns = ("session_id", "parent_id", "text", "run_id")
    for session, parent, text, run in siblings.values_list(*columns):
        if run is not None:
            answers.setdefault((session, parent, text.strip()), []).append(run)
    pairs = [pair for run_pks in answers.values() for pair in pairwise(run_pks)]
    return [pair for pair in pairs if not set(runs).isdisjoint(pair)]
