"""A plan for display: steps, progress and earlier versions."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias

from django.db.models import QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.db.compiled_queries import compiled_query
from agents.db.sentences import translate
from agents.engine.plans import ExecutionPlan, ExecutionStep
from agents.models import AgentStep, Run, WorkflowVersion

from ..formats.links import trace_url
from .plan_graph import PENDING, StepState, render_graph
from .plan_lines import PlanLine, change_summary, plan_lines

Status = AgentStep.Status
TaskRow: TypeAlias = tuple[int, int | None, int, str, str]  # number, parent, turn, name, status
StepFilter = Callable[[AgentStep], AgentStep]

MAX_LINES = 50
MAX_CHAT_STEPS = 200  # rows; the trace has all of them
# The task of one item in a `for_each` step is named name[3].
ITEM_SUFFIX = re.compile(r"\[\d+\]\Z")
# An expectation is a sentence of its own, in brackets within another one.
BRACKETED_PERIOD = re.compile(r"[.。](?=\): |）：)")
PROGRESS_STATUSES = (
    Status.RUNNING,
    Status.WAITING,
    Status.FAILED,
    Status.REJECTED,
    Status.SKIPPED,
)


@dataclass(frozen=True)
class PlanFacts:
    """A plan's row; empty until the plan is written."""

    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, step: AgentStep) -> "PlanFacts":
        facts = step.action_input
        return cls(facts if isinstance(facts, dict) and "steps" in facts else {})

    def __bool__(self) -> bool:
        return bool(self.facts)

    @cached_property
    def plan(self) -> ExecutionPlan:
        return ExecutionPlan.from_dict(self.facts).with_step_names()

    @property
    def changes(self) -> dict[str, str]:
        return self.facts.get("changes") or {}

    @property
    def difference(self) -> str:
        return change_summary(self.changes)

    @property
    def feedback(self) -> list[str]:
        feedback = self.facts.get("feedback") or ()
        return [BRACKETED_PERIOD.sub("", translate(sentence)) for sentence in feedback]

    @property
    def why(self) -> str:
        return "\n".join(self.feedback)

    @property
    def text(self) -> str:
        """The whole plan as plain text."""
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def lines(self) -> list[PlanLine]:
        return plan_lines(self.plan, self.changes)

    @property
    def first_lines(self) -> list[PlanLine]:
        return self.lines[:MAX_LINES]

    @property
    def more_lines(self) -> int:
        return len(self.lines) - len(self.first_lines)


@dataclass(frozen=True, kw_only=True)
class PlanVersion:
    """One version of a plan, with the status of its steps."""

    number: int
    of: int
    facts: PlanFacts
    states: Mapping[str, StepState]
    href: Callable[[int | None], str]
    workflow: WorkflowVersion | None = None  # set if it comes from a workflow

    @property
    def title(self) -> str:
        if self.workflow is not None:
            params = {"name": self.workflow.workflow.name, "number": self.workflow.number}
            return _("%(name)s · version %(number)d") % params
        if self.of == 1:
            return _("Plan")
        return _("Plan %(number)d of %(count)d") % {"number": self.number, "count": self.of}

    @property
    def description(self) -> str:
        return self.facts.plan.description

    @property
    def changed_lines(self) -> list[PlanLine]:
        return [line for line in self.facts.first_lines if line.change not in ("", "kept")]

    @property
    def lines(self) -> list[PlanLine]:
        return [
            PlanLine(
                number=line.number,
                step=line.step,
                change=line.change,
                state=(state := self.states.get(line.step.name, StepState())),
                href=self.href(state.number),
            )
            for line in self.facts.first_lines
            if line.number
        ]

    @cached_property
    def count(self) -> Counter[str]:
        return Counter(state.status for state in self.states.values())

    @property
    def total(self) -> int:
        return len(self.states)

    @property
    def over(self) -> int:
        return self.count[Status.DONE] + self.count[Status.SKIPPED]

    @property
    def progress(self) -> str:
        done = {"done": self.count[Status.DONE], "all": self.total}
        return _("%(done)d of %(all)d done") % done

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Counts by status, except done and pending."""
        return [
            (status.value, _("%(count)d %(status)s") % {"count": count, "status": status.label})
            for status in PROGRESS_STATUSES
            if (count := self.count[status])
        ]

    @property
    def graph(self) -> SafeString:
        def href(step: ExecutionStep, state: StepState) -> str:
            return self.href(state.number)

        return render_graph(self.facts.plan, self.states, href, label=self.title)


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """All versions of a run's plan; the last one is current."""

    versions: Sequence[PlanVersion]
    is_planning: bool = False

    @property
    def current(self) -> PlanVersion:
        return self.versions[-1]

    @property
    def not_started(self) -> list[str]:
        """The names of steps that were never started."""
        states = self.current.states.items()
        return [name for name, state in states if state.status == PENDING]

    @property
    def earlier(self) -> Sequence[PlanVersion]:
        return self.versions[-2::-1]

    @classmethod
    def of(cls, run: Run, place: str, step_filter: StepFilter) -> "PlanView | None":
        """Load few columns of few rows, because it is repeated while the plan runs."""
        is_prefetched = "steps" in getattr(run, "_prefetched_objects_cache", ())
        if is_prefetched:
            plans = [step for step in run.steps.all() if step.kind == AgentStep.Kind.PLAN]
        else:
            plans = list(_stored_plans(run.pk))
        rows = [row for row in plans if row.parent is None]
        planned = [row for row in rows if PlanFacts.of(row)]
        if not planned:
            return None
        if is_prefetched:
            tasks = [
                (step.number, step.parent, step.turn, step.action, step.status)
                for step in run.steps.all()
                if step.kind == AgentStep.Kind.TASK
            ]
        else:
            tasks = list(_stored_tasks(run.pk))
        step_states = _StepStates(run, tasks, [PlanFacts.of(row).plan for row in planned])
        versions = [
            PlanVersion(
                number=index + 1,
                of=len(planned),
                facts=PlanFacts.of(step_filter(row)),
                states=step_states.states(index, row.turn, PlanFacts.of(step_filter(row)).plan),
                href=partial(_step_href, run.pk, place),
                workflow=run.workflow,
            )
            for index, row in enumerate(planned)
        ]
        return cls(versions=versions, is_planning=rows[-1].is_live and run.is_live)


