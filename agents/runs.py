"""Start and stop runs. A run belongs to the server, not to a browser tab."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from channels.db import database_sync_to_async
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from agents import assembly, leases, servers, trace
from agents.engine.errors import AgentError
from agents.engine.runtime import Events
from agents.engine.state import Message
from agents.engine.termination import StopReason
from agents.journal import Journal, Pages, RunIsOver
from agents.llm import connection
from agents.models import Agent, Run

logger = logging.getLogger(__name__)

STOP_WITHIN = 1.5
HANDOVER, SHUTDOWN = "handover", "shutdown"
ADVICE = "Try again; if it happens again, tell your administrator."


Follower = Callable[[Run | None], Awaitable[None]]
_followers: list[Follower] = []


class StillAnswering(Exception):
    """There is a run in this session already."""


class _Workshop:
    """The running tasks of this event loop, the journal they write, and their heartbeat."""

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.runs: dict[int, Run] = {}
        self.followers: set[asyncio.Task[None]] = set()
        self.is_closing = False
        self.journal = Journal()
        self.pulse = asyncio.create_task(self._beat())

    def leave(self, run: Run, task: asyncio.Task[None]) -> None:
        """The run may have gone on already, in another task."""
        if self.tasks.get(run.pk) is task:
            del self.tasks[run.pk], self.runs[run.pk]
            self.journal.forget(run)
            self.go_on(run)

    def go_on(self, run: Run) -> None:
        """Let whoever waits for this run know, in a task that no Stop cuts off."""
        if not self.is_closing:
            task = asyncio.create_task(_follow(run))
            self.followers.add(task)
            task.add_done_callback(self.followers.discard)

    async def close(self) -> None:
        """From now on nothing begins because something else is over."""
        self.is_closing = True
        if self.followers:
            await asyncio.wait(self.followers)

    async def stop(self) -> None:
        self.pulse.cancel()
        await asyncio.wait([self.pulse])
        await self.journal.stop()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(leases.BEAT)
            try:
                await self.journal.renew(self.runs.values())
            except Exception:  # whatever it was, a heart that stops loses every run
                logger.exception("The heartbeat of the runs could not be written.")


_workshops: dict[asyncio.AbstractEventLoop, _Workshop] = {}


def when_over(follower: Follower) -> None:
    """Have this called with every run that is over, and with None at every look around."""
    _followers.append(follower)


def prepare(
    *,
    query: str,
    topic: str,
    user: Any = None,
    agent: Agent | None = None,
    history: list[Message] | None = None,
) -> Run:
    """A new run, as a row; raises StillAnswering while another one lives on the topic."""
    agent = agent or assembly.default_agent()
    try:
        with transaction.atomic():
            return Run.objects.create(
                query=query,
                history=history or [],
                topic=topic,
                user=user,
                agent=agent,
                agent_name=agent.name,
                model=assembly.model_name(agent),
                dialect=agent.dialect,
                max_steps=agent.max_steps,
                owner=leases.owner(),
                heartbeat_at=Now(),
            )
    except IntegrityError as error:
        raise StillAnswering from error


def launch(run: Run) -> None:
    """Set it going; whoever wants to see it watches its topic."""
    _set_going(run, assembly.begin)


def resume(run: Run) -> None:
    """Let it go on from its events. Whoever calls this holds its lease."""
    _set_going(run, assembly.resume)


async def stop(run: Run) -> None:
    """End it now, in the model's stream or inside a tool; come back when it has ended."""
    workshop = _workshop()
    if (task := workshop.tasks.get(run.pk)) is not None:
        task.cancel()
        _, going_on = await asyncio.wait([task], timeout=STOP_WITHIN)
        if going_on:
            logger.warning("Run %s does not let itself be stopped; it is cut off.", run.pk)
    # In any case: a task that was cancelled before its first step has closed nothing.
    await _close(run, workshop.journal, trace.Ending(StopReason.CANCELLED))
    if run.pk not in workshop.tasks:
        workshop.journal.forget(run)
    workshop.go_on(run)


async def wait(run: Run) -> None:
    """Come back when this run has ended."""
    if (task := _workshop().tasks.get(run.pk)) is not None:
        await asyncio.wait([task])


