"""Reads a plan that people write: text → ExecutionPlan, with problems by line."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ...sentences import Sentence as _
from ...suggestions import closest_name, suggest
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
    document, problems = read_yaml(text)
    if document is None or not isinstance(document.value, dict):
        if not problems:
            sentence = _("A workflow must be a mapping with a name and steps.")
            line, column = (document.line, document.column) if document else (1, 1)
            problems = [PlanProblem(message=sentence, line=line, column=column)]
        return PlanDefinition(plan=ExecutionPlan(), problems=tuple(problems))
    reader = _DefinitionReader(problems)
    root = reader.unwrap(document)
    plan = reader.plan(root, WORKFLOW_FIELDS).with_step_names()
    definition = PlanDefinition(
        name=reader.name(root),
        description=plan.description,
        plan=plan,
        root=root,
    )
    if not definition.name:
        reader.note(_("The workflow needs a name."), root)
    structural = islice(structural_problems(plan), MAX_PROBLEMS)
    all_problems = [*reader.problems, *map(definition.locate, structural)]
    ordered = sorted(
        dict.fromkeys(all_problems), key=lambda problem: (problem.line, problem.column)
    )
    return replace(definition, problems=tuple(ordered))


class _DefinitionReader:
    """Converts values to a plan; invalid ones are reported with their position and omitted."""

    def __init__(self, problems: list[PlanProblem]) -> None:
        self.problems = problems

    def note(self, message: str, located: LocatedValue) -> None:
        self._report_at(message, located.line, located.column)

    def _report_at(self, message: str, line: int, column: int) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(PlanProblem(message=message, line=line, column=column))

    def unwrap(self, located: LocatedValue) -> LocatedValue:
        """Return the content of `workflow`, or everything if there is no such key."""
        inner: LocatedValue | None = located.value.get("workflow")
        if inner is None:
            return located
        name = "workflow"
        self._check_fields(located, (name,))
        if isinstance(inner.value, dict):
            return inner
        self.note(
            _("%(name)s must be a mapping with a name and steps.", name=repr(name)), inner
        )
        return replace(located, value={})

    def name(self, root: LocatedValue) -> str:
        field = root.value.get("name")
        return self._read_name(field, "name") if field else ""

    def limited_text(self, located: LocatedValue, name: str, max_chars: int) -> str:
        field = located.value.get(name)
        text = self._read_text(field, name) if field else ""
        if field and len(text) > max_chars:
            self.note(
                _(
                    "%(name)s can have up to %(limit)s characters.",
                    name=repr(name),
                    limit=max_chars,
                ),
                field,
            )
        return text[:max_chars]

    def plan(
        self, located: LocatedValue, field_names: tuple[str, ...] = WORKFLOW_FIELDS[1:]
    ) -> ExecutionPlan:
        self._check_fields(located, field_names)
        name = "steps"
        steps = located.value.get(name)
        if steps is not None and not isinstance(steps.value, list):
            self.note(_("%(name)s must be a list.", name=repr(name)), steps)
        items = steps.value if steps and isinstance(steps.value, list) else []
        parameters = located.value.get("parameters")
        return ExecutionPlan(
            self.limited_text(located, "description", MAX_DESCRIPTION_CHARS),
            tuple(self._read_step(item) for item in items[: MAX_STEPS + 1]),
            self._read_mapping(parameters, "parameters") if parameters else {},
        )

    def _read_step(self, located: LocatedValue) -> ExecutionStep:
        if not isinstance(located.value, dict):
            sentence = _(
                "A step must be a mapping with a name and an action (tool, agent, ask or plan)."
            )
            self.note(sentence, located)
            return ExecutionStep()
        self._check_fields(located, STEP_FIELDS)
        fields = {name: located.value[name] for name in STEP_FIELDS if name in located.value}
        values = {
            name: FIELD_READERS[name](self, field, name) for name, field in fields.items()
        }
        return ExecutionStep(**{n: value for n, value in values.items() if value is not None})

    def _check_fields(self, located: LocatedValue, names: tuple[str, ...]) -> None:
        for name in located.value.keys() - set(names):
            if len(self.problems) >= MAX_PROBLEMS:
                return
            alias = FIELD_ALIASES.get(name)
            sentence = _("Unknown field: %(name)s.", name=repr(name))
            suggestion = alias if alias in names else closest_name(name, names)
            self._report_at(suggest(sentence, suggestion), *located.names[name])

    def _read_text(self, located: LocatedValue, name: str) -> str:
        if isinstance(located.value, list | dict):
            self.note(_("%(name)s must be text.", name=repr(name)), located)
            return ""
        return located.text

    def _read_name(self, located: LocatedValue, name: str) -> str:
        """Read a name on one line, because it has to be typed elsewhere too."""
        text = " ".join(self._read_text(located, name).split())
        if len(text) > MAX_NAME_CHARS:
            self.note(
                _(
                    "%(name)s can have up to %(limit)s characters.",
                    name=repr(name),
                    limit=MAX_NAME_CHARS,
                ),
                located,
            )
        return text[:MAX_NAME_CHARS]

    def _read_expression(self, located: LocatedValue, name: str) -> str:
        """Read an expression with or without `${…}`."""
        text = self._read_text(located, name).strip()
        template = SINGLE_TEMPLATE.fullmatch(text)
        return template[1].strip() if template else text

    def _read_mapping(self, located: LocatedValue, name: str) -> Mapping[str, Any]:
        if located.value is None:
            return {}
        if not isinstance(located.value, dict):
            self.note(
                _("%(name)s must be a mapping of names to values.", name=repr(name)), located
            )
            return {}
        mapping: Mapping[str, Any] = located.plain
        return mapping

    def _read_flag(self, located: LocatedValue, name: str) -> bool | None:
        if not isinstance(located.value, bool):
            self.note(_("%(name)s must be true or false.", name=repr(name)), located)
            return None
        return located.value

    def _read_names(self, located: LocatedValue, name: str) -> tuple[str, ...]:
        if not isinstance(located.value, list):
            return (self._read_name(located, name),) if located.value is not None else ()
        return tuple(self._read_name(item, name) for item in located.value)

    def _read_int(self, located: LocatedValue, name: str) -> int | None:
        if not isinstance(located.value, int) or isinstance(located.value, bool):
            self.note(_("%(name)s must be a whole number.", name=repr(name)), located)
            return None
        return located.value

    def _read_seconds(self, located: LocatedValue, name: str) -> float | None:
        if is_number(located.value):
            return float(located.value)
        is_text = isinstance(located.value, str)
        duration = DURATION.fullmatch(located.value.strip()) if is_text else None
        if duration is None:
            self.note(
                _(
                    "%(name)s must be a number of seconds or a duration, e.g. 30s or 5m.",
                    name=repr(name),
                ),
                located,
            )
            return None
        return float(duration[1]) * UNIT_SECONDS[duration[2]]

    def _read_for_each(self, located: LocatedValue, name: str) -> Any:
        is_list = isinstance(located.value, list)
        return located.plain if is_list else self._read_expression(located, name)

    def _read_nested_plan(self, located: LocatedValue, name: str) -> ExecutionPlan | None:
        if not isinstance(located.value, dict):
            self.note(_("%(name)s must be a mapping with steps.", name=repr(name)), located)
            return None
        return self.plan(located)


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
