"""What an expression is made of once it was read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .functions import FUNCTIONS, LOOKING, OPERATORS, Room, part


class Node:
    """A part of an expression."""

    __slots__ = ()

    @property
    def inner(self) -> tuple["Node", ...]:
        return ()

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Given(Node):
    it: Any

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        return self.it


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        return names.get(self.name)


@dataclass(frozen=True, slots=True)
class Part(Node):
    of: Node
    key: Node

    @property
    def inner(self) -> tuple[Node, ...]:
        return self.of, self.key

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        return part(self.of.value(names, room), self.key.value(names, room))


@dataclass(frozen=True, slots=True)
class Items(Node):
    items: tuple[Node, ...]

    @property
    def inner(self) -> tuple[Node, ...]:
        return self.items

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        return room.take([item.value(names, room) for item in self.items])


@dataclass(frozen=True, slots=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]

    @property
    def inner(self) -> tuple[Node, ...]:
        return self.arguments

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        arguments = [argument.value(names, room) for argument in self.arguments]
        function = FUNCTIONS[self.name]
        if function.looks:
            room.look(*arguments)
        return room.take(function.work(*arguments))


@dataclass(frozen=True, slots=True)
class Not(Node):
    of: Node

    @property
    def inner(self) -> tuple[Node, ...]:
        return (self.of,)

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        return not self.of.value(names, room)


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """`a + b - c`: one after the other, however many; `and` and `or` stop where it is clear."""

    first: Node
    rest: tuple[tuple[str, Node], ...]

    @property
    def inner(self) -> tuple[Node, ...]:
        return self.first, *(node for _, node in self.rest)

    def value(self, names: Mapping[str, Any], room: Room) -> Any:
        value = self.first.value(names, room)
        for sign, node in self.rest:
            if sign in ("and", "or"):
                value = node.value(names, room) if bool(value) == (sign == "and") else value
            else:
                value = self._worked_out(sign, value, node.value(names, room), room)
        return value

    def _worked_out(self, sign: str, left: Any, right: Any, room: Room) -> Any:
        if sign in LOOKING:
            room.look(left, right)
        return room.take(OPERATORS[sign](left, right))


def paths(tree: Node) -> Iterator[tuple[str, str]]:
    """Every name with the first key behind it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Part) and isinstance(node.of, Name):
            key = node.key.it if isinstance(node.key, Given) else ""
            yield node.of.name, str(key)
            waiting.append(node.key)
        elif isinstance(node, Name):
            yield node.name, ""
        else:
            waiting += node.inner
