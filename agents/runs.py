"""Start and stop runs. A run belongs to the server, not to a browser tab."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from django.db import IntegrityError, transaction

from agents import assembly, servers, trace
from agents.engine.errors import AgentError
from agents.engine.runtime import Events
from agents.engine.state import Message
from agents.engine.termination import StopReason
from agents.journal import Journal, Pages, RunIsOver
from agents.models import Agent, Run

logger = logging.getLogger(__name__)

STOP_WITHIN = 1.5
ADVICE = "Try again; if it happens again, tell your administrator."


class StillAnswering(Exception):
    """There is a run in this session already."""


class _Workshop:
    """The running tasks of this event loop, and the journal they write."""

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.journal = Journal()

    def leave(self, run: Run, task: asyncio.Task[None]) -> None:
        """The run may have gone on already, in another task."""
        if self.tasks.get(run.pk) is task:
            del self.tasks[run.pk]
            self.journal.forget(run)


_workshops: dict[asyncio.AbstractEventLoop, _Workshop] = {}


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
                owner=owner(),
            )
    except IntegrityError as error:
        raise StillAnswering from error


def launch(run: Run) -> None:
    """Set it going; whoever wants to see it watches its topic."""
    _set_going(run, assembly.begin)


def resume(run: Run) -> None:
    """Let it go on after a pause. Whoever calls this has claimed it, with `claim`."""
    _set_going(run, assembly.resume)


def claim(run: Run) -> bool:
    """Make a waiting run a running one, for this process; True for one caller only."""
    waiting = Run.objects.waiting().filter(pk=run.pk)
    return bool(waiting.update(status=Run.Status.RUNNING, owner=owner()))


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


async def wait(run: Run) -> None:
    """Come back when this run has ended."""
    if (task := _workshop().tasks.get(run.pk)) is not None:
        await asyncio.wait([task])


async def shut_down() -> None:
    """Stop everything that runs on this event loop; leave no thread and no program behind."""
    await _stop_all()
    await servers.shut_down()


async def _stop_all() -> None:
    workshop = _workshops.pop(asyncio.get_running_loop(), None)
    if workshop is None:
        return
    tasks = dict(workshop.tasks)
    for task in tasks.values():
        task.cancel("shutdown")
    if tasks:
        await asyncio.wait(tasks.values(), timeout=STOP_WITHIN)
        async for run in Run.objects.live().filter(pk__in=tasks):
            await _close(run, workshop.journal, trace.Ending(StopReason.INTERRUPTED))
    await workshop.journal.stop()


def close_abandoned() -> int:
    """Close the runs of processes that are gone; say how many. What waits goes on waiting."""
    ending = trace.Ending(StopReason.INTERRUPTED)
    running = Run.objects.filter(status=Run.Status.RUNNING)
    abandoned = [run for run in running if not _is_owned(run)]
    for run in abandoned:
        with transaction.atomic():
            trace.close(run.pk, ending)
    return len(abandoned)


def owner() -> str:
    return f"{os.getpid()}@{socket.gethostname()}"


def _set_going(run: Run, course: Callable[[Run], Awaitable[Events]]) -> None:
    workshop = _workshop()
    task = asyncio.create_task(_drive(run, course, workshop.journal))
    workshop.tasks[run.pk] = task
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
        interrupted = cancelled.args == ("shutdown",)
        reason = StopReason.INTERRUPTED if interrupted else StopReason.CANCELLED
        await _close(run, journal, trace.Ending(reason))
    except AgentError as error:
        await _close(run, journal, trace.Ending(StopReason.ERROR, str(error), error.advice))
    except RunIsOver:
        logger.info("Run %s went on after it was cut off.", run.pk)
    except Exception:
        logger.exception("Run %s failed.", run.pk)
        sentence = "Something went wrong on the server."
        await _close(run, journal, trace.Ending(StopReason.ERROR, sentence, ADVICE))
    finally:
        pages.leave()


async def _close(run: Run, journal: Journal, ending: trace.Ending) -> None:
    with suppress(RunIsOver):
        await journal.close(run, ending)


def _workshop() -> _Workshop:
    loop = asyncio.get_running_loop()
    if loop not in _workshops:
        _workshops[loop] = _Workshop()
    return _workshops[loop]


def _is_owned(run: Run) -> bool:
    pid, _, host = run.owner.partition("@")
    if host != socket.gethostname():
        return False  # a container that was replaced; one process serves an installation
    return pid != str(os.getpid()) and _is_alive(int(pid))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
