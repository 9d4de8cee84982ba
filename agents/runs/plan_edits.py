"""A plan as a person has changed it: what they wrote, and what is wrong with it."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Self

from django.http import QueryDict
from django.utils.translation import gettext as _

from agents.engine.errors import BadExpression, BadSchema
from agents.engine.events import Type
from agents.engine.expressions import templates
from agents.engine.json_schema import TooManyChecks, usable, violations
from agents.engine.loop.approval import AskPerson
from agents.engine.loop.handoff import ASKS
from agents.engine.plans.definition import Definition, read
from agents.engine.plans.plan import ExecutionPlan, ExecutionStep
from agents.engine.plans.validation import missing
from agents.engine.plans.yaml_reader import MOST_PROBLEMS
from agents.models import Approval, RunEvent

from .engine_messages import told

# More steps than these are changed as JSON.
MOST_EDITED = 40
MOST_ADDED = 20
WHOLE = -1
PICKED = ("tool", "agent", "ask")

Facts = dict[str, Any]
Problems = dict[int, list[str]]


@dataclass(frozen=True)
class Means:
    """What the steps of a plan can count on: the tools and agents that its run began with."""

    functions: Mapping[str, Mapping[str, Any]]
    roles: frozenset[str] = frozenset()

    @classmethod
    def of(cls, approval: Approval) -> Self:
        begun = RunEvent.objects.filter(
            run=approval.run_id,
            type__in=[Type.RUN_STARTED, Type.HANDOFF],
            agent=approval.agent_name,
        )
        # Whoever writes a plan may be called as whoever has it carried out, and has no tools.
        told = begun.order_by("-seq").values_list("data__tools", flat=True)
        tools = next(filter(None, told), ())
        functions = {tool["function"]["name"]: tool["function"] for tool in tools}
        # Whom it may ask is said with the question tool; agents have the roles of its steps.
        person = functions.get(AskPerson.name, {}).get("parameters", {})
        experts = person.get("properties", {}).get("role", {}).get("enum", ())
        named = {step.role.lower() for step in original(approval).walk()}
        return cls(functions, frozenset(named | {name.lower() for name in experts}))

    @cached_property
    def tools(self) -> dict[str, Mapping[str, Any]]:
        """What each tool takes."""
        others = {AskPerson.name, *(f"{ASKS}{name}" for name in self.agents)}
        return {n: f["parameters"] for n, f in self.functions.items() if n not in others}

    @cached_property
    def agents(self) -> list[str]:
        names = (name for name in self.functions if name != AskPerson.name)
        return [name.removeprefix(ASKS) for name in names if name.startswith(ASKS)]

    def arguments(self, step: Mapping[str, Any]) -> list[str]:
        """The names of what a step is given, or could be."""
        given = list(step.get("arguments") or {})
        if step.get("agent"):
            return list(dict.fromkeys(["task", *given]))
        known = self.tools.get(step.get("tool", ""), {}).get("properties") or {}
        return list(dict.fromkeys([*given, *known]))

    def is_text(self, tool: str, name: str) -> bool:
        """Whether whatever is typed there is meant as it is."""
        known = self.tools.get(tool, {}).get("properties") or {}
        about = known.get(name, {}) if isinstance(known, dict) else {}
        return not isinstance(about, dict) or about.get("type", "string") == "string"


def original(approval: Approval) -> ExecutionPlan:
    return ExecutionPlan.from_dict(json.loads(approval.arguments)).named()


@dataclass(frozen=True, kw_only=True)
class DraftStep:
    """A step as it stands in the form; its fields are named after its `key`."""

    key: int
    facts: Facts
    is_new: bool = False
    is_out: bool = False

    @property
    def what(self) -> str:
        """As it is picked: `tool:name`, `agent:name` or `ask:`; of others only the kind."""
        kind = next((kind for kind in (*PICKED, "plan") if kind in self.facts), "role")
        return f"{kind}:{self.facts[kind]}" if kind in {"tool", "agent"} else f"{kind}:"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """All steps as they stand in the form, those that are to be left out, too."""

    facts: Facts
    steps: Sequence[DraftStep]

    @classmethod
    def of(cls, plan: ExecutionPlan) -> Self:
        facts = plan.to_dict()
        steps = [DraftStep(key=key, facts=step) for key, step in enumerate(facts["steps"])]
        return cls(facts=facts, steps=steps)

    @property
    def staying(self) -> list[DraftStep]:
        return [step for step in self.steps if not step.is_out]

    def plan(self) -> Facts:
        """What it comes to. Nobody waits for a step that is left out."""
        out = {step.facts["name"] for step in self.steps if step.is_out}
        steps = [_without(step.facts, out) for step in self.staying]
        return {**self.facts, "steps": steps}

    def added(self, what: str) -> "Draft":
        """With one more, of the kind that was picked."""
        kind, _colon, name = what.partition(":")
        new = sum(step.is_new for step in self.steps)
        if kind not in PICKED or new >= MOST_ADDED:
            return self
        facts: Facts = {"name": f"{name or kind} {len(self.steps) + 1}", kind: name}
        key = 1 + max((step.key for step in self.steps), default=-1)
        return replace(self, steps=[*self.steps, DraftStep(key=key, facts=facts, is_new=True)])


def _without(facts: Facts, out: set[str]) -> Facts:
    if not out & set(facts.get("depends_on", ())):
        return facts
    return {**facts, "depends_on": [name for name in facts["depends_on"] if name not in out]}


class Form:
    """What was typed about one plan. Without JavaScript all plans share one form."""

    def __init__(self, form: QueryDict, approval: Approval, means: Means) -> None:
        self.form = form
        self.written = approval.arguments
        self.typed = _typed(form.get(f"arguments-{approval.pk}", ""))
        self.name = f"plan-{approval.pk}"
        self.means = means
        self.shown = Draft.of(original(approval))

    @cached_property
    def draft(self) -> Draft:
        if self.name not in self.form:
            return self.shown
        known = {step.key: step for step in self.shown.steps}
        keys = [int(key) for key in self._text("").split() if key.isascii() and key.isdigit()]
        keys = list(dict.fromkeys(keys))[: MOST_EDITED + MOST_ADDED]
        steps = [self._step(known.get(key) or self._new(key)) for key in keys]
        return replace(self.shown, steps=steps)

    @property
    def is_json(self) -> bool:
        """Whether another plan was typed as JSON; then that is what counts."""
        return bool(self.typed) and _value(self.typed) not in (self.shown.facts, self.written)

    @property
    def arguments(self) -> str:
        return self.typed if self.is_json else json.dumps(self.draft.plan())

    def problems(self, found: Problems) -> Problems:
        """What is wrong with which step of the form, by its key."""
        if self.is_json:
            return {WHOLE: [sentence for said in found.values() for sentence in said]}
        steps = self.draft.staying
        by_key = {steps[at].key if at >= 0 else WHOLE: said for at, said in found.items()}
        unasked = [step.key for step in steps if step.facts.get("ask") == ""]
        return by_key | {key: [_("The question is missing.")] for key in unasked}

    def _step(self, step: DraftStep) -> DraftStep:
        facts = dict(step.facts)
        for name, field in (("ask", "ask"), ("expected_outcome", "expected")):
            _set(facts, name, self._text(f"-{step.key}-{field}", facts.get(name, "")))
        after = self.form.getlist(f"{self.name}-{step.key}-after")
        if set(after) != set(facts.get("depends_on", ())):
            _set(facts, "depends_on", after)
        _set(facts, "arguments", dict(self._arguments(step)))
        if step.is_new and step.what == "ask:":
            facts.setdefault("ask", "")  # still to be written
        is_out = f"{self.name}-{step.key}-out" in self.form
        return replace(step, facts=facts, is_out=is_out)

    def _new(self, key: int) -> DraftStep:
        kind, _colon, name = self._text(f"-{key}-what").partition(":")
        kind = kind if kind in PICKED else "tool"
        called = self._text(f"-{key}-name").strip()
        return DraftStep(key=key, facts={"name": called, kind: name}, is_new=True)

    def _arguments(self, step: DraftStep) -> Iterator[tuple[str, Any]]:
        given = step.facts.get("arguments", {})
        for name in self.means.arguments(step.facts):
            was = given.get(name)
            before = _typed(as_text(was))
            text = self._text(f"-{step.key}-argument-{name}", before)
            if name in given and text == before:
                yield name, was
            elif text.strip():
                is_text = isinstance(was, str) or self._is_text(step, name, was)
                yield name, text if is_text else _value(text)

    def _is_text(self, step: DraftStep, name: str, was: Any) -> bool:
        return was is None and self.means.is_text(step.facts.get("tool", ""), name)

    def _text(self, field: str, default: str = "") -> str:
        return _typed(self.form.get(f"{self.name}{field}", default))


def as_text(value: Any) -> str:
    """A value as it stands in a field of its own."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _typed(text: str) -> str:
    """As browsers send it, but for their ends of lines."""
    return text.replace("\r\n", "\n").replace("\0", "")


