"""Runs one step of a plan, with a row of its own."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents.engine.concurrency.merge import EventMerger
from agents.engine.loop.call_events import PREVIEW_CHARS

from ..errors import BadExpression
from ..events import Event, EventType
from ..expressions import interpolate, parse
from .attempts import StepAttempts
from .context import Names, PlanContext
from .deadline import TimeLimitedStream
from .evaluation import OutcomeCheck
from .outcome import EvaluationResult, StepOutcome, StepStatus
from .plan import ExecutionPlan, ExecutionStep

if TYPE_CHECKING:
    from .executor import PlanExecution

MAX_ITEMS = 1_000

Events = AsyncGenerator[Event, None]
NestedExecution = Callable[[ExecutionPlan, Names, int], "PlanExecution"]


class StepRun:
    """Runs a step; ends with an `outcome`, unless it waits for a person.

    `nested_execution` executes a nested plan. Recorded work isn't repeated.
    """

    def __init__(
        self,
        context: PlanContext,
        step: ExecutionStep,
        names: Names,
        parent: int | None,
        nested_execution: NestedExecution,
    ) -> None:
        self.context = context
        self.step = step
        self.names = names
        self.parent = parent
        self.nested_execution = nested_execution
        top = context.run_state.emit.parent
        self.number = context.recorded.task(parent or top, step.name, context.version)
        self.outcome = self._recorded_outcome()

    async def events(self) -> Events:
        if self.outcome is not None:
            return
        if self.number is None:
            self.number = self.context.next_step()
            yield self._start_event()
        recorded = self.context.recorded.tree(self.number)
        emit = self.context.run_state.emit
        stream = TimeLimitedStream(self._work(self.number), self.step.timeout, emit, recorded)
        async with aclosing(stream.events()) as events:
            async for event in events:
                yield event
        if stream.is_late:
            self._finish("failed", reason=stream.reason)
        if self.outcome is not None:
            yield self._end_event(self.outcome)

    @property
    def is_waiting(self) -> bool:
        """Whether it was started and hasn't ended; if not running, it waits for a person."""
        return self.number is not None and self.outcome is None

    def skip(self, reason: str) -> list[Event]:
        """Record the step as skipped."""
        events = list[Event]()
        if self.number is None:
            self.number = self.context.next_step()
            events.append(self._start_event())
        self.outcome = StepOutcome(status="skipped", reason=reason, number=self.number)
        return [*events, self._end_event(self.outcome)]

    def _recorded_outcome(self) -> StepOutcome | None:
        end = self.context.recorded.end(self.number) if self.number is not None else None
        return None if end is None else StepOutcome.from_dict(end.data, end.data["step"])

    def _start_event(self) -> Event:
        step = self.step
        return self.context.event_factory(self.parent)(
            EventType.TASK,
            step=self.number,
            turn=self.context.version,
            plan=self.context.version,
            kind="task",
            name=step.name,
            work=step.kind,
            what=step.tool or step.agent or step.ask,
            expected=step.expected_outcome,
            is_each=step.for_each is not None,
        )

    def _end_event(self, outcome: StepOutcome) -> Event:
        return self.context.event_factory(self.parent)(
            EventType.STEP,
            step=self.number,
            turn=self.context.version,
            kind="task",
            action=self.step.name,
            observation=outcome.text[:PREVIEW_CHARS],
            **outcome.to_dict(),
        )

    async def _work(self, number: int) -> Events:
        try:
            execution = self._execution(number)
            async with aclosing(execution.events()) as events:
                async for event in events:
                    yield event
            if (check := self._take_result(execution, number)) is not None:
                async with aclosing(check.events()) as events:
                    async for event in events:
                        yield event
                self._finish_checked(check)
        except BadExpression as error:
            self._finish("failed", reason=str(error))

    def _execution(self, number: int) -> "StepAttempts | PlanExecution | ItemRuns":
        if self.step.for_each is not None:
            items = enumerate(self._items())
            runs = [self._item_run(number, index, item) for index, item in items]
            return ItemRuns(self.context, runs, number, is_parallel=self.step.parallel)
        if self.step.plan is not None:
            return self.nested_execution(self.step.plan, self.names, number)
        return StepAttempts(self.context, self.step, self.names, number)

    def _take_result(
        self, execution: "StepAttempts | PlanExecution | ItemRuns", number: int
    ) -> OutcomeCheck | None:
        """Set the outcome unless a person has to decide; return a nested plan's check."""
        if isinstance(execution, StepAttempts):
            self.outcome = execution.outcome
            return None
        if isinstance(execution, ItemRuns):
            if not execution.is_waiting:
                self._combine_outcomes(execution.runs)
            return None
        if execution.is_waiting:
            return None
        if failed := [f"“{n}”: {o.reason}" for n, o in execution.failures.items()]:
            self._finish("failed", execution.output, failed[0])
        elif execution.spent and len(execution.outcomes) < len(execution.plan.steps):
            self._finish("failed", execution.output, execution.spent)
        else:
            self._finish("done", execution.output)
            if self.step.expected_outcome:
                return OutcomeCheck(
                    self.context, self.step, execution.output, number, 1, self.names
                )
        return None

    def _finish_checked(self, check: OutcomeCheck) -> None:
        finding = check.finding
        status: StepStatus = "done" if finding.is_met else "failed"
        self._finish(status, check.output, "" if finding.is_met else finding.reason, finding)

    def _items(self) -> list[Any]:
        wanted = self.step.for_each
        if isinstance(wanted, str) and "${" not in wanted:
            items = parse(wanted).value(self.names)
        else:
            items = interpolate(wanted, self.names)
        if not isinstance(items, list):
            raise BadExpression(f"“{self.step.name}” needs a list in for_each.")
        if len(items) > MAX_ITEMS:
            raise BadExpression(f"for_each can have up to {MAX_ITEMS:,} items.")
        return items

    def _item_run(self, number: int, index: int, item: Any) -> "StepRun":
        item_step = replace(self.step, for_each=None, name=f"{self.step.name}[{index}]")
        names = {**self.names, "item": item, "index": index}
        return StepRun(self.context, item_step, names, number, self.nested_execution)

    def _combine_outcomes(self, item_runs: list["StepRun"]) -> None:
        ended = [item_run.outcome for item_run in item_runs if item_run.outcome is not None]
        if any(item_run.is_waiting for item_run in item_runs):
            return
        outputs = [outcome.output for outcome in ended]
        if len(ended) < len(item_runs):
            self._finish("failed", outputs, self.context.reached_limit())
        elif failed := [outcome for outcome in ended if not outcome.is_ok]:
            reason = f"{len(failed)} of {len(ended)} failed: {failed[0].reason}"
            self._finish("failed", outputs, reason)
        else:
            self._finish("done", outputs)

    def _finish(
        self,
        status: StepStatus,
        output: Any = None,
        reason: str = "",
        finding: EvaluationResult | None = None,
    ) -> None:
        self.outcome = StepOutcome(
            status=status, output=output, reason=reason, number=self.number, finding=finding
        )


