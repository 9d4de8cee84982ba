"""Reads a plan that people write: text → ExecutionPlan, with problems by line."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ..suggestions import closest_name, suggest
from .plan import STEP_FIELDS, ExecutionPlan, ExecutionStep
from .validation import MAX_STEPS, is_number, structural_problems
from .yaml_reader import MAX_PROBLEMS, LocatedValue, PlanProblem, read_yaml

MAX_NAME_CHARS = 80
MAX_DESCRIPTION_CHARS = 300
WORKFLOW_FIELDS = ("name", "description", "parameters", "steps")
# Common aliases.
FIELD_ALIASES = {
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
UNIT_SECONDS = {"ms": 0.001, None: 1, "s": 1, "m": 60, "h": 3600}
SINGLE_TEMPLATE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDefinition:
    """A parsed definition, as far as it is readable, with its problems."""

    name: str = ""
    description: str = ""
    plan: ExecutionPlan
    problems: tuple[PlanProblem, ...] = ()
    root: LocatedValue | None = None

    def locate(self, problem: PlanProblem) -> PlanProblem:
        """Return the problem with its line."""
        if self.root is None or problem.line:
            return problem
        line, column = self.root.place(problem.path)
        return replace(problem, line=line, column=column)


def read_definition(text: str) -> PlanDefinition:
    """Read a definition; any text is accepted, and problems are returned."""
    written, problems = read_yaml(text)
    if written is None or not isinstance(written.value, dict):
        problems = problems or [_not_a_mapping(written)]
        return PlanDefinition(plan=ExecutionPlan(), problems=tuple(problems))
    reader = _DefinitionReader(problems)
    root = reader.unwrap(written)
    plan = reader.plan(root, WORKFLOW_FIELDS).with_step_names()
    definition = PlanDefinition(
        name=reader.name(root),
        description=plan.description,
        plan=plan,
        root=root,
    )
    if not definition.name:
        reader.note("The workflow needs a name.", root)
    structural = islice(structural_problems(plan), MAX_PROBLEMS)
    all_problems = [*reader.problems, *map(definition.locate, structural)]
    ordered = sorted(
        dict.fromkeys(all_problems), key=lambda problem: (problem.line, problem.column)
    )
    return replace(definition, problems=tuple(ordered))


def _not_a_mapping(written: LocatedValue | None) -> PlanProblem:
    sentence = "A workflow must be a mapping with a name and steps."
    line, column = (written.line, written.column) if written else (1, 1)
    return PlanProblem(message=sentence, line=line, column=column)


class _DefinitionReader:
    """Converts values to a plan; invalid ones are reported with their position and omitted."""

    def __init__(self, problems: list[PlanProblem]) -> None:
        self.problems = problems

    def note(self, message: str, written: LocatedValue) -> None:
        self._report_at(message, written.line, written.column)

    def _report_at(self, message: str, line: int, column: int) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(PlanProblem(message=message, line=line, column=column))

    def unwrap(self, written: LocatedValue) -> LocatedValue:
        """Return the content of `workflow`, or everything if there is no such key."""
        inner: LocatedValue | None = written.value.get("workflow")
        if inner is None:
            return written
        name = "workflow"
        self._check_fields(written, (name,))
        if isinstance(inner.value, dict):
            return inner
        self.note(f"{name!r} must be a mapping with a name and steps.", inner)
        return replace(written, value={})

    def name(self, root: LocatedValue) -> str:
        found = root.value.get("name")
        return self._read_name(found, "name") if found else ""

    def limited_text(self, written: LocatedValue, name: str, max_chars: int) -> str:
        located = written.value.get(name)
        text = self._read_text(located, name) if located else ""
        if located and len(text) > max_chars:
            self.note(f"{name!r} can have up to {max_chars} characters.", located)
        return text[:max_chars]

    def plan(
        self, written: LocatedValue, field_names: tuple[str, ...] = WORKFLOW_FIELDS[1:]
    ) -> ExecutionPlan:
        self._check_fields(written, field_names)
        name = "steps"
        steps = written.value.get(name)
        if steps is not None and not isinstance(steps.value, list):
            self.note(f"{name!r} must be a list.", steps)
        items = steps.value if steps and isinstance(steps.value, list) else []
        parameters = written.value.get("parameters")
        return ExecutionPlan(
            self.limited_text(written, "description", MAX_DESCRIPTION_CHARS),
            tuple(self._read_step(item) for item in items[: MAX_STEPS + 1]),
            self._read_mapping(parameters, "parameters") if parameters else {},
        )

    def _read_step(self, written: LocatedValue) -> ExecutionStep:
        if not isinstance(written.value, dict):
            sentence = (
                "A step must be a mapping with a name and an action (tool, agent, ask or plan)."
            )
            self.note(sentence, written)
            return ExecutionStep()
        self._check_fields(written, STEP_FIELDS)
        fields = {name: written.value[name] for name in STEP_FIELDS if name in written.value}
        facts = {name: FIELD_READERS[name](self, value, name) for name, value in fields.items()}
        usable = {name: value for name, value in facts.items() if value is not None}
        return ExecutionStep(**usable)

    def _check_fields(self, written: LocatedValue, names: tuple[str, ...]) -> None:
        for name in written.value.keys() - set(names):
            if len(self.problems) >= MAX_PROBLEMS:
                return
            other = FIELD_ALIASES.get(name)
            sentence = f"Unknown field: {name!r}."
            meant = other if other in names else closest_name(name, names)
            self._report_at(suggest(sentence, meant), *written.names[name])

    def _read_text(self, written: LocatedValue, name: str) -> str:
        if isinstance(written.value, list | dict):
            self.note(f"{name!r} must be text.", written)
            return ""
        return written.text

    def _read_name(self, written: LocatedValue, name: str) -> str:
        """Read a name on one line, because it has to be typed elsewhere too."""
        text = " ".join(self._read_text(written, name).split())
        if len(text) > MAX_NAME_CHARS:
            self.note(f"{name!r} can have up to {MAX_NAME_CHARS} characters.", written)
        return text[:MAX_NAME_CHARS]

    def _read_expression(self, written: LocatedValue, name: str) -> str:
        """Read an expression with or without `${…}`."""
        text = self._read_text(written, name).strip()
        whole = SINGLE_TEMPLATE.fullmatch(text)
        return whole[1].strip() if whole else text

    def _read_mapping(self, written: LocatedValue, name: str) -> Mapping[str, Any]:
        if written.value is None:
            return {}
        if not isinstance(written.value, dict):
            self.note(f"{name!r} must be a mapping of names to values.", written)
            return {}
        mapping: Mapping[str, Any] = written.plain
        return mapping

    def _read_flag(self, written: LocatedValue, name: str) -> bool | None:
        if not isinstance(written.value, bool):
            self.note(f"{name!r} must be true or false.", written)
            return None
        return written.value

    def _read_names(self, written: LocatedValue, name: str) -> tuple[str, ...]:
        if not isinstance(written.value, list):
            return (self._read_name(written, name),) if written.value is not None else ()
        return tuple(self._read_name(one, name) for one in written.value)

    def _read_int(self, written: LocatedValue, name: str) -> int | None:
        if not isinstance(written.value, int) or isinstance(written.value, bool):
            self.note(f"{name!r} must be a whole number.", written)
            return None
        return written.value

    def _read_seconds(self, written: LocatedValue, name: str) -> float | None:
        if is_number(written.value):
            return float(written.value)
        is_text = isinstance(written.value, str)
        found = DURATION.fullmatch(written.value.strip()) if is_text else None
        if found is None:
            self.note(
                f"{name!r} must be a number of seconds or a duration, e.g. 30s or 5m.", written
            )
            return None
        return float(found[1]) * UNIT_SECONDS[found[2]]

    def _read_for_each(self, written: LocatedValue, name: str) -> Any:
        is_list = isinstance(written.value, list)
        return written.plain if is_list else self._read_expression(written, name)

    def _read_nested_plan(self, written: LocatedValue, name: str) -> ExecutionPlan | None:
        if not isinstance(written.value, dict):
            self.note(f"{name!r} must be a mapping with steps.", written)
            return None
        return self.plan(written)


FieldReader = Callable[[_DefinitionReader, LocatedValue, str], Any]
FIELD_READERS: Mapping[str, FieldReader] = {
    "name": _DefinitionReader._read_name,
    "tool": _DefinitionReader._read_text,
    "arguments": _DefinitionReader._read_mapping,
    "expected_outcome": _DefinitionReader._read_text,
    "timeout": _DefinitionReader._read_seconds,
    "agent": _DefinitionReader._read_text,
    "ask": _DefinitionReader._read_text,
    "plan": _DefinitionReader._read_nested_plan,
    "approves": _DefinitionReader._read_flag,
    "role": _DefinitionReader._read_text,
    "depends_on": _DefinitionReader._read_names,
    "condition": _DefinitionReader._read_expression,
    "parallel": _DefinitionReader._read_flag,
    "for_each": _DefinitionReader._read_for_each,
    "until": _DefinitionReader._read_expression,
    "rounds": _DefinitionReader._read_int,
    "retry": _DefinitionReader._read_int,
}
