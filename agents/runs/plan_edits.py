"""Edited plans: reads the form and validates the result."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Self

from django.http import QueryDict
from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.errors import BadExpression, BadSchema
from agents.engine.events import EventType
from agents.engine.expressions import embedded_expressions
from agents.engine.json_schema import TooManyChecks, validate_schema, violations
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool
from agents.engine.plans import (
    MAX_PROBLEMS,
    ExecutionPlan,
    missing_resources,
    read_definition,
)
from agents.models import Approval, RunEvent

# Plans with more steps are edited as JSON.
MAX_EDITABLE_STEPS = 40
MAX_ADDED_STEPS = 20
WHOLE_PLAN = -1
PICKABLE_KINDS = ("tool", "agent", "ask")

Facts = dict[str, Any]
Problems = dict[int, list[str]]


@dataclass(frozen=True)
class PlanCapabilities:
    """The tools and agents that the run started with, for the steps of a plan."""

    functions: Mapping[str, Mapping[str, Any]]
    roles: frozenset[str] = frozenset()

    @classmethod
    def of(cls, approval: Approval) -> Self:
        start_events = RunEvent.objects.filter(
            run=approval.run_id,
            type__in=[EventType.RUN_STARTED, EventType.HANDOFF],
            agent=approval.agent_name,
        )
        # The agent that writes the plan can have the same name as the one that executes it, and
        # has no tools.
        tool_lists = start_events.order_by("-seq").values_list("data__tools", flat=True)
        tools = next(filter(None, tool_lists), ())
        functions = {tool["function"]["name"]: tool["function"] for tool in tools}
        # The question tool lists the roles that can be asked; agents have the roles of its
        # steps.
        ask_parameters = functions.get(AskPersonTool.name, {}).get("parameters", {})
        expert_roles = ask_parameters.get("properties", {}).get("role", {}).get("enum", ())
        mentioned_roles = {step.role.lower() for step in original_plan(approval).walk()}
        return cls(
            functions, frozenset(mentioned_roles | {name.lower() for name in expert_roles})
        )

    @cached_property
    def tools(self) -> dict[str, Mapping[str, Any]]:
        """The input schemas of the tools."""
        return {
            name: function["parameters"]
            for name, function in self.functions.items()
            if name != AskPersonTool.name and not name.startswith(HANDOFF_PREFIX)
        }

    @cached_property
    def agents(self) -> list[str]:
        return [
            name.removeprefix(HANDOFF_PREFIX)
            for name in self.functions
            if name != AskPersonTool.name and name.startswith(HANDOFF_PREFIX)
        ]

    def arguments(self, step: Mapping[str, Any]) -> list[str]:
        """Return the names of a step's arguments, given or possible."""
        names = list(step.get("arguments") or {})
        if step.get("agent"):
            return list(dict.fromkeys(["task", *names]))
        properties = self.tools.get(step.get("tool", ""), {}).get("properties") or {}
        return list(dict.fromkeys([*names, *properties]))

    def is_text(self, tool: str, name: str) -> bool:
        """Whether the argument is plain text."""
        properties = self.tools.get(tool, {}).get("properties") or {}
        schema = properties.get(name, {}) if isinstance(properties, dict) else {}
        return not isinstance(schema, dict) or schema.get("type", "string") == "string"


def original_plan(approval: Approval) -> ExecutionPlan:
    return ExecutionPlan.from_dict(json.loads(approval.arguments)).with_step_names()


@dataclass(frozen=True, kw_only=True)
class DraftStep:
    """A step in the form; its fields are named after its `key`."""

    key: int
    facts: Facts
    is_new: bool = False
    is_out: bool = False

    @property
    def what(self) -> str:
        """The picked value: `tool:name`, `agent:name` or `ask:`; for others only the kind."""
        kind = next((kind for kind in (*PICKABLE_KINDS, "plan") if kind in self.facts), "role")
        return f"{kind}:{self.facts[kind]}" if kind in {"tool", "agent"} else f"{kind}:"


