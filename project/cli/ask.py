"""Asks an agent of a server, and prints its answer as it is written."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Self

from agents.management import run_printer
from agents.management.run_printer import RunPrinter, WireEvent

from .errors import FAILED, STOPPED, WAITING, CommandFailed
from .server import Server


async def ask(
    server: Server, printer: RunPrinter, text: str, *, agent: str = "", chat: int | None = None
) -> None:
    """Send a message and follow its run to the end."""
    async with _Interrupts(server) as interrupts:
        chat, run = await server.send(text, agent, chat)
        if not (printer.as_json or printer.is_quiet):
            printer.note(f"Chat {chat} · run {run}")
        await _follow(server, printer, run, interrupts)


async def resume(server: Server, printer: RunPrinter, run: int) -> None:
    """Follow a run from its beginning, and decide what it waits for."""
    async with _Interrupts(server) as interrupts:
        await _follow(server, printer, run, interrupts)


class _Interrupts:
    """Stops the run on Ctrl-C; a second one leaves at once."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.loop = asyncio.get_running_loop()
        self.run: int | None = None
        self.is_stopping = False
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.loop.add_signal_handler(signal.SIGINT, self._interrupt)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.loop.remove_signal_handler(signal.SIGINT)
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)

    def watch(self, run: int) -> None:
        self.run = run
        if self.is_stopping:  # before its number was known
            self._stop(run)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let Ctrl-C reach a prompt."""
        self.loop.remove_signal_handler(signal.SIGINT)
        yield
        self.loop.add_signal_handler(signal.SIGINT, self._interrupt)

    def _interrupt(self) -> None:
        self.loop.remove_signal_handler(signal.SIGINT)
        sys.stderr.write("\nStopping… Press Ctrl-C again to leave at once.\n")
        self.is_stopping = True
        if self.run is not None:
            self._stop(self.run)

    def _stop(self, run: int) -> None:
        self.task = self.loop.create_task(self.server.stop(run))


async def _follow(
    server: Server, printer: RunPrinter, run: int, interrupts: _Interrupts
) -> None:
    interrupts.watch(run)
    after = 0
    while (last := await _print_events(server, printer, run, after))["type"] == "run_paused":
        after = last["seq"]
        await _decide(server, printer, run, interrupts)
    if reason := run_printer.failure_of(last):
        is_stopped = last["data"]["stopped_reason"] == "cancelled"
        raise CommandFailed(reason, STOPPED if is_stopped else FAILED)


async def _print_events(server: Server, printer: RunPrinter, run: int, after: int) -> WireEvent:
    """Print events; return the last one, an end or a pause."""
    async with aclosing(server.events(run, after)) as events:
        async for event in events:
            printer.print(event)
            if event["type"] in {"run_finished", "run_paused"}:
                return event
    raise CommandFailed("The stream ended before the run. Does your key still work?")


async def _decide(
    server: Server, printer: RunPrinter, run: int, interrupts: _Interrupts
) -> None:
    approvals = await server.approvals(run)
    if not approvals:
        printer.note("Waiting for another user’s decision…")
    for approval in approvals:
        with interrupts.suspended():
            reply = run_printer.read_reply(printer, approval.prompt)
        if reply is None:
            raise CommandFailed(
                f"Run {run} is waiting for approval: {server.url}/traces/{run}/\n"
                f"Resume it with: ashiato ask --resume {run}",
                WAITING,
            )
        await server.decide(approval, reply)
