"""Runs one step of a plan, with a row of its own."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents.engine.concurrency.merge import EventMerger
from agents.engine.loop.tool_calls.call_events import PREVIEW_CHARS

from ...errors import BadExpression
from ...events import Event, EventType
from ...expressions import interpolate, parse
from ...sentences import Sentence as _
from ..definition.plan import ExecutionPlan, ExecutionStep
from .attempts import StepAttempts
from .context import Names, PlanContext
from .deadline import TimeLimitedStream
from .evaluation import OutcomeCheck
from .outcome import EvaluationResult, StepOutcome, StepStatus

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
        end = context.recorded.end(self.number) if self.number is not None else None
        self.outcome: StepOutcome | None = None
        if end is not None:
            self.outcome = StepOutcome.from_dict(end.data, end.data["step"])

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
        attempts: StepAttempts | None = None
        try:
            if self.step.for_each is not None:
                work = self._work_on_items(number)
            elif self.step.plan is not None:
                work = self._work_on_plan(self.step.plan, number)
            else:
                attempts = StepAttempts(self.context, self.step, self.names, number)
                work = attempts.events()
            async with aclosing(work):
                async for event in work:
                    yield event
            if attempts is not None:
                self.outcome = attempts.outcome
        except BadExpression as error:
            self._finish("failed", reason=str(error))

    async def _work_on_plan(self, plan: ExecutionPlan, number: int) -> Events:
        """Execute the nested plan and check its output, unless it waits for a person."""
        execution = self.nested_execution(plan, self.names, number)
        async with aclosing(execution.events()) as events:
            async for event in events:
                yield event
        if execution.is_waiting:
            return
        output = execution.output
        if failures := execution.unhandled_failures:
            name, outcome = next(iter(failures.items()))
            reason = _("“%(step)s”: %(reason)s", step=name, reason=outcome.reason)
            self._finish("failed", output, reason)
            return
        if execution.spent and len(execution.outcomes) < len(execution.plan.steps):
            self._finish("failed", output, execution.spent)
            return
        self._finish("done", output)
        if self.step.expected_outcome:
            check = OutcomeCheck(self.context, self.step, output, number, 1, self.names)
            async with aclosing(check.events()) as events:
                async for event in events:
                    yield event
            if check.finding.is_met:
                self._finish("done", output, finding=check.finding)
            else:
                self._finish("failed", output, check.finding.reason, check.finding)

    async def _work_on_items(self, number: int) -> Events:
        """Run the step for every item, and combine the outcomes."""
        source = self.step.for_each
        if isinstance(source, str) and "${" not in source:
            items = parse(source).value(self.names)
        else:
            items = interpolate(source, self.names)
        if not isinstance(items, list):
            raise BadExpression(_("“%(step)s” needs a list in for_each.", step=self.step.name))
        if len(items) > MAX_ITEMS:
            raise BadExpression(
                _("for_each can have up to %(limit)s items.", limit=f"{MAX_ITEMS:,}")
            )
        runs = list[StepRun]()
        for index, item in enumerate(items):
            item_step = replace(self.step, for_each=None, name=f"{self.step.name}[{index}]")
            names = {**self.names, "item": item, "index": index}
            runs.append(StepRun(self.context, item_step, names, number, self.nested_execution))
        item_runs = ItemRuns(self.context, runs, number, is_parallel=self.step.parallel)
        async with aclosing(item_runs.events()) as events:
            async for event in events:
                yield event
        if item_runs.is_waiting or any(run.is_waiting for run in runs):
            return
        ended = [run.outcome for run in runs if run.outcome is not None]
        outputs = [outcome.output for outcome in ended]
        if len(ended) < len(runs):
            self._finish("failed", outputs, self.context.reached_limit())
        elif failed := [outcome for outcome in ended if not outcome.is_ok]:
            reason = _(
                "%(failed)s of %(all)s failed: %(why)s",
                failed=len(failed),
                all=len(ended),
                why=failed[0].reason,
            )
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
        # A person decides about the limit because of which items haven't started.
        is_due = any(run.number is None for run in self.runs)
        request = self.context.limit_request(self.parent) if is_due else None
        self.is_waiting = request is not None
        for event in request or ():
            yield event

    def _due_runs(self) -> Iterator[StepRun]:
        """Yield runs to continue: no new ones without budget, none after one that waits."""
        for run in self.runs:
            if run.number is None and self.context.due_limit() is not None:
                continue
            yield run
            if run.is_waiting and not self.is_parallel:
                return