@dataclass(frozen=True, kw_only=True)
class PlanDraft:
    """All steps in the form, including removed ones."""

    facts: Facts
    steps: Sequence[DraftStep]

    @classmethod
    def of(cls, plan: ExecutionPlan) -> Self:
        facts = plan.to_dict()
        steps = [DraftStep(key=key, facts=step) for key, step in enumerate(facts["steps"])]
        return cls(facts=facts, steps=steps)

    @property
    def kept_steps(self) -> list[DraftStep]:
        return [step for step in self.steps if not step.is_out]

    def plan(self) -> Facts:
        """Return the resulting plan, without removed steps and dependencies on them."""
        removed = {step.facts["name"] for step in self.steps if step.is_out}
        steps: list[Facts] = []
        for step in self.kept_steps:
            dependencies = step.facts.get("depends_on", ())
            if removed.isdisjoint(dependencies):
                steps.append(step.facts)
            else:
                remaining = [name for name in dependencies if name not in removed]
                steps.append({**step.facts, "depends_on": remaining})
        return {**self.facts, "steps": steps}

    def with_step(self, picked: str) -> "PlanDraft":
        """Return the draft with a new step of the picked kind."""
        kind, _colon, name = picked.partition(":")
        added_count = sum(step.is_new for step in self.steps)
        if kind not in PICKABLE_KINDS or added_count >= MAX_ADDED_STEPS:
            return self
        facts: Facts = {"name": f"{name or kind} {len(self.steps) + 1}", kind: name}
        key = 1 + max((step.key for step in self.steps), default=-1)
        return replace(self, steps=[*self.steps, DraftStep(key=key, facts=facts, is_new=True)])


class PlanForm:
    """The submitted fields of one plan. Without JavaScript all plans share one form."""

    def __init__(
        self, form: QueryDict, approval: Approval, capabilities: PlanCapabilities
    ) -> None:
        self.form = form
        self.written = approval.arguments
        self.typed = normalize_newlines(form.get(f"arguments-{approval.pk}", ""))
        self.name = f"plan-{approval.pk}"
        self.capabilities = capabilities
        self.original = PlanDraft.of(original_plan(approval))

    @cached_property
    def draft(self) -> PlanDraft:
        if self.name not in self.form:
            return self.original
        original_steps = {step.key: step for step in self.original.steps}
        keys = [
            int(key) for key in self._field_text("").split() if key.isascii() and key.isdigit()
        ]
        keys = list(dict.fromkeys(keys))[: MAX_EDITABLE_STEPS + MAX_ADDED_STEPS]
        steps: list[DraftStep] = []
        for key in keys:
            step = original_steps.get(key)
            if step is None:
                kind, _colon, name = self._field_text(f"-{key}-what").partition(":")
                kind = kind if kind in PICKABLE_KINDS else "tool"
                step_name = self._field_text(f"-{key}-name").strip()
                step = DraftStep(key=key, facts={"name": step_name, kind: name}, is_new=True)
            facts = dict(step.facts)
            for fact, field in (("ask", "ask"), ("expected_outcome", "expected")):
                text = self._field_text(f"-{step.key}-{field}", facts.get(fact, ""))
                _set_or_remove(facts, fact, text)
            dependencies = self.form.getlist(f"{self.name}-{step.key}-after")
            if set(dependencies) != set(facts.get("depends_on", ())):
                _set_or_remove(facts, "depends_on", dependencies)
            _set_or_remove(facts, "arguments", self._read_arguments(step.key, step.facts))
            if step.is_new and step.what == "ask:":
                facts.setdefault("ask", "")  # not filled in yet
            is_out = f"{self.name}-{step.key}-out" in self.form
            steps.append(replace(step, facts=facts, is_out=is_out))
        return replace(self.original, steps=steps)

    @property
    def is_json(self) -> bool:
        """Whether the plan was edited as JSON, which then takes precedence."""
        unchanged = (self.original.facts, self.written)
        return bool(self.typed) and parse_value(self.typed) not in unchanged

    @property
    def arguments(self) -> str:
        return self.typed if self.is_json else json.dumps(self.draft.plan())

    def problems(self, problems: Problems) -> Problems:
        """Return the problems of each step in the form, by key."""
        if self.is_json:
            return {WHOLE_PLAN: list(chain.from_iterable(problems.values()))}
        steps = self.draft.kept_steps
        by_key = {
            steps[index].key if index >= 0 else WHOLE_PLAN: sentences
            for index, sentences in problems.items()
        }
        unasked = [step.key for step in steps if step.facts.get("ask") == ""]
        return by_key | {key: [_("Enter a question.")] for key in unasked}

    def _read_arguments(self, key: int, facts: Facts) -> Facts:
        """Return a step's arguments: text stays text, everything else is JSON."""
        tool = facts.get("tool", "")
        old_arguments = facts.get("arguments", {})
        arguments: Facts = {}
        for name in self.capabilities.arguments(facts):
            old_value = old_arguments.get(name)
            old_text = normalize_newlines(value_text(old_value))
            text = self._field_text(f"-{key}-argument-{name}", old_text)
            if name in old_arguments and text == old_text:
                arguments[name] = old_value
            elif text.strip():
                is_new_text = old_value is None and self.capabilities.is_text(tool, name)
                is_text = is_new_text or isinstance(old_value, str)
                arguments[name] = text if is_text else parse_value(text)
        return arguments

    def _field_text(self, field: str, default: str = "") -> str:
        return normalize_newlines(self.form.get(f"{self.name}{field}", default))


