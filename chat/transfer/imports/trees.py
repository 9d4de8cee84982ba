"""Turns a source's tree of messages into questions with answers.

Sources store a question, thoughts, tool calls and answers as separate nodes. Here a question
and everything up to the next one is a turn. Every answer to the same question is a branch.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from chat.transfer.imports.values import (
    MAX_CHAT_CHARS,
    MAX_CHAT_NOTES,
    MAX_MESSAGES,
    MAX_NOTE_CHARS,
    MAX_NOTES,
    MAX_TEXT_CHARS,
    Answer,
    Node,
    NotImportable,
    Problem,
    SourceChat,
    Turn,
    cut,
)

NO_QUESTION = "…"


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in an order in which a parent comes first, and the end of the visible branch."""

    turns: list[Turn]
    leaf: int


@dataclass(frozen=True, slots=True)
class _OpenTurn:
    """A question whose answer isn't complete yet."""

    parent: int | None
    question: Node | None
    answers: tuple[Node, ...] = ()


def build(chat: SourceChat, latest: datetime) -> Conversation:
    """Return the turns of a chat, none after `latest`; raise NotImportable.

    A chat without messages can't be imported, and neither can one with too many.
    """
    if len(chat.nodes) > MAX_MESSAGES:
        raise NotImportable(Problem.TOO_MANY_MESSAGES)
    nodes = _connect(chat.nodes)
    if not nodes:
        raise NotImportable(Problem.EMPTY)
    times = [node.created_at for node in nodes.values() if node.created_at is not None]
    since = chat.created_at or min(times, default=latest)
    builder = _Builder(nodes, min(since, latest), latest)
    builder.run()
    if not any(turn.answer or turn.text != NO_QUESTION for turn in builder.turns):
        raise NotImportable(Problem.EMPTY)
    # The nearest node with a role at or above the current one.
    parents = {node.id: node.parent for node in chat.nodes}
    visited: set[str] = set()
    visible = chat.current
    while visible is not None and visible not in nodes and visible not in visited:
        visited.add(visible)
        visible = parents.get(visible)
    leaf = builder.turn_indexes.get(visible or "")
    if leaf is None:
        times = [turn.created_at for turn in builder.turns]
        leaf = max(range(len(times)), key=lambda index: (times[index], index))
    return Conversation(builder.turns, leaf)


class _Builder:
    def __init__(self, nodes: dict[str, Node], since: datetime, latest: datetime) -> None:
        self._children: dict[str | None, list[Node]] = {}
        for node in nodes.values():
            self._children.setdefault(node.parent, []).append(node)
        never = datetime.max.replace(tzinfo=UTC)
        for siblings in self._children.values():
            # Stable: otherwise as in the file.
            siblings.sort(key=lambda node: node.created_at or never)
        self._since = since
        self._latest = latest
        self._chars = MAX_CHAT_CHARS
        self._notes = MAX_CHAT_NOTES
        self.turns: list[Turn] = []
        self.turn_indexes: dict[str, int] = {}  # the turn of each node

    def run(self) -> None:
        """Visit the nodes without recursion, because a chat can have thousands in a row."""
        stack = [self._open(node, None) for node in reversed(self._children.get(None, []))]
        while stack:
            node, turn = stack.pop()
            following = self._children.get(node.id, [])
            questions = [child for child in following if child.role == "user"]
            answers = [child for child in following if child.role != "user"]
            if questions or not answers:
                turn_index = self._close(turn)
                stack += [self._open(child, turn_index) for child in reversed(questions)]
            stack += [
                (child, replace(turn, answers=(*turn.answers, child)))
                for child in reversed(answers)
            ]

    def _open(self, node: Node, parent: int | None) -> tuple[Node, _OpenTurn]:
        if node.role == "user":
            return node, _OpenTurn(parent, node)
        return node, _OpenTurn(parent, None, (node,))

    def _close(self, turn: _OpenTurn) -> int:
        since = self._since
        if turn.parent is not None:
            parent = self.turns[turn.parent]
            since = parent.answer.created_at if parent.answer else parent.created_at
        # What this turn repeats of the answers above it counts.
        for answer_node in turn.answers:
            self._chars -= len(answer_node.text) + sum(map(len, answer_node.notes)) + 50
            self._notes -= len(answer_node.notes)
        if min(self._chars, self._notes) < 0:
            raise NotImportable(Problem.TOO_LARGE)
        first = turn.question or turn.answers[0]
        asked_at = self._time(first.created_at, since)
        text = cut(turn.question.text.strip(), MAX_TEXT_CHARS) if turn.question else ""
        answer = self._answer(turn.answers, asked_at) if turn.answers else None
        turn_index = len(self.turns)
        self.turns.append(
            Turn(
                parent=turn.parent,
                text=text or NO_QUESTION,
                created_at=asked_at,
                answer=answer,
            )
        )
        for node in (turn.question, *turn.answers):
            if node is not None:
                # The last one counts: only there it is known which answer is meant.
                is_end = node is (turn.answers[-1] if turn.answers else turn.question)
                self.turn_indexes[node.id] = (
                    turn_index if is_end else self.turn_indexes.get(node.id, turn_index)
                )
        return turn_index

    def _answer(self, nodes: tuple[Node, ...], since: datetime) -> Answer | None:
        texts = [node.text.strip() for node in nodes if node.text.strip()]
        notes = [note.strip() for node in nodes for note in node.notes if note.strip()]
        models = [node.model for node in nodes if node.model]
        errors = [node.error.strip() for node in nodes if node.error.strip()]
        if not (texts or notes or errors):
            return None
        return Answer(
            text=cut("\n\n".join(texts), MAX_TEXT_CHARS),
            notes=[cut(note, MAX_NOTE_CHARS) for note in notes[:MAX_NOTES]],
            model=models[-1] if models else "",
            error=cut(errors[-1], MAX_NOTE_CHARS) if errors else "",
            created_at=self._time(nodes[-1].created_at, since),
        )

    def _time(self, time: datetime | None, since: datetime) -> datetime:
        """Return a time that isn't before what came before, nor in the future."""
        return min(max(time or since, since), max(self._latest, since))


def _connect(source_nodes: Iterable[Node]) -> dict[str, Node]:
    """Return the nodes with a role by id, each attached to the nearest one above it.

    A missing parent makes a node a first one, and so does a cycle.
    """
    every: dict[str, Node] = {}
    for node in source_nodes:
        every.setdefault(node.id, node)
    nearest: dict[str, str | None] = {}
    for node in every.values():
        # Find the nearest node with a role above this one, and above all on the way.
        path: list[str] = []
        current: str | None = node.id
        on_the_way: set[str] = set()
        while current is not None and current not in nearest:
            on_the_way.add(current)
            path.append(current)
            parent = every[current].parent
            current = parent if parent in every and parent not in on_the_way else None
        for node_id in reversed(path):
            # What was found for the parent holds, unless the parent itself is kept.
            above = current if current is None or every[current].role else nearest[current]
            nearest[node_id] = above
            current = node_id
    with_role = {node_id: node for node_id, node in every.items() if node.role}
    for node in with_role.values():
        node.parent = nearest[node.id]
    return with_role
