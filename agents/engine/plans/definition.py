"""A plan as people write it: text → ExecutionPlan, and what is wrong with it, by line."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from .plan import FIELDS, ExecutionPlan, ExecutionStep
from .validation import MOST_STEPS, did_you_mean, is_number, unsound
from .yaml_reader import MOST_PROBLEMS, Problem, Written
from .yaml_reader import read as read_values

MOST_NAME = 80
MOST_DESCRIPTION = 300
PARTS = ("name", "description", "parameters", "steps")
# What others call it.
OTHER_NAMES = {
    "args": "arguments",
    "with": "arguments",
    "when": "condition",
    "if": "condition",
    "needs": "depends_on",
    "foreach": "for_each",
    "loop": "for_each",
    "retries": "retry",
    "approve": "approves",
    "question": "ask",
    "expected": "expected_outcome",
}
DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h)?")
SECONDS = {"ms": 0.001, None: 1, "s": 1, "m": 60, "h": 3600}
WHOLE_TEMPLATE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a text says, as far as it can be read, and what is wrong with it."""

    name: str = ""
    description: str = ""
    plan: ExecutionPlan
    problems: tuple[Problem, ...] = ()
    root: Written | None = None

    def placed(self, problem: Problem) -> Problem:
        """The problem with the line in which it stands."""
        if self.root is None or problem.line:
            return problem
        line, column = self.root.place(problem.path)
        return replace(problem, line=line, column=column)


def read(text: str) -> Definition:
    """Whatever is typed: there is no text that this cannot take."""
    written, problems = read_values(text)
    if written is None or not isinstance(written.value, dict):
        problems = problems or [_nothing(written)]
        return Definition(plan=ExecutionPlan(), problems=tuple(problems))
    reading = _Reading(problems)
    root = reading.wrapped(written)
    plan = reading.plan(root, PARTS).named()
    definition = Definition(
        name=reading.name(root),
        description=plan.description,
        plan=plan,
        root=root,
    )
    if not definition.name:
        reading.note("The workflow needs a name.", root)
    noticed = islice(unsound(plan), MOST_PROBLEMS)
    found = [*reading.problems, *map(definition.placed, noticed)]
    ordered = sorted(dict.fromkeys(found), key=lambda problem: (problem.line, problem.column))
    return replace(definition, problems=tuple(ordered))


def _nothing(written: Written | None) -> Problem:
    sentence = "A workflow is a mapping with a name and steps."
    line, column = (written.line, written.column) if written else (1, 1)
    return Problem(message=sentence, line=line, column=column)