async def tend() -> None:
    """Take over what nobody drives any more, for as long as the server runs."""
    while True:
        try:
            await take_over()
        except Exception:  # whatever it was, the next look may find what this one did not
            logger.exception("Abandoned runs could not be looked for.")
        await _follow(None)
        await asyncio.sleep(leases.BEAT)


async def take_over() -> int:
    """Go on with the runs that were left behind; say how many."""
    mine = _workshop().tasks
    left = await database_sync_to_async(_left_behind)(set(mine))
    for run in left:
        resume(run)
    return len(left)


def _left_behind(mine: set[int]) -> list[Run]:
    taken = []
    for run in leases.abandoned():
        if run.pk in mine:
            continue
        # One that was left in good order is no danger, however often that was.
        if run.heartbeat_at is not None and run.takeovers >= leases.MOST_TAKEOVERS:
            with transaction.atomic():
                trace.close(run.pk, trace.Ending(StopReason.INTERRUPTED), run.epoch)
        elif (ours := leases.take(run)) is not None:
            taken.append(ours)
    return taken


async def shut_down(grace: float = 0, *, hand_over: bool = True) -> None:
    """Stop everything that runs on this event loop; leave no thread and no program behind.

    What does not end within the grace is left to whoever comes next, or closed.
    """
    await _stop_all(grace, HANDOVER if hand_over else SHUTDOWN)
    await servers.shut_down()
    await connection.close()


async def _stop_all(grace: float, why: str) -> None:
    loop = asyncio.get_running_loop()
    if (workshop := _workshops.get(loop)) is None:
        return
    await workshop.close()
    if workshop.tasks and grace:
        await asyncio.wait(workshop.tasks.values(), timeout=grace)
    del _workshops[loop]
    left = [(workshop.runs[pk], task) for pk, task in workshop.tasks.items()]
    for _, task in left:
        task.cancel(why)
    if left:
        await asyncio.wait([task for _, task in left], timeout=STOP_WITHIN)
    if why == SHUTDOWN:
        for run, _ in left:
            # In any case: a task that was cancelled before its first step has done nothing.
            await _close(run, workshop.journal, trace.Ending(StopReason.INTERRUPTED), run.epoch)
    await workshop.stop()
    for run, _ in left:
        # Now that all is written: whoever takes it over starts from what is there.
        await database_sync_to_async(leases.release)(run)


def _set_going(run: Run, course: Callable[[Run], Awaitable[Events]]) -> None:
    workshop = _workshop()
    task = asyncio.create_task(_drive(run, course, workshop.journal))
    workshop.tasks[run.pk], workshop.runs[run.pk] = task, run
    task.add_done_callback(lambda task: workshop.leave(run, task))


async def _drive(
    run: Run, course: Callable[[Run], Awaitable[Events]], journal: Journal
) -> None:
    """The one place that may catch everything: whatever happens, the run gets an end."""
    pages = Pages(journal, run)
    try:
        async with aclosing(await course(run)) as events:
            async for event in events:
                await pages.write(event)
    except asyncio.CancelledError as cancelled:
        if cancelled.args not in {(HANDOVER,), (SHUTDOWN,)}:
            await _close(run, journal, trace.Ending(StopReason.CANCELLED))
    except AgentError as error:
        ending = trace.Ending(StopReason.ERROR, str(error), error.advice)
        await _close(run, journal, ending, run.epoch)
    except RunIsOver:
        logger.info("Run %s went on after it was cut off.", run.pk)
    except Exception:
        logger.exception("Run %s failed.", run.pk)
        sentence = "Something went wrong on the server."
        await _close(run, journal, trace.Ending(StopReason.ERROR, sentence, ADVICE), run.epoch)
    finally:
        pages.leave()


async def _close(
    run: Run, journal: Journal, ending: trace.Ending, epoch: int | None = None
) -> None:
    with suppress(RunIsOver):
        await journal.close(run, ending, epoch)


async def _follow(run: Run | None) -> None:
    for follower in _followers:
        try:
            await follower(run)
        except Exception:  # whatever it was, the next look around tries again
            logger.exception("What waits for a run could not go on.")


def _workshop() -> _Workshop:
    loop = asyncio.get_running_loop()
    if loop not in _workshops:
        _workshops[loop] = _Workshop()
    return _workshops[loop]
