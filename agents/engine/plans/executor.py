"""Executes a plan: starts steps that are due and releases those that waited for them."""

from collections import ChainMap
from collections.abc import AsyncGenerator, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

from agents.engine.concurrency.merge import EventMerger

from ..errors import BadExpression
from ..events import Event
from ..expressions import parse
from .context import Names, PlanContext
from .graph import dependencies
from .outcome import StepOutcome
from .plan import ALWAYS, FAILURE, SUCCESS, ExecutionPlan, ExecutionStep
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
        self._before = {step.name: self._prerequisites(step) for step in self.plan.steps}
        for name in (reused or {}).keys() & self._positions.keys():
            self._record(name, (reused or {})[name])
        self._waits_for = {n: set(b - self.outcomes.keys()) for n, b in self._before.items()}
        self._lets_begin: dict[str, list[str]] = {name: [] for name in self._positions}
        for name, prerequisites in self._before.items():
            for other in prerequisites:
                self._lets_begin[other].append(name)
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
                name, item = await merger.next()
                if item is None:
                    self._on_step_run_end(name)
                else:
                    yield item
        finally:
            await merger.close()
        for event in self._ask_raise():
            yield event

    @property
    def failures(self) -> dict[str, StepOutcome]:
        return {n: o for n, o in self.outcomes.items() if o.status == "failed"}

    @property
    def is_held_up(self) -> bool:
        """Whether steps are due that only a limit keeps from starting."""
        return any(self._due.values()) and not (self.halts and bool(self.failures))

    @property
    def output(self) -> Any:
        """The output of the last steps, which no other step waits for."""
        last = [name for name, after in self._lets_begin.items() if not after]
        found = {n: self.outcomes[n].output for n in last if self._is_done(n)}
        return next(iter(found.values())) if len(found) == 1 else found

    def _is_done(self, name: str) -> bool:
        return name in self.outcomes and self.outcomes[name].status == "done"

    def _prerequisites(self, step: ExecutionStep) -> frozenset[str]:
        """Return the steps of this plan that have to end before this one."""
        return frozenset(dependencies(step)) & self._positions.keys() - {step.name}

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
        if under_way >= self.context.most_at_once or self._is_halted():
            return None
        lanes = [True] if self._alone else [True, False]
        due = [(self._due[lane][0], lane) for lane in lanes if self._due[lane]]
        if not due:
            return None
        position, lane = min(due)
        heappop(self._due[lane])
        step = self.plan.steps[position]
        return StepRun(self.context, step, self.names, self.parent, self._nested_execution)

    def _is_halted(self) -> bool:
        self.spent = self.spent or self.context.reached_limit()
        is_limited = bool(self.spent) or self.context.due_limit() is not None
        return is_limited or (self.halts and bool(self.failures))

    def _ask_raise(self) -> list[Event]:
        """Have a person asked about a limit, if it is all that holds up the next step."""
        request = self.context.limit_request(self.parent) if self.is_held_up else None
        self.is_waiting |= request is not None
        return request or []

    def _skip_outcome(self, step: ExecutionStep) -> StepOutcome | None:
        """Return the outcome of a skipped step, or None if it is to be run."""
        earlier_outcomes = [self.outcomes[name] for name in self._before[step.name]]
        has_failed = any(not outcome.is_ok for outcome in earlier_outcomes)
        if step.condition == ALWAYS:
            return None
        if step.condition == FAILURE:
            skipped = StepOutcome(status="skipped", reason="No previous step failed.")
            return None if has_failed else skipped
        if has_failed:
            return StepOutcome(status="unreached", reason="A previous step failed.")
        return None if step.condition == SUCCESS else self._condition_outcome(step.condition)

    def _condition_outcome(self, condition: str) -> StepOutcome | None:
        try:
            is_true = bool(parse(condition).value(self.names))
        except BadExpression as error:
            return StepOutcome(status="failed", reason=str(error))
        skipped = StepOutcome(status="skipped", reason=f"Condition not met: {condition}.")
        return None if is_true else skipped

    def _on_step_run_end(self, name: str) -> None:
        outcome = self._step_runs.pop(name).outcome
        if outcome is None:  # sequential steps wait for the person's decision
            self.is_waiting = True
            return
        self._alone = None if self._alone == name else self._alone
        self._complete(name, outcome)

    def _complete(self, name: str, outcome: StepOutcome) -> None:
        """Record an outcome and enqueue the steps that waited only for it."""
        self._record(name, outcome)
        for other in self._lets_begin[name]:
            self._waits_for[other].discard(name)
            if not self._waits_for[other] and other not in self.outcomes:
                self._enqueue(other)

    def _record(self, name: str, outcome: StepOutcome) -> None:
        self.outcomes[name], self._facts[name] = outcome, outcome.facts