class ItemRuns:
    """A step for every item of a list, concurrently or one at a time."""

    def __init__(
        self, context: PlanContext, runs: list[StepRun], parent: int, *, is_parallel: bool
    ) -> None:
        self.context = context
        self.runs = runs
        self.parent = parent
        self.is_parallel = is_parallel
        self.is_waiting = False  # for a decision about a limit

    async def events(self) -> Events:
        max_concurrency = self.context.most_at_once if self.is_parallel else 1
        due = self._due_runs()
        merger = EventMerger()
        try:
            while True:
                while len(merger) < max_concurrency and (run := next(due, None)) is not None:
                    merger.add(run.step.name, run.events())
                if not len(merger):
                    break
                _, event = await merger.next()
                if event is not None:
                    yield event
        finally:
            await merger.close()
        for event in self._ask_raise():
            yield event

    def _ask_raise(self) -> list[Event]:
        """Have a person asked about a limit, if items haven't started because of it."""
        is_due = any(run.number is None for run in self.runs)
        request = self.context.limit_request(self.parent) if is_due else None
        self.is_waiting = request is not None
        return request or []

    def _due_runs(self) -> Iterator[StepRun]:
        """Yield runs to continue: no new ones without budget, none after one that waits."""
        for run in self.runs:
            if run.number is None and self.context.due_limit() is not None:
                continue
            yield run
            if run.is_waiting and not self.is_parallel:
                return