class _Reading:
    """Values → plan; what does not fit is noted with its place, and left out."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems

    def note(self, message: str, written: Written) -> None:
        self._note(message, written.line, written.column)

    def _note(self, message: str, line: int, column: int) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(message=message, line=line, column=column))

    def wrapped(self, written: Written) -> Written:
        """What stands in `workflow`, or everything, where there is no such thing."""
        inner: Written | None = written.value.get("workflow")
        if inner is None:
            return written
        self._know(written, ("workflow",))
        if isinstance(inner.value, dict):
            return inner
        self.note("'workflow' is a mapping with a name and steps.", inner)
        return replace(written, value={})

    def name(self, root: Written) -> str:
        found = root.value.get("name")
        return self._name(found, "name") if found else ""

    def words(self, written: Written, name: str, most: int) -> str:
        found = written.value.get(name)
        text = self._text(found, name) if found else ""
        if found and len(text) > most:
            self.note(f"{name!r} has at most {most} characters.", found)
        return text[:most]

    def plan(self, written: Written, parts: tuple[str, ...] = PARTS[1:]) -> ExecutionPlan:
        self._know(written, parts)
        steps = written.value.get("steps")
        if steps is not None and not isinstance(steps.value, list):
            self.note("'steps' is a list.", steps)
        items = steps.value if steps and isinstance(steps.value, list) else []
        parameters = written.value.get("parameters")
        return ExecutionPlan(
            self.words(written, "description", MOST_DESCRIPTION),
            tuple(self._step(item) for item in items[: MOST_STEPS + 1]),
            self._mapping(parameters, "parameters") if parameters else {},
        )

    def _step(self, written: Written) -> ExecutionStep:
        if not isinstance(written.value, dict):
            self.note("A step is a mapping with a name and what it does.", written)
            return ExecutionStep()
        self._know(written, FIELDS)
        given = {name: written.value[name] for name in FIELDS if name in written.value}
        facts = {name: READERS[name](self, value, name) for name, value in given.items()}
        usable = {name: value for name, value in facts.items() if value is not None}
        return ExecutionStep(**usable)

    def _know(self, written: Written, names: tuple[str, ...]) -> None:
        for name in written.value.keys() - set(names):
            if len(self.problems) >= MOST_PROBLEMS:
                return
            other = OTHER_NAMES.get(name)
            meant = f" Did you mean {other!r}?" if other in names else did_you_mean(name, names)
            sentence = f"There is no field {name!r} here.{meant}"
            self._note(sentence, *written.names[name])

    def _text(self, written: Written, name: str) -> str:
        if isinstance(written.value, list | dict):
            self.note(f"{name!r} is text.", written)
            return ""
        return written.text

    def _name(self, written: Written, name: str) -> str:
        """On one line: it has to be typed elsewhere, too."""
        text = " ".join(self._text(written, name).split())
        if len(text) > MOST_NAME:
            self.note(f"{name!r} has at most {MOST_NAME} characters.", written)
        return text[:MOST_NAME]

    def _expression(self, written: Written, name: str) -> str:
        """With or without the signs that it has in a text."""
        text = self._text(written, name).strip()
        whole = WHOLE_TEMPLATE.fullmatch(text)
        return whole[1].strip() if whole else text

    def _mapping(self, written: Written, name: str) -> Mapping[str, Any]:
        if written.value is None:
            return {}
        if not isinstance(written.value, dict):
            self.note(f"{name!r} is a mapping of names to values.", written)
            return {}
        mapping: Mapping[str, Any] = written.plain
        return mapping

    def _flag(self, written: Written, name: str) -> bool | None:
        if not isinstance(written.value, bool):
            self.note(f"{name!r} is true or false.", written)
            return None
        return written.value

    def _names(self, written: Written, name: str) -> tuple[str, ...]:
        if not isinstance(written.value, list):
            return (self._name(written, name),) if written.value is not None else ()
        return tuple(self._name(one, name) for one in written.value)

    def _whole(self, written: Written, name: str) -> int | None:
        if not isinstance(written.value, int) or isinstance(written.value, bool):
            self.note(f"{name!r} is a whole number.", written)
            return None
        return written.value

    def _seconds(self, written: Written, name: str) -> float | None:
        if is_number(written.value):
            return float(written.value)
        is_text = isinstance(written.value, str)
        found = DURATION.fullmatch(written.value.strip()) if is_text else None
        if found is None:
            self.note(f"{name!r} is a number of seconds, or such as 30s or 5m.", written)
            return None
        return float(found[1]) * SECONDS[found[2]]

    def _each(self, written: Written, name: str) -> Any:
        is_list = isinstance(written.value, list)
        return written.plain if is_list else self._expression(written, name)

    def _inner(self, written: Written, name: str) -> ExecutionPlan | None:
        if not isinstance(written.value, dict):
            self.note(f"{name!r} is a mapping with steps.", written)
            return None
        return self.plan(written)


Reader = Callable[[_Reading, Written, str], Any]
READERS: Mapping[str, Reader] = {
    "name": _Reading._name,
    "tool": _Reading._text,
    "arguments": _Reading._mapping,
    "expected_outcome": _Reading._text,
    "timeout": _Reading._seconds,
    "agent": _Reading._text,
    "ask": _Reading._text,
    "plan": _Reading._inner,
    "approves": _Reading._flag,
    "role": _Reading._text,
    "depends_on": _Reading._names,
    "condition": _Reading._expression,
    "parallel": _Reading._flag,
    "for_each": _Reading._each,
    "until": _Reading._expression,
    "rounds": _Reading._whole,
    "retry": _Reading._whole,
}
