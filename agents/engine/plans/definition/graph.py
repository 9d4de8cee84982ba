"""The dependency graph of a plan: levels and cycles.

A step waits for the steps it depends on and those it refers to.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_

from ...errors import BadExpression
from ...expressions import iter_strings, parse, references
from .plan import ExecutionStep

Steps = Sequence[ExecutionStep]


def levels(steps: Steps) -> tuple[tuple[ExecutionStep, ...], ...]:
    """Return the steps in columns, each after its dependencies; those in a cycle come last."""
    depth = _depths(steps)
    deepest = max(depth.values(), default=-1) + 1
    columns: list[list[ExecutionStep]] = [[] for _ in range(deepest + 1)]
    for step in steps:
        columns[depth.get(step.name, deepest)].append(step)
    return tuple(tuple(column) for column in columns if column)


def topological_order(steps: Steps) -> tuple[ExecutionStep, ...]:
    """Return the steps in an order in which they can run."""
    return tuple(step for level in levels(steps) for step in level)


def find_cycle(steps: Steps) -> tuple[str, ...]:
    """Return the names of a cycle, with the first one again at the end."""
    acyclic = _depths(steps)
    by_name = steps_by_name(steps)
    name = next((step.name for step in steps if step.name not in acyclic), None)
    visited: dict[str, int] = {}
    while name is not None and name not in visited:
        visited[name] = len(visited)
        needed = _known_names(dependencies(by_name[name]), by_name)
        name = next(dependency for dependency in needed if dependency not in acyclic)
    return (*list(visited)[visited[name] :], name)[::-1] if name is not None else ()


def precedence(steps: Steps) -> Callable[[str, str], bool]:
    """Return a test of whether one step always ends before another; in a cycle, never."""
    by_name = steps_by_name(steps)
    bit = {name: 1 << index for index, name in enumerate(by_name)}
    earlier: dict[str, int] = {}  # a bit per preceding step; sets of names would be too large
    for step in topological_order(steps):
        needed = _known_names(dependencies(step), by_name)
        earlier[step.name] = reduce(
            or_, (bit[name] | earlier.get(name, 0) for name in needed), 0
        )
    return lambda first, second: bool(bit.get(first, 0) & earlier.get(second, 0))


def dependencies(step: ExecutionStep) -> tuple[str, ...]:
    """Return what a step depends on and refers to, as far as it is readable."""
    names = dict.fromkeys(step.depends_on)
    for _, text in iter_strings([step.arguments, step.ask]):
        with suppress(BadExpression):
            names |= dict.fromkeys(sorted(references(text)))
    for expression in (step.condition, step.until, step.for_each, step.expectation):
        if isinstance(expression, str) and expression:
            with suppress(BadExpression):
                names |= dict.fromkeys(sorted(parse(expression).steps))
    return tuple(names)


def diff_steps(old: Steps, new: Steps) -> dict[str, str]:
    """Return the change of each step by name: kept, changed, added or removed."""
    old_steps = steps_by_name(old)
    new_steps = steps_by_name(new)
    changes = {
        name: "kept" if old_steps.get(name) == step else "changed"
        for name, step in new_steps.items()
    }
    changes |= dict.fromkeys(new_steps.keys() - old_steps.keys(), "added")
    return changes | dict.fromkeys(old_steps.keys() - new_steps.keys(), "removed")


def diff_with_dependents(old: Steps, new: Steps) -> dict[str, str]:
    """Return the changes, where a step also counts as changed if a dependency has."""
    changes = diff_steps(old, new)
    by_name = steps_by_name(new)
    for step in topological_order(new):
        needed = _known_names(dependencies(step), by_name)
        if changes[step.name] == "kept" and any(changes[name] != "kept" for name in needed):
            changes[step.name] = "changed"
    return changes


def steps_by_name(steps: Steps) -> dict[str, ExecutionStep]:
    """Return steps by name; the first wins if a name is repeated."""
    return {step.name: step for step in reversed(steps)}


def _depths(steps: Steps) -> dict[str, int]:
    """Return the minimum number of steps before each one, without those in a cycle."""
    by_name = steps_by_name(steps)
    missing: dict[str, int] = {}
    dependents: dict[str, list[str]] = {name: [] for name in by_name}
    for step in by_name.values():
        needed = _known_names(dependencies(step), by_name)
        missing[step.name] = len(needed)
        for name in needed:
            dependents[name].append(step.name)
    ready = [name for name, count in missing.items() if not count]
    depth = dict.fromkeys(ready, 0)
    for name in ready:
        for dependent in dependents[name]:
            missing[dependent] -= 1
            if not missing[dependent]:
                depth[dependent] = depth[name] + 1
                ready.append(dependent)
    return depth


def _known_names(needed: Iterable[str], by_name: Mapping[str, ExecutionStep]) -> list[str]:
    return [name for name in needed if name in by_name]
