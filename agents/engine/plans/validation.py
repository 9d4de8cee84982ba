"""Validates a plan before it is executed."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from ..errors import BadExpression
from ..expressions import Expression, embedded_expressions, iter_strings, parse
from ..suggestions import closest_name, suggest
from .graph import find_cycle, precedence
from .plan import ALWAYS, FAILURE, INTEGER_FIELDS, SUCCESS, ExecutionPlan, ExecutionStep
from .yaml_reader import MAX_PROBLEMS, PlanProblem, ValuePath

MAX_STEPS = 2_000
MAX_DEPTH = 5
MAX_ROUNDS = 100
MAX_RETRIES = 10
MAX_TIMEOUT_SECONDS = 86_400
NAMED_CONDITIONS = (ALWAYS, SUCCESS, FAILURE)
STEP_KINDS = ("tool", "agent", "ask", "plan")

Schemas = Mapping[str, Mapping[str, Any]]  # input schemas by tool name


def find_problems(
    plan: ExecutionPlan,
    tools: Schemas,
    agents: Collection[str],
    roles: Collection[str] = (),
) -> tuple[PlanProblem, ...]:
    """Return what prevents this plan from running with these tools and agents."""
    named = plan.with_step_names()
    found = chain(structural_problems(named), missing_resources(named, tools, agents, roles))
    return tuple(islice(found, MAX_PROBLEMS))


def structural_problems(plan: ExecutionPlan) -> Iterator[PlanProblem]:
    """Yield structural problems, which don't depend on the tools. Steps must be named."""
    if len(list(plan.walk())) > MAX_STEPS:
        yield PlanProblem(
            message=f"A plan can have up to {MAX_STEPS:,} steps.", path=("steps",)
        )
        return
    yield from _structural_problems(plan, _Scope(parameters=frozenset(plan.parameters)), ())


