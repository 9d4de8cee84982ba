"""The executor drives the runs of one event loop, with their event writer and heartbeat."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial

from agents.db import database
from agents.engine import clock, fault_injection
from agents.engine.call_context import RunContext, use_run
from agents.engine.errors import AgentError, RunCancelled
from agents.engine.events import EventType
from agents.engine.loop import CallOutcome, Events, StopReason, record_outcomes
from agents.engine.sentences import Sentence as _
from agents.metering.budgets import payer_of, paying
from agents.models import Run

from . import clocks, event_store, leases
from .admission import Admission
from .event_writer import DATABASE_ERRORS, EventWriter, RunEventBuffer, RunIsOver
from .question_desk import QuestionDesk, RunQuestions, find_answers

logger = logging.getLogger(__name__)

EventSource = Callable[[Run], Awaitable[Events]]
FinishListener = Callable[[Run], Awaitable[None]]

STOP_TIMEOUT_SECONDS = 1.4
POLL_SECONDS = 0.4
HANDOVER = "handover"
SHUTDOWN = "shutdown"
LOST = "lost"
# Reasons to cancel a task without ending its run.
DETACH_REASONS = {(HANDOVER,), (SHUTDOWN,), (LOST,)}
ADVICE = _("Try again. If it happens again, contact your administrator.")


class RunExecutor:
    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.runs: dict[int, Run] = {}
        self.following: set[asyncio.Task[None]] = set()
        self.is_closing = False
        self.admission = Admission()
        self.event_writer = EventWriter()
        self.questions = QuestionDesk(partial(self.event_writer.ask, find_answers))
        self.heartbeat = asyncio.create_task(self._heartbeat_loop())

    def start(self, run: Run, source: EventSource) -> None:
        task = asyncio.create_task(
            self._drive(run, source), context=database.detached_context()
        )
        self.tasks[run.pk] = task
        self.runs[run.pk] = run
        task.add_done_callback(partial(self._on_done, run))

    async def cancel(self, run: Run) -> bool:
        """Cancel a run driven here; return False if it doesn't end in time."""
        task = self.tasks[run.pk]
        task.cancel()
        ended, _ = await asyncio.wait([task], timeout=STOP_TIMEOUT_SECONDS)
        return bool(ended)

    async def end_run(
        self, run: Run, ending: event_store.Ending, epoch: int | None = None
    ) -> None:
        with suppress(RunIsOver):
            await self.event_writer.close(run, ending, epoch)
        if run.pk not in self.tasks:
            self.event_writer.forget(run)

    def notify_in_background(self, run: Run) -> None:
        """Notify the followers of this run, in a task that a stop can't cancel."""
        if not self.is_closing:
            task = asyncio.create_task(
                notify_followers(run), context=database.detached_context()
            )
            self.following.add(task)
            task.add_done_callback(self.following.discard)

    async def refuse_new(self) -> None:
        """Start nothing new when a run ends from now on."""
        self.is_closing = True
        if self.following:
            await asyncio.wait(self.following)

    async def stop(self, grace: float, why: str) -> list[Run]:
        """Stop all runs; return those that didn't end within the grace period."""
        if self.tasks and grace:
            await asyncio.wait(self.tasks.values(), timeout=grace)
        unfinished = list(self.runs.values())
        tasks = [self.tasks[run.pk] for run in unfinished]
        for task in tasks:
            task.cancel(why)
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_TIMEOUT_SECONDS)
        if why == SHUTDOWN:
            # In any case: a task cancelled before its first step has done nothing.
            for run in unfinished:
                await self.end_run(run, event_store.Ending(StopReason.INTERRUPTED), run.epoch)
        self.heartbeat.cancel()
        await asyncio.wait([self.heartbeat])
        await self.event_writer.stop()
        return unfinished

    def _on_done(self, run: Run, task: asyncio.Task[None]) -> None:
        """Remove a finished task, unless the run already continues in another one."""
        if self.tasks.get(run.pk) is task:
            del self.tasks[run.pk], self.runs[run.pk]
            self.event_writer.forget(run)
            self.notify_in_background(run)

    async def _drive(self, run: Run, source: EventSource) -> None:
        if run.user_id is None:  # there is no one to ask
            context = RunContext(chat_id=run.topic)
        else:
            questions = RunQuestions(self.questions, run.pk)
            user_id = str(run.user_id)
            context = RunContext(user_id=user_id, chat_id=run.topic, questions=questions)
        with (
            record_outcomes() as outcomes,
            clock.use_clock(clocks.get_clock(run.pk)),
            use_run(context),
            paying(payer_of(run)),
        ):
            await self._run_to_end(run, source, outcomes)

    async def _run_to_end(
        self, run: Run, source: EventSource, outcomes: dict[int, CallOutcome]
    ) -> None:
        """Drive a run to its end; the one place that catches everything, so every run ends."""
        buffer = RunEventBuffer(self.event_writer, run)
        try:
            fault_injection.point("before_run_start")
            place = await self.admission.enter()
            try:
                async with aclosing(await source(run)) as events:
                    async for event in events:
                        if event.type is EventType.STEP_STARTED:
                            place.leave()
                        await buffer.write(event)
            finally:
                place.leave()
        except asyncio.CancelledError as cancelled:
            if cancelled.args not in DETACH_REASONS:
                ending = event_store.Ending(StopReason.CANCELLED, outcomes=outcomes)
                await self.end_run(run, ending, run.epoch)
        except RunCancelled as stopped:
            ending = event_store.Ending(StopReason.CANCELLED, str(stopped), "", outcomes)
            await self.end_run(run, ending, run.epoch)
        except AgentError as error:
            ending = event_store.Ending(StopReason.ERROR, str(error), error.advice, outcomes)
            await self.end_run(run, ending, run.epoch)
        except RunIsOver:
            logger.info("Run %s kept executing after it was closed.", run.pk)
        except DATABASE_ERRORS as error:
            # Nothing can be saved now; the run is recovered as abandoned later.
            logger.warning(
                "Run %s is paused until the database is available: %s", run.pk, error
            )
        except Exception:
            logger.exception("Run %s failed.", run.pk)
            sentence = _("Something went wrong on the server.")
            ending = event_store.Ending(StopReason.ERROR, sentence, ADVICE, outcomes)
            await self.end_run(run, ending, run.epoch)
        finally:
            buffer.leave()

    async def _heartbeat_loop(self) -> None:
        """Renew the leases, apply stop requests and deliver answers."""
        loop = asyncio.get_running_loop()
        next_beat = loop.time() + leases.HEARTBEAT_SECONDS
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                if loop.time() >= next_beat:
                    next_beat = loop.time() + leases.HEARTBEAT_SECONDS
                    await self.event_writer.ask(leases.renew, list(self.runs.values()))
                await self._apply_stop_requests()
                await self.questions.deliver()
            except Exception:  # whatever the error, without heartbeats every run is lost
                logger.exception("Can't save the heartbeat of the runs.")

    async def _apply_stop_requests(self) -> None:
        """Cancel the runs that should stop, once each."""
        if not (live_runs := dict(self.runs)):
            return
        to_stop, lost = await self.event_writer.ask(
            leases.stop_requests, list(live_runs.values())
        )
        for pk in to_stop | lost:
            # The run may have ended meanwhile, and even been resumed in another task.
            if self.runs.get(pk) is live_runs[pk] and not self.tasks[pk].cancelling():
                self.tasks[pk].cancel(*([LOST] if pk in lost else []))


followers: list[FinishListener] = []


async def notify_followers(run: Run) -> None:
    """Notify followers that this run has ended."""
    for follower in followers:
        try:
            await follower(run)
        except Exception:  # others are to be notified too
            logger.exception("Can't notify a follower of a run.")


_executors: dict[asyncio.AbstractEventLoop, RunExecutor] = {}


def current() -> RunExecutor:
    """Return the executor of this event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _executors:
        _executors[loop] = RunExecutor()
    return _executors[loop]


async def shut_down(grace: float, why: str) -> list[Run]:
    """Stop all runs on this event loop; return those that didn't end in time.

    The executor stays current until then, so runs that still start are stopped, too.
    """
    loop = asyncio.get_running_loop()
    if (executor := _executors.get(loop)) is None:
        return []
    await executor.refuse_new()
    unfinished = await executor.stop(grace, why)
    del _executors[loop]
    return unfinished


def active_count() -> int:
    """Return how many runs this process drives; thread-safe."""
    return sum(len(executor.tasks) for executor in list(_executors.values()))


def lag() -> float:
    """Return the longest wait for a commit since the last call; thread-safe."""
    return max(
        (executor.event_writer.lag() for executor in list(_executors.values())), default=0.0
    )
