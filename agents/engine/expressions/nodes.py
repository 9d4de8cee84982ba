"""The nodes of a parsed expression."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .functions import FUNCTIONS, OPERATORS, SCANNING_OPERATORS, EvaluationBudget, get_item


class ExpressionNode:
    """A node of an expression."""

    __slots__ = ()

    @property
    def inner(self) -> tuple["ExpressionNode", ...]:
        return ()

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LiteralNode(ExpressionNode):
    constant: Any

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        return self.constant


@dataclass(frozen=True, slots=True)
class NameNode(ExpressionNode):
    name: str

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        return names.get(self.name)


@dataclass(frozen=True, slots=True)
class SubscriptNode(ExpressionNode):
    of: ExpressionNode
    key: ExpressionNode

    @property
    def inner(self) -> tuple[ExpressionNode, ...]:
        return self.of, self.key

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        return get_item(self.of.value(names, budget), self.key.value(names, budget))


@dataclass(frozen=True, slots=True)
class ListNode(ExpressionNode):
    items: tuple[ExpressionNode, ...]

    @property
    def inner(self) -> tuple[ExpressionNode, ...]:
        return self.items

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        return budget.take([item.value(names, budget) for item in self.items])


@dataclass(frozen=True, slots=True)
class CallNode(ExpressionNode):
    name: str
    arguments: tuple[ExpressionNode, ...]

    @property
    def inner(self) -> tuple[ExpressionNode, ...]:
        return self.arguments

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        arguments = [argument.value(names, budget) for argument in self.arguments]
        function = FUNCTIONS[self.name]
        if function.scans:
            budget.count_items(*arguments)
        return budget.take(function.work(*arguments))


@dataclass(frozen=True, slots=True)
class NotNode(ExpressionNode):
    of: ExpressionNode

    @property
    def inner(self) -> tuple[ExpressionNode, ...]:
        return (self.of,)

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        return not self.of.value(names, budget)


@dataclass(frozen=True, slots=True)
class ChainNode(ExpressionNode):
    """`a + b - c`: any number of operands, left to right; `and` and `or` short-circuit."""

    first: ExpressionNode
    links: tuple[tuple[str, ExpressionNode], ...]

    @property
    def inner(self) -> tuple[ExpressionNode, ...]:
        return self.first, *(node for _, node in self.links)

    def value(self, names: Mapping[str, Any], budget: EvaluationBudget) -> Any:
        value = self.first.value(names, budget)
        for sign, node in self.links:
            if sign in ("and", "or"):
                value = node.value(names, budget) if bool(value) == (sign == "and") else value
            else:
                operand = node.value(names, budget)
                if sign in SCANNING_OPERATORS:
                    budget.count_items(value, operand)
                value = budget.take(OPERATORS[sign](value, operand))
        return value


def paths(tree: ExpressionNode) -> Iterator[tuple[str, str]]:
    """Yield every name with the first key that follows it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, SubscriptNode) and isinstance(node.of, NameNode):
            key = node.key.constant if isinstance(node.key, LiteralNode) else ""
            yield node.of.name, str(key)
            waiting.append(node.key)
        elif isinstance(node, NameNode):
            yield node.name, ""
        else:
            waiting += node.inner