def missing_resources(
    plan: ExecutionPlan,
    tools: Schemas,
    agents: Collection[str],
    roles: Collection[str] = (),
) -> Iterator[PlanProblem]:
    """Yield missing tools, agents, roles and arguments."""
    for path, step in _walk(plan, ()):
        for field, known in (("tool", tools), ("agent", agents), ("role", roles)):
            name = getattr(step, field)
            if name and (name.lower() if field == "role" else name) not in known:
                yield _missing_problem(field, step, known, path)
        if step.tool in tools:
            yield from _argument_problems(step, tools[step.tool], path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The names that a plan's expressions can refer to, besides its own steps."""

    parameters: frozenset[str]
    steps: frozenset[str] = frozenset()  # have ended by then
    others: frozenset[str] = frozenset()  # may not have ended
    is_each: bool = False
    level: int = 1

    def nested_scope(
        self, step: ExecutionStep, earlier: frozenset[str], known: frozenset[str]
    ) -> "_Scope":
        inner = step.plan.parameters if step.plan else {}
        return _Scope(
            parameters=self.parameters | frozenset(inner),
            steps=self.steps | earlier,
            others=self.others | known,
            is_each=self.is_each or step.for_each is not None,
            level=self.level + 1,
        )


def _structural_problems(
    plan: ExecutionPlan, scope: _Scope, path: ValuePath
) -> Iterator[PlanProblem]:
    if scope.level > MAX_DEPTH:
        sentence = f"Plans can be nested up to {MAX_DEPTH} levels deep."
        yield PlanProblem(message=sentence, path=path)
        return
    if not plan.steps:
        yield PlanProblem(message="A plan needs at least one step.", path=(*path, "steps"))
    yield from _duplicate_names(plan, path)
    if waiting := find_cycle(plan.steps):
        sentence = f"Circular dependency: {' → '.join(waiting)}."
        index = next(n for n, step in enumerate(plan.steps) if step.name == waiting[0])
        yield PlanProblem(message=sentence, path=(*path, "steps", index, "depends_on"))
    checker = _PlanChecker(plan, scope)
    for index, step in enumerate(plan.steps):
        yield from checker.problems(step, (*path, "steps", index))


def _duplicate_names(plan: ExecutionPlan, path: ValuePath) -> Iterator[PlanProblem]:
    seen: set[str] = set()
    for place, step in enumerate(plan.steps):
        if step.name in seen:
            sentence = f"Two steps are named {step.name!r}."
            yield PlanProblem(message=sentence, path=(*path, "steps", place, "name"))
        seen.add(step.name)


class _PlanChecker:
    """Checks the steps of one plan against each other."""

    def __init__(self, plan: ExecutionPlan, scope: _Scope) -> None:
        self.names = [step.name for step in plan.steps]
        self.known = frozenset(self.names)
        self.is_before = precedence(plan.steps)
        self.scope = scope

    def problems(self, step: ExecutionStep, path: ValuePath) -> Iterator[PlanProblem]:
        yield from _field_problems(step, path)
        for place, name in enumerate(step.depends_on):
            if name not in self.known:
                sentence = f"{step.name!r} depends on {name!r}, which doesn't exist."
                sentence = with_suggestion(sentence, name, self.known - {step.name})
                yield PlanProblem(message=sentence, path=(*path, "depends_on", place))
        yield from self._expression_problems(step, path)
        if step.plan is not None:
            earlier = frozenset(name for name in self.names if self.is_before(name, step.name))
            inner = self.scope.nested_scope(step, earlier, self.known)
            yield from _structural_problems(step.plan, inner, (*path, "plan"))

    def _expression_problems(
        self, step: ExecutionStep, path: ValuePath
    ) -> Iterator[PlanProblem]:
        # The condition and `for_each` are evaluated once per step, the rest once per item.
        outer = replace(self.scope, is_each=self.scope.is_each or step.for_each is not None)
        if step.condition not in NAMED_CONDITIONS:
            yield from self._check_expression(
                step, step.condition, (*path, "condition"), self.scope
            )
        if isinstance(step.for_each, str):
            yield from self._check_expression(
                step, step.for_each, (*path, "for_each"), self.scope
            )
        if step.until:
            yield from self._check_expression(
                step, step.until, (*path, "until"), outer, "output"
            )
        if (expected := step.expectation) is not None:
            place = (*path, "expected_outcome")
            yield from self._check_expression(step, expected, place, outer, "output")
        texts_of = {"arguments": step.arguments, "ask": step.ask}
        if not isinstance(step.for_each, str):
            texts_of["for_each"] = step.for_each
        for inner, text in iter_strings(texts_of):
            yield from self._check_template(step, text, (*path, *inner), outer)

    def _check_expression(
        self, step: ExecutionStep, text: str, path: ValuePath, scope: _Scope, *more: str
    ) -> Iterator[PlanProblem]:
        try:
            expression = parse(text)
        except BadExpression as error:
            yield _syntax_problem(step, path, error)
        else:
            yield from self._reference_problems(step, expression, path, scope, *more)

    def _check_template(
        self, step: ExecutionStep, text: str, path: ValuePath, scope: _Scope
    ) -> Iterator[PlanProblem]:
        try:
            found = list(embedded_expressions(text))
        except BadExpression as error:
            yield _syntax_problem(step, path, error)
            return
        for expression in found:
            yield from self._reference_problems(step, expression, path, scope)

    def _reference_problems(
        self,
        step: ExecutionStep,
        expression: Expression,
        path: ValuePath,
        scope: _Scope,
        *more: str,
    ) -> Iterator[PlanProblem]:
        """Yield references to names that don't exist, or not yet."""
        for sentence in self._unknown_references(step, expression, scope, more):
            yield PlanProblem(message=sentence, path=path)

    def _unknown_references(
        self, step: ExecutionStep, expression: Expression, scope: _Scope, more: tuple[str, ...]
    ) -> Iterator[str]:
        names = {"steps", "parameters", *more, *(("item", "index") if scope.is_each else ())}
        for name in sorted(expression.names - names):
            sentence = f"{step.name!r} refers to {name!r}, which isn't available here."
            yield with_suggestion(sentence, name, names)
        for name in sorted(expression.parameters - scope.parameters):
            sentence = f"{step.name!r} refers to the parameter {name!r}, which isn't declared."
            yield with_suggestion(sentence, name, scope.parameters)
        for name in sorted(expression.steps - scope.steps - self.known):
            yield self._unavailable_step(step, name)

    def _unavailable_step(self, step: ExecutionStep, name: str) -> str:
        if name in self.scope.others:
            return (
                f"{step.name!r} refers to the step {name!r}, which may not be finished yet. "
                "Add it to depends_on."
            )
        sentence = f"{step.name!r} refers to the step {name!r}, which doesn't exist."
        return with_suggestion(sentence, name, self.known | self.scope.steps)


def with_suggestion(sentence: str, name: str, known: Collection[str]) -> str:
    """Return the sentence with the known name that is most like this one."""
    return suggest(sentence, closest_name(name, known))


def _field_problems(step: ExecutionStep, path: ValuePath) -> Iterator[PlanProblem]:
    """Yield fields that conflict or are out of range."""
    kinds = [kind for kind in STEP_KINDS if getattr(step, kind)]
    if not kinds and not step.role:
        yield PlanProblem(
            message=f"The step {step.name!r} needs one of: tool, agent, ask, plan.", path=path
        )
    elif len(kinds) > 1:
        yield PlanProblem(
            message=f"The step {step.name!r} combines {' and '.join(kinds)}. Use only one.",
            path=(*path, kinds[1]),
        )
    if step.approves and not step.ask:
        yield PlanProblem(
            message=f"The step {step.name!r} has approves but no ask.", path=(*path, "approves")
        )
    if step.ask and step.timeout is not None:
        yield PlanProblem(
            message=f"The step {step.name!r} waits for a user, so it can't have a timeout.",
            path=(*path, "timeout"),
        )
    for field, least, most in FIELD_BOUNDS:
        value = getattr(step, field)
        if value is not None and not (is_number(value) and least <= value <= most):
            yield PlanProblem(
                message=f"The step {step.name!r} needs {field} between {least:,} and {most:,}.",
                path=(*path, field),
            )
        elif field in INTEGER_FIELDS and not isinstance(value, int):
            yield PlanProblem(
                message=f"The step {step.name!r} needs a whole number in {field}.",
                path=(*path, field),
            )
    if not isinstance(step.for_each, str | list | tuple | None):
        yield PlanProblem(
            message=f"The step {step.name!r} needs a list or an expression in for_each.",
            path=(*path, "for_each"),
        )


MISSING_RESOURCES = {
    "tool": "{step!r} needs the tool {name!r}, which isn't available.",
    "agent": "{step!r} needs the agent {name!r}, which isn't available.",
    "role": "{step!r} needs the role {name!r}, which isn't available.",
}
FIELD_BOUNDS = (
    ("timeout", 0.001, MAX_TIMEOUT_SECONDS),
    ("rounds", 1, MAX_ROUNDS),
    ("retry", 0, MAX_RETRIES),
)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _syntax_problem(step: ExecutionStep, path: ValuePath, error: BadExpression) -> PlanProblem:
    field = next(part for part in reversed(path) if isinstance(part, str))
    sentence = f"In {field!r} of step {step.name!r}, character {error.position + 1}: {error}"
    return PlanProblem(message=sentence, path=path)


def _walk(plan: ExecutionPlan, path: ValuePath) -> Iterator[tuple[ValuePath, ExecutionStep]]:
    for place, step in enumerate(plan.steps):
        here = (*path, "steps", place)
        yield here, step
        if step.plan is not None:
            yield from _walk(step.plan, (*here, "plan"))


def _missing_problem(
    field: str, step: ExecutionStep, known: Collection[str], path: ValuePath
) -> PlanProblem:
    name = getattr(step, field)
    sentence = MISSING_RESOURCES[field].format(step=step.name, name=name)
    return PlanProblem(message=with_suggestion(sentence, name, known), path=(*path, field))


def _argument_problems(
    step: ExecutionStep, schema: Mapping[str, Any], path: ValuePath
) -> Iterator[PlanProblem]:
    """Yield missing and unknown arguments."""
    known = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in step.arguments:
            sentence = (
                f"{step.name!r} doesn't pass the required argument {name!r} to {step.tool!r}."
            )
            yield PlanProblem(message=sentence, path=(*path, "arguments"))
    if schema.get("additionalProperties") is False:
        for name in step.arguments.keys() - known.keys():
            sentence = f"{step.tool!r} doesn't have an argument {name!r}."
            sentence = with_suggestion(sentence, name, known)
            yield PlanProblem(message=sentence, path=(*path, "arguments", name))