def value_text(value: Any) -> str:
    """Return a value as text for an input field."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def normalize_newlines(text: str) -> str:
    """Normalize the line ends that browsers send, and drop NUL."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def _set_or_remove(facts: Facts, name: str, value: Any) -> None:
    facts.pop(name, None)
    if value:
        facts[name] = value


def parse_value(text: str) -> Any:
    """Parse JSON; other text is returned unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def validate_plan(
    value: Mapping[str, Any], capabilities: PlanCapabilities
) -> tuple[ExecutionPlan, Problems]:
    """Return the plan and its problems, by step index."""
    fields = {name: fact for name, fact in value.items() if name != "description"}
    definition = read_definition(
        json.dumps({"name": "plan", **fields}, ensure_ascii=False, indent=1)
    )
    absent = missing_resources(
        definition.plan, capabilities.tools, capabilities.agents, capabilities.roles
    )
    located = chain(definition.problems, map(definition.locate, absent))
    step_lines: list[int] = []  # in which the steps start
    if root := definition.root:
        indices = range(len(definition.plan.steps))
        step_lines = [root.place(("steps", index))[0] for index in indices]
    problems: Problems = {}
    for problem in islice(located, MAX_PROBLEMS):
        # The problem belongs to the last step that starts before its line.
        index = bisect_right(step_lines, problem.line) - 1
        problems.setdefault(index, []).append(translate(problem.message))
    problems |= _argument_problems(definition.plan, capabilities, problems)
    description = value.get("description", "")
    text = description if isinstance(description, str) else ""
    return replace(definition.plan, description=text), problems


def _argument_problems(
    plan: ExecutionPlan, capabilities: PlanCapabilities, other_problems: Problems
) -> Problems:
    """Return arguments that violate a tool's schema, for steps without other problems."""
    schemas: dict[str, dict[str, Any]] = {}
    for name in {step.tool for step in plan.steps} & capabilities.tools.keys():
        with suppress(BadSchema):  # an unusable schema: the tool validates
            schemas[name] = validate_schema(capabilities.tools[name])
    problems: Problems = {}
    for index, step in enumerate(plan.steps):
        if index in other_problems or step.tool not in schemas:
            continue
        with suppress(BadExpression, TooManyChecks):
            if any(embedded_expressions(step.arguments)):
                continue
            if sentences := violations(schemas[step.tool], dict(step.arguments)):
                problems[index] = sentences
        if len(problems) == MAX_PROBLEMS:
            break
    return problems
