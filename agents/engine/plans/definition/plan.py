"""A plan: steps, their order, who does them, and the expected results.

A workflow is a plan that an administrator wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

StepKind = Literal["tool", "agent", "ask", "plan"]

# Named conditions: always, all succeeded, one failed.
ALWAYS = "always"
SUCCESS = "success"
FAILURE = "failure"
DEFAULT_MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class ExecutionStep:
    """One step.

    Exactly one of `tool`, `agent`, `ask` and `plan` says what it is. `arguments` can refer to
    other steps: `${steps.name.output}`. `ask` is a question to a person or, with `approves`, a
    request for approval. A step with a `role` is for anyone who has that role. `for_each` is a
    list, or an expression for one: the step runs once per `item`. `until` repeats it until that
    is true of its `output`, at most `rounds` times. `parallel` steps run concurrently; others
    run one at a time.
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
    def kind(self) -> StepKind:
        if self.plan is not None:
            return "plan"
        return "ask" if self.ask else "agent" if self.agent else "tool"

    @property
    def expectation(self) -> str | None:
        """The expression to evaluate if `expected_outcome` is one `${…}`."""
        expected = self.expected_outcome.strip()
        is_one = expected.startswith("${") and expected.endswith("}")
        return expected[2:-1] if is_one and expected.count("${") == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the step as a dict without default values."""
        default = ExecutionStep()
        fields: dict[str, Any] = {}
        for name in STEP_FIELDS:
            match getattr(self, name):
                case value if value == getattr(default, name):
                    continue
                case ExecutionPlan() as plan:
                    fields[name] = plan.to_dict()
                case tuple() as items:
                    fields[name] = list(items)
                case value:
                    fields[name] = value
        return fields

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        fields = {name: value[name] for name in STEP_FIELDS if name in value}
        if fields.get("plan") is not None:
            fields["plan"] = ExecutionPlan.from_dict(fields["plan"])
        if "depends_on" in fields:
            fields["depends_on"] = tuple(fields["depends_on"])
        for name in INTEGER_FIELDS:
            number = fields.get(name)
            if isinstance(number, float) and number.is_integer():
                fields[name] = int(number)  # models write 2.0
        return cls(**fields)


INTEGER_FIELDS = ("rounds", "retry")
STEP_FIELDS = ("name", *(name for name in ExecutionStep.__dataclass_fields__ if name != "name"))


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """Steps with unique names; all of them can refer to `parameters`."""

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

    def with_step_names(self) -> "ExecutionPlan":
        """Return the plan with every step named; unnamed ones are named by position."""
        steps = [
            replace(
                step,
                name=step.name or f"step {number}",
                plan=step.plan.with_step_names() if step.plan else None,
            )
            for number, step in enumerate(self.steps, 1)
        ]
        return ExecutionPlan(self.description, tuple(steps), self.parameters)

    def walk(self) -> Iterator[ExecutionStep]:
        """Yield every step, including those of nested plans."""
        for step in self.steps:
            yield step
            if step.plan is not None:
                yield from step.plan.walk()


def assign_roles(plan: ExecutionPlan, agents: Mapping[str, str]) -> ExecutionPlan:
    """Assign every step that only has a role.

    `agents` maps roles to agents; for other roles, people with that role are asked.
    """
    steps = list[ExecutionStep]()
    for step in plan.steps:
        if step.plan is not None:
            step = replace(step, plan=assign_roles(step.plan, agents))
        elif step.role and not (step.tool or step.agent or step.ask):
            agent = agents.get(step.role.lower())
            task = str(step.arguments.get("task") or step.name)
            step = replace(step, ask=task) if agent is None else replace(step, agent=agent)
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def without_approvals(plan: ExecutionPlan) -> ExecutionPlan:
    """Remove approvals from a model's plan, which may ask but not request approval."""
    steps = (
        replace(s, approves=False, plan=without_approvals(s.plan) if s.plan else None)
        for s in plan.steps
    )
    return replace(plan, steps=tuple(steps))
