"""Executes a plan: starts steps that are due and releases those that waited for them."""

from collections import ChainMap
from collections.abc import AsyncGenerator, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

from agents.engine.concurrency.merge import EventMerger

from ...errors import BadExpression
from ...events import Event
from ...expressions import parse
from ...sentences import Sentence as _
from ..definition.graph import dependencies
from ..definition.plan import ALWAYS, FAILURE, SUCCESS, ExecutionPlan, ExecutionStep
from .context import Names, PlanContext
from .outcome import StepOutcome
from .step_run import StepRun

Events = AsyncGenerator[Event, None]


class PlanExecution:
    """A plan in execution; its rows record the progress, so it can resume at any time.

    It ends with `outcomes`, unless it `is_waiting` for a person. `reused` are outcomes of
    steps that needn't be repeated. With `halts` nothing new starts after a failure.
    """

    def __init__(
        self,
        context: PlanContext,
        plan: ExecutionPlan,
        *,
        reused: Mapping[str, StepOutcome] | None = None,
        outer: Names | None = None,
        parent: int | None = None,
        halts: bool = False,
    ) -> None:
        self.context = context
        self.plan = plan.with_step_names()
        self.parent = parent
        self.halts = halts
        self.is_waiting = False
        self.spent = ""
        self.outcomes: dict[str, StepOutcome] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        outside = dict(outer or {})
        steps = ChainMap(self._facts, outside.get("steps", {}))
        parameters = {**outside.get("parameters", {}), **plan.parameters}
        self.names = {**outside, "steps": steps, "parameters": parameters}
        self._positions = {step.name: position for position, step in enumerate(self.plan.steps)}
        # The steps of this plan that have to end before each one.
        self._prerequisites = {
            step.name: frozenset(dependencies(step)) & self._positions.keys() - {step.name}
            for step in self.plan.steps
        }
        for name in (reused or {}).keys() & self._positions.keys():
            self._record(name, (reused or {})[name])
        self._waits_for: dict[str, set[str]] = {}
        self._lets_begin: dict[str, list[str]] = {name: [] for name in self._positions}
        for name, prerequisites in self._prerequisites.items():
            self._waits_for[name] = set(prerequisites - self.outcomes.keys())
            for prerequisite in prerequisites:
                self._lets_begin[prerequisite].append(name)
        self._step_runs: dict[str, StepRun] = {}
        self._due: dict[bool, list[int]] = {True: [], False: []}
        self._on_record: list[StepRun] = []
        self._alone: str | None = None
        for name in self._positions:
            if name not in self.outcomes and not self._waits_for[name]:
                self._enqueue(name)

    async def events(self) -> Events:
        merger = EventMerger()
        try:
            while True:
                for event in self._start_due(merger):
                    yield event
                if not len(merger):
                    break
                name, next_event = await merger.next()
                if next_event is not None:
                    yield next_event
                    continue
                outcome = self._step_runs.pop(name).outcome
                if outcome is None:  # sequential steps wait for the person's decision
                    self.is_waiting = True
                    continue
                self._alone = None if self._alone == name else self._alone
                self._complete(name, outcome)
        finally:
            await merger.close()
        # A person decides about a limit if it is all that holds up the next step.
        request = self.context.limit_request(self.parent) if self.is_held_up else None
        self.is_waiting |= request is not None
        for event in request or ():
            yield event

    @property
    def failures(self) -> dict[str, StepOutcome]:
        return {n: o for n, o in self.outcomes.items() if o.status == "failed"}

    @property
    def unhandled_failures(self) -> dict[str, StepOutcome]:
        """Return the failures that no finished step with the condition `failure` is about.

        A step also handles the failure behind one that was never reached. A rejection always
        ends the workflow.
        """
        unhandled = self.failures
        for handler in self.plan.steps:
            outcome = self.outcomes.get(handler.name)
            if handler.condition != FAILURE or outcome is None or outcome.status != "done":
                continue
            causes = list(self._prerequisites[handler.name])
            while causes:
                name = causes.pop()
                if self.outcomes[name].status == "unreached":
                    causes += self._prerequisites[name]
                elif self.plan.steps[self._positions[name]].kind != "ask":
                    unhandled.pop(name, None)
        return unhandled

    @property
    def is_held_up(self) -> bool:
        """Whether steps are due that only a limit keeps from starting."""
        return any(self._due.values()) and not (self.halts and bool(self.failures))

    @property
    def output(self) -> Any:
        """The output of the last steps, which no other step waits for."""
        outputs = {
            name: outcome.output
            for name, dependents in self._lets_begin.items()
            if not dependents
            and (outcome := self.outcomes.get(name)) is not None
            and outcome.status == "done"
        }
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def _nested_execution(
        self, plan: ExecutionPlan, names: Names, parent: int
    ) -> "PlanExecution":
        return PlanExecution(self.context, plan, outer=names, parent=parent)

    def _enqueue(self, name: str) -> None:
        """Mark a step as due; one that was started before continues regardless."""
        step = self.plan.steps[self._positions[name]]
        step_run = StepRun(self.context, step, self.names, self.parent, self._nested_execution)
        if step_run.number is not None:
            self._on_record.append(step_run)
        else:
            heappush(self._due[step.parallel], self._positions[name])

    def _start_due(self, merger: EventMerger) -> Iterator[Event]:
        """Start recorded steps first, then new ones.

        A failure only holds up new steps: finished ones stay finished, and running ones must be
        resolved.
        """
        while True:
            while self._on_record:
                yield from self._start_step_run(merger, self._on_record.pop(0))
            if (step_run := self._next_step_run(len(merger))) is None:
                return
            yield from self._start_step_run(merger, step_run)

    def _start_step_run(self, merger: EventMerger, step_run: StepRun) -> Iterator[Event]:
        step = step_run.step
        outcome = step_run.outcome or self._skip_outcome(step_run.step)
        if outcome is None:
            self._alone = self._alone if step.parallel else step.name
            self._step_runs[step.name] = step_run
            merger.add(step.name, step_run.events())
        elif outcome.status == "skipped" and step_run.outcome is None:
            yield from step_run.skip(outcome.reason)
            self._complete(step.name, step_run.outcome or outcome)
        else:
            self._complete(step.name, outcome)

    def _next_step_run(self, under_way: int) -> StepRun | None:
        if under_way >= self.context.most_at_once:
            return None
        self.spent = self.spent or self.context.reached_limit()
        is_limited = bool(self.spent) or self.context.due_limit() is not None
        if is_limited or (self.halts and self.failures):
            return None
        lanes = [True] if self._alone else [True, False]
        due = [(self._due[lane][0], lane) for lane in lanes if self._due[lane]]
        if not due:
            return None
        position, lane = min(due)
        heappop(self._due[lane])
        step = self.plan.steps[position]
        return StepRun(self.context, step, self.names, self.parent, self._nested_execution)

    def _skip_outcome(self, step: ExecutionStep) -> StepOutcome | None:
        """Return the outcome of a skipped step, or None if it is to be run."""
        if step.condition == ALWAYS:
            return None
        earlier_outcomes = [self.outcomes[name] for name in self._prerequisites[step.name]]
        has_failed = any(not outcome.is_ok for outcome in earlier_outcomes)
        if step.condition == FAILURE:
            skipped = StepOutcome(status="skipped", reason=_("No previous step failed."))
            return None if has_failed else skipped
        if has_failed:
            return StepOutcome(status="unreached", reason=_("A previous step failed."))
        if step.condition == SUCCESS:
            return None
        try:
            is_true = bool(parse(step.condition).value(self.names))
        except BadExpression as error:
            return StepOutcome(status="failed", reason=str(error))
        if is_true:
            return None
        reason = _("Condition not met: %(condition)s.", condition=step.condition)
        return StepOutcome(status="skipped", reason=reason)

    def _complete(self, name: str, outcome: StepOutcome) -> None:
        """Record an outcome and enqueue the steps that waited only for it."""
        self._record(name, outcome)
        for dependent in self._lets_begin[name]:
            self._waits_for[dependent].discard(name)
            if not self._waits_for[dependent] and dependent not in self.outcomes:
                self._enqueue(dependent)

    def _record(self, name: str, outcome: StepOutcome) -> None:
        self.outcomes[name] = outcome
        self._facts[name] = outcome.facts