def _set(facts: Facts, name: str, value: Any) -> None:
    facts.pop(name, None)
    if value:
        facts[name] = value


def _value(text: str) -> Any:
    """JSON as data; text that is none as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def checked(value: Mapping[str, Any], means: Means) -> tuple[ExecutionPlan, Problems]:
    """The plan, and all that keeps it from being carried out, by the places of its steps."""
    words = {name: fact for name, fact in value.items() if name != "description"}
    definition = read(json.dumps({"name": "plan", **words}, ensure_ascii=False, indent=1))
    absent = missing(definition.plan, means.tools, means.agents, means.roles)
    noticed = chain(definition.problems, map(definition.placed, absent))
    begins = _begins(definition)
    found: Problems = {}
    for problem in islice(noticed, MOST_PROBLEMS):
        # It is about the last step that begins before it.
        place = bisect_right(begins, problem.line) - 1
        found.setdefault(place, []).append(told(problem.message))
    found |= _wrong(definition.plan, means, found)
    description = value.get("description", "")
    about = description if isinstance(description, str) else ""
    return replace(definition.plan, description=about), found


def _begins(definition: Definition) -> list[int]:
    """The lines in which its steps begin."""
    root, count = definition.root, len(definition.plan.steps)
    return [root.place(("steps", at))[0] for at in range(count)] if root else []


def _wrong(plan: ExecutionPlan, means: Means, found: Problems) -> Problems:
    """What tools do not take, where the arguments are known and nothing else is wrong."""
    called = {step.tool for step in plan.steps} & means.tools.keys()
    schemas = {name: _usable(means.tools[name]) for name in called}
    steps = [(at, step) for at, step in enumerate(plan.steps) if at not in found]
    said = ((at, _faults(step, schemas.get(step.tool))) for at, step in steps)
    return dict(islice(((at, faults) for at, faults in said if faults), MOST_PROBLEMS))


def _usable(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """None for one that nobody can use: the tool itself judges."""
    try:
        return usable(schema)
    except BadSchema:
        return None


def _faults(step: ExecutionStep, schema: dict[str, Any] | None) -> list[str]:
    try:
        if schema is None or any(templates(step.arguments)):
            return []
        return violations(schema, dict(step.arguments))
    except (BadExpression, TooManyChecks):
        return []