class _StepStates:
    """The status of each version's steps, by their original names."""

    def __init__(
        self, run: Run, tasks: Iterable[TaskRow], plans: Sequence[ExecutionPlan]
    ) -> None:
        self.run = run
        self.plans = plans
        self.tasks: dict[tuple[int, str], tuple[int, str]] = {}
        self.items: dict[int, Counter[str]] = {}
        for number, parent, turn, name, status in tasks:
            if parent is None:
                self.tasks[turn, name] = (number, status)
            elif ITEM_SUFFIX.search(name):
                self.items.setdefault(parent, Counter())[status] += 1

    def states(self, index: int, turn: int, shown_plan: ExecutionPlan) -> dict[str, StepState]:
        """Return states by displayed name, which may be masked."""
        pairs = zip(self.plans[index].steps, shown_plan.steps, strict=True)
        return {shown_step.name: self._state(index, turn, step) for step, shown_step in pairs}

    def _state(self, index: int, turn: int, step: ExecutionStep) -> StepState:
        if (task := self.tasks.get((turn, step.name))) is not None:
            number, status = task
            is_held_up = status == Status.RUNNING and self.run.is_waiting
            state = Status.WAITING.value if is_held_up else status
            note = ""
            if (counts := self.items.get(number)) is not None:
                params = {"done": counts[Status.DONE], "all": counts.total()}
                note = _("%(done)d of %(all)d items") % params
            return StepState(status=state, number=number, note=note)
        # An equal step that is done in an earlier version isn't repeated.
        for earlier in range(turn - 1, 0, -1):
            task = self.tasks.get((earlier, step.name))
            if task is None or task[1] != Status.DONE:
                continue
            if any(step in plan.steps for plan in self.plans[:index]):
                note = _("reused from plan %(number)d") % {"number": earlier}
                return StepState(status=Status.DONE, number=task[0], note=note)
        return StepState()


def is_folded(step: AgentStep, folded: set[int]) -> bool:
    """Whether it belongs to one item of a `for_each` list: there may be a thousand."""
    is_item = step.kind == AgentStep.Kind.TASK and bool(ITEM_SUFFIX.search(step.action))
    return step.parent is not None and (is_item or step.parent in folded)


def _step_href(run: int, place: str, number: int | None) -> str:
    if number is None:
        return ""
    if place == "chat" and number > MAX_CHAT_STEPS:
        return f"{trace_url(run)}#step-{number}"
    return f"#step-{run}-{number}" if place == "chat" else f"#step-{number}"


@compiled_query
def _stored_plans(run: int) -> QuerySet[AgentStep]:
    return AgentStep.objects.filter(run=run, kind=AgentStep.Kind.PLAN)


@compiled_query
def _stored_tasks(run: int) -> QuerySet[AgentStep, TaskRow]:
    tasks = AgentStep.objects.filter(run=run, kind=AgentStep.Kind.TASK)
    return tasks.values_list("number", "parent", "turn", "action", "status")
