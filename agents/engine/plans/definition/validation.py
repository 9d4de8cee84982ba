"""Validates a plan before it is executed."""

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from ...errors import BadExpression
from ...expressions import Expression, embedded_expressions, iter_strings, parse
from ...sentences import Sentence as _
from ...suggestions import closest_name, suggest
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
    plan = plan.with_step_names()
    problems = chain(structural_problems(plan), missing_resources(plan, tools, agents, roles))
    return tuple(islice(problems, MAX_PROBLEMS))


def structural_problems(plan: ExecutionPlan) -> Iterator[PlanProblem]:
    """Yield structural problems, which don't depend on the tools. Steps must be named."""
    if len(list(plan.walk())) > MAX_STEPS:
        yield PlanProblem(
            message=_("A plan can have up to %(limit)s steps.", limit=f"{MAX_STEPS:,}"),
            path=("steps",),
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
        for field, available in (("tool", tools), ("agent", agents), ("role", roles)):
            name = getattr(step, field)
            if name and (name.lower() if field == "role" else name) not in available:
                sentence = MISSING_RESOURCES[field].fill(step=repr(step.name), name=repr(name))
                message = with_suggestion(sentence, name, available)
                yield PlanProblem(message=message, path=(*path, field))
        if step.tool in tools:
            yield from _argument_problems(step, tools[step.tool], path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The names that a plan's expressions can refer to, besides its own steps."""

    parameters: frozenset[str]
    steps: frozenset[str] = frozenset()  # have ended by then
    unfinished_steps: frozenset[str] = frozenset()  # may not have ended
    is_each: bool = False
    level: int = 1


def _structural_problems(
    plan: ExecutionPlan, scope: _Scope, path: ValuePath
) -> Iterator[PlanProblem]:
    if scope.level > MAX_DEPTH:
        sentence = _("Plans can be nested up to %(limit)s levels deep.", limit=MAX_DEPTH)
        yield PlanProblem(message=sentence, path=path)
        return
    if not plan.steps:
        yield PlanProblem(message=_("A plan needs at least one step."), path=(*path, "steps"))
    names: set[str] = set()
    for index, step in enumerate(plan.steps):
        if step.name in names:
            sentence = _("Two steps are named %(name)s.", name=repr(step.name))
            yield PlanProblem(message=sentence, path=(*path, "steps", index, "name"))
        names.add(step.name)
    if waiting := find_cycle(plan.steps):
        sentence = _("Circular dependency: %(names)s.", names=" → ".join(waiting))
        index = next(n for n, step in enumerate(plan.steps) if step.name == waiting[0])
        yield PlanProblem(message=sentence, path=(*path, "steps", index, "depends_on"))
    checker = _PlanChecker(plan, scope)
    for index, step in enumerate(plan.steps):
        yield from checker.problems(step, (*path, "steps", index))


class _PlanChecker:
    """Checks the steps of one plan against each other."""

    def __init__(self, plan: ExecutionPlan, scope: _Scope) -> None:
        self.names = [step.name for step in plan.steps]
        self.step_names = frozenset(self.names)
        self.is_before = precedence(plan.steps)
        self.scope = scope

    def problems(self, step: ExecutionStep, path: ValuePath) -> Iterator[PlanProblem]:
        yield from _field_problems(step, path)
        for index, name in enumerate(step.depends_on):
            if name not in self.step_names:
                sentence = _(
                    "%(step)s depends on %(name)s, which doesn't exist.",
                    step=repr(step.name),
                    name=repr(name),
                )
                hint = with_suggestion(sentence, name, self.step_names - {step.name})
                yield PlanProblem(message=hint, path=(*path, "depends_on", index))
        yield from self._expression_problems(step, path)
        if step.plan is not None:
            earlier = frozenset(name for name in self.names if self.is_before(name, step.name))
            nested_scope = _Scope(
                parameters=self.scope.parameters | frozenset(step.plan.parameters),
                steps=self.scope.steps | earlier,
                unfinished_steps=self.scope.unfinished_steps | self.step_names,
                is_each=self.scope.is_each or step.for_each is not None,
                level=self.scope.level + 1,
            )
            yield from _structural_problems(step.plan, nested_scope, (*path, "plan"))

    def _expression_problems(
        self, step: ExecutionStep, path: ValuePath
    ) -> Iterator[PlanProblem]:
        # The condition and `for_each` are evaluated once per step, the rest once per item.
        item_scope = replace(
            self.scope, is_each=self.scope.is_each or step.for_each is not None
        )
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
                step, step.until, (*path, "until"), item_scope, {"output"}
            )
        if (expected := step.expectation) is not None:
            yield from self._check_expression(
                step, expected, (*path, "expected_outcome"), item_scope, {"output"}
            )
        templates = {"arguments": step.arguments, "ask": step.ask}
        if not isinstance(step.for_each, str):
            templates["for_each"] = step.for_each
        for inner_path, template in iter_strings(templates):
            template_path = (*path, *inner_path)
            try:
                expressions = list(embedded_expressions(template))
            except BadExpression as error:
                yield _syntax_problem(step, template_path, error)
                continue
            for expression in expressions:
                for sentence in self._unknown_references(step, expression, item_scope):
                    yield PlanProblem(message=sentence, path=template_path)

    def _check_expression(
        self,
        step: ExecutionStep,
        text: str,
        path: ValuePath,
        scope: _Scope,
        extra_names: Set[str] = frozenset(),
    ) -> Iterator[PlanProblem]:
        try:
            expression = parse(text)
        except BadExpression as error:
            yield _syntax_problem(step, path, error)
            return
        for sentence in self._unknown_references(step, expression, scope, extra_names):
            yield PlanProblem(message=sentence, path=path)

    def _unknown_references(
        self,
        step: ExecutionStep,
        expression: Expression,
        scope: _Scope,
        extra_names: Set[str] = frozenset(),
    ) -> Iterator[str]:
        """Yield a sentence for each reference to a name that doesn't exist, or not yet."""
        names = {"steps", "parameters"} | extra_names
        if scope.is_each:
            names |= {"item", "index"}
        for name in sorted(expression.names - names):
            sentence = _(
                "%(step)s refers to %(name)s, which isn't available here.",
                step=repr(step.name),
                name=repr(name),
            )
            yield with_suggestion(sentence, name, names)
        for name in sorted(expression.parameters - scope.parameters):
            sentence = _(
                "%(step)s refers to the parameter %(name)s, which isn't declared.",
                step=repr(step.name),
                name=repr(name),
            )
            yield with_suggestion(sentence, name, scope.parameters)
        for name in sorted(expression.steps - scope.steps - self.step_names):
            if name in scope.unfinished_steps:
                yield _(
                    "%(step)s refers to the step %(name)s, which may not be finished "
                    "yet. Add it to depends_on.",
                    step=repr(step.name),
                    name=repr(name),
                )
                continue
            sentence = _(
                "%(step)s refers to the step %(name)s, which doesn't exist.",
                step=repr(step.name),
                name=repr(name),
            )
            yield with_suggestion(sentence, name, self.step_names | scope.steps)


def with_suggestion(sentence: str, name: str, candidates: Collection[str]) -> str:
    """Return the sentence with the candidate that is most like this name."""
    return suggest(sentence, closest_name(name, candidates))


def _field_problems(step: ExecutionStep, path: ValuePath) -> Iterator[PlanProblem]:
    """Yield fields that conflict or are out of range."""
    kinds = [kind for kind in STEP_KINDS if getattr(step, kind)]
    if not kinds and not step.role:
        yield PlanProblem(
            message=_(
                "The step %(name)s needs one of: tool, agent, ask, plan.", name=repr(step.name)
            ),
            path=path,
        )
    elif len(kinds) > 1:
        yield PlanProblem(
            message=_(
                "The step %(name)s combines %(kinds)s. Use only one.",
                name=repr(step.name),
                kinds=" and ".join(kinds),
            ),
            path=(*path, kinds[1]),
        )
    if step.approves and not step.ask:
        yield PlanProblem(
            message=_("The step %(name)s has approves but no ask.", name=repr(step.name)),
            path=(*path, "approves"),
        )
    if step.ask and step.timeout is not None:
        yield PlanProblem(
            message=_(
                "The step %(name)s waits for a user, so it can't have a timeout.",
                name=repr(step.name),
            ),
            path=(*path, "timeout"),
        )
    for field, minimum, maximum in FIELD_BOUNDS:
        value = getattr(step, field)
        if value is not None and not (is_number(value) and minimum <= value <= maximum):
            yield PlanProblem(
                message=_(
                    "The step %(name)s needs %(field)s between %(least)s and %(most)s.",
                    name=repr(step.name),
                    field=field,
                    least=f"{minimum:,}",
                    most=f"{maximum:,}",
                ),
                path=(*path, field),
            )
        elif field in INTEGER_FIELDS and not isinstance(value, int):
            yield PlanProblem(
                message=_(
                    "The step %(name)s needs a whole number in %(field)s.",
                    name=repr(step.name),
                    field=field,
                ),
                path=(*path, field),
            )
    if not isinstance(step.for_each, str | list | tuple | None):
        yield PlanProblem(
            message=_(
                "The step %(name)s needs a list or an expression in for_each.",
                name=repr(step.name),
            ),
            path=(*path, "for_each"),
        )


MISSING_RESOURCES = {
    "tool": _("%(step)s needs the tool %(name)s, which isn't available."),
    "agent": _("%(step)s needs the agent %(name)s, which isn't available."),
    "role": _("%(step)s needs the role %(name)s, which isn't available."),
}
FIELD_BOUNDS = (
    ("timeout", 0.001, MAX_TIMEOUT_SECONDS),
    ("rounds", 1, MAX_ROUNDS),
    ("retry", 0, MAX_RETRIES),
)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _syntax_problem(step: ExecutionStep, path: ValuePath, error: BadExpression) -> PlanProblem:
    field = next(key for key in reversed(path) if isinstance(key, str))
    sentence = _(
        "In %(field)s of step %(step)s, character %(position)s: %(sentence)s",
        field=repr(field),
        step=repr(step.name),
        position=error.position + 1,
        sentence=error,
    )
    return PlanProblem(message=sentence, path=path)


def _walk(plan: ExecutionPlan, path: ValuePath) -> Iterator[tuple[ValuePath, ExecutionStep]]:
    for index, step in enumerate(plan.steps):
        step_path = (*path, "steps", index)
        yield step_path, step
        if step.plan is not None:
            yield from _walk(step.plan, (*step_path, "plan"))


def _argument_problems(
    step: ExecutionStep, schema: Mapping[str, Any], path: ValuePath
) -> Iterator[PlanProblem]:
    """Yield missing and unknown arguments."""
    properties = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in step.arguments:
            sentence = _(
                "%(step)s doesn't pass the required argument %(name)s to %(tool)s.",
                step=repr(step.name),
                name=repr(name),
                tool=repr(step.tool),
            )
            yield PlanProblem(message=sentence, path=(*path, "arguments"))
    if schema.get("additionalProperties") is False:
        for name in step.arguments.keys() - properties.keys():
            sentence = _(
                "%(tool)s doesn't have an argument %(name)s.",
                tool=repr(step.tool),
                name=repr(name),
            )
            hint = with_suggestion(sentence, name, properties)
            yield PlanProblem(message=hint, path=(*path, "arguments", name))
