"""A plan: what is to be done, in which order, by whom, and what should come of it.

A workflow is a plan that an administrator wrote; a plan is a workflow that a model wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Kind = Literal["tool", "agent", "ask", "plan"]

# The conditions that have a name: whatever became of the steps before, all well, one failed.
ALWAYS, SUCCESS, FAILURE = "always", "success", "failure"
DEFAULT_MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class ExecutionStep:
    """One piece of work. Exactly one of `tool`, `agent`, `ask` and `plan` says what it is.

    `arguments` may refer to what others gave: `${steps.name.output}`. `ask` is a question to a
    person, or, with `approves`, something that they have to agree to. A step with a `role` is
    for whoever has that role. `for_each` is a list, or an expression that gives one: the step
    is done once for each `item`. `until` has it done again until that is true of its `output`,
    `rounds` times at most. Steps that are `parallel` may be done beside others; of those that
    are not, one at a time.
    """

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expected_outcome: str = ""
    timeout: float | None = None
    name: str = field(default="", kw_only=True)
    agent: str = field(default="", kw_only=True)
    ask: str = field(default="", kw_only=True)
    plan: "ExecutionPlan | None" = field(default=None, kw_only=True)
    approves: bool = field(default=False, kw_only=True)
    role: str = field(default="", kw_only=True)
    depends_on: tuple[str, ...] = field(default=(), kw_only=True)
    condition: str = field(default=SUCCESS, kw_only=True)
    parallel: bool = field(default=False, kw_only=True)
    for_each: Any = field(default=None, kw_only=True)
    until: str = field(default="", kw_only=True)
    rounds: int = field(default=DEFAULT_MAX_ROUNDS, kw_only=True)
    retry: int = field(default=0, kw_only=True)

    @property
    def kind(self) -> Kind:
        if self.plan is not None:
            return "plan"
        return "ask" if self.ask else "agent" if self.agent else "tool"

    @property
    def expectation(self) -> str | None:
        """The expression that is to be true, where `expected_outcome` is one `${…}`."""
        expected = self.expected_outcome.strip()
        is_one = expected.startswith("${") and expected.endswith("}")
        return expected[2:-1] if is_one and expected.count("${") == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """As it is written: what is as ever is left out."""
        blank = ExecutionStep()
        names = (name for name in STEP_FIELDS if getattr(self, name) != getattr(blank, name))
        return {name: _to_plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        facts = {name: value[name] for name in STEP_FIELDS if name in value}
        if facts.get("plan") is not None:
            facts["plan"] = ExecutionPlan.from_dict(facts["plan"])
        if "depends_on" in facts:
            facts["depends_on"] = tuple(facts["depends_on"])
        return cls(
            **facts | {name: _to_int(facts[name]) for name in INTEGER_FIELDS if name in facts}
        )


INTEGER_FIELDS = ("rounds", "retry")
STEP_FIELDS = ("name", *(name for name in ExecutionStep.__dataclass_fields__ if name != "name"))


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """Steps, each with a name of its own; `parameters` can be referred to by all of them."""

    description: str = ""
    steps: Sequence[ExecutionStep] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "description": self.description,
            "steps": [step.to_dict() for step in self.steps],
            "parameters": dict(self.parameters),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            description=value.get("description", ""),
            steps=tuple(ExecutionStep.from_dict(step) for step in value.get("steps", ())),
            parameters=value.get("parameters", {}),
        )

    def named(self) -> "ExecutionPlan":
        """The same, where every step has a name: those without are called after their place."""
        steps = [_with_name(step, number) for number, step in enumerate(self.steps, 1)]
        return ExecutionPlan(self.description, tuple(steps), self.parameters)

    def walk(self) -> Iterator[ExecutionStep]:
        """Every step, those of plans within it too."""
        for step in self.steps:
            yield step
            if step.plan is not None:
                yield from step.plan.walk()


def assign_roles(plan: ExecutionPlan, agents: Mapping[str, str]) -> ExecutionPlan:
    """The plan with somebody for every step that says no more than a role.

    `agents` are those that have one, by role; where none has it, the people with that role are
    asked.
    """
    return replace(plan, steps=tuple(_assign_role(step, agents) for step in plan.steps))


def _assign_role(step: ExecutionStep, agents: Mapping[str, str]) -> ExecutionStep:
    if step.plan is not None:
        return replace(step, plan=assign_roles(step.plan, agents))
    if not step.role or step.tool or step.agent or step.ask:
        return step
    if (agent := agents.get(step.role.lower())) is not None:
        return replace(step, agent=agent)
    return replace(step, ask=str(step.arguments.get("task") or step.name))


def without_approvals(plan: ExecutionPlan) -> ExecutionPlan:
    """The plan of a model, which cannot say that a question is somebody's agreement."""
    steps = (
        replace(s, approves=False, plan=without_approvals(s.plan) if s.plan else None)
        for s in plan.steps
    )
    return replace(plan, steps=tuple(steps))


def _with_name(step: ExecutionStep, number: int) -> ExecutionStep:
    plan = step.plan.named() if step.plan else None
    return replace(step, name=step.name or f"step {number}", plan=plan)


def _to_int(value: Any) -> Any:
    """Models write 2.0 where they mean 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _to_plain(value: Any) -> Any:
    if isinstance(value, ExecutionPlan):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value
