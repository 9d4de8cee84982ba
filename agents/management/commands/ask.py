"""Asks an agent one question in a terminal, or continues a run that waits for approval."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError, CommandParser

from agents import runs
from agents.catalog.tools.command_arguments import find_agent
from agents.db.sanitize import sanitize_text
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType
from agents.management import run_printer
from agents.management.run_printer import EXIT_WAITING, Request, RunPrinter
from agents.management.terminal import TerminalCommand
from agents.models import Approval, Run
from agents.runs import approvals, event_store, pubsub
from agents.runs.approvals import Decision, DecisionRejected, TerminalApprover

Decisions = Sequence[tuple[int, Decision]]


class Command(TerminalCommand):
    help = (
        "Asks an agent one question and prints the answer, or every event with --json. In a "
        "terminal, it prompts you to approve tool calls that require approval. Without a "
        f"terminal, the run stays paused and the command exits with {EXIT_WAITING}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question", nargs="?", default="")
        parser.add_argument(
            "--agent", default="", help="agent name (default: the default agent)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON event per line")
        parser.add_argument(
            "-q", "--quiet", action="store_true", help="print the answer without the steps"
        )
        parser.add_argument(
            "--resume",
            type=int,
            metavar="RUN",
            help="resume a run that is waiting for approval",
        )

    def handle(self, question: str, agent: str, resume: int | None, **options: Any) -> None:
        self.open_printer(as_json=options["json"], is_quiet=options["quiet"])
        question = sanitize_text(question).strip()
        if bool(question) == (resume is not None):
            raise CommandError("Enter either a question or --resume RUN.")
        try:
            if resume is None:
                run = runs.prepare(
                    query=question, topic=f"ask.{uuid4().hex}", agent=find_agent(agent)
                )
            else:
                run = Run.objects.waiting().get(pk=resume, user=None)
        except AgentError as error:
            raise CommandError(f"{error} {error.advice}") from error
        except Run.DoesNotExist as error:
            raise CommandError(
                f"Run {resume} isn't waiting, or wasn't started here."
            ) from error
        self.run_to_end(run)

    def open_printer(self, *, as_json: bool, is_quiet: bool = False) -> None:
        streams = self.stdout.stream, self.stderr.stream
        self.printer = RunPrinter(*streams, as_json=as_json, is_quiet=is_quiet)

    def run_to_end(self, run: Run) -> None:
        last = self._resume(run) if run.is_waiting else asyncio.run(self._start(run))
        while last.type is EventType.RUN_PAUSED:
            last = self._resume(run)
        if reason := run_printer.failure_of(last.to_dict()):
            raise CommandError(reason)

    async def _start(self, run: Run) -> Event:
        try:
            runs.launch(run)
            return await self._follow(run)
        finally:
            await runs.shut_down(hand_over=False)

    def _resume(self, run: Run) -> Event:
        """Ask for decisions outside of the event loop, which a prompt would block."""
        decisions = [(call.pk, self._prompt_decision(call)) for call in run.approvals.waiting()]
        try:
            return asyncio.run(self._decide(run, decisions, event_store.last_seq(run)))
        except DecisionRejected as error:
            raise CommandError(error) from error

    async def _decide(self, run: Run, decisions: Decisions, last_seq: int) -> Event:
        try:
            for pk, decision in decisions:
                await approvals.decide(TerminalApprover(), pk, decision)
            return await self._follow(run, last_seq)
        finally:
            await runs.shut_down(hand_over=False)

    async def _follow(self, run: Run, last_seq: int = 0) -> Event:
        """Print events; return the last one, an end or a pause."""
        async with aclosing(pubsub.events(run, last_seq)) as rows:
            async for row in rows:
                if row is not None:
                    last = row.value
                    self.printer.print(last.to_dict())
                    if last.type is EventType.RUN_PAUSED:
                        break
        await runs.wait(run)
        return last

    def _prompt_decision(self, call: Approval) -> Decision:
        request = Request(
            agent=call.agent_name,
            tool=call.tool,
            arguments=call.arguments,
            why=call.why,
            explanation=call.get_why_display(),
        )
        reply = run_printer.read_reply(self.printer, request)
        if reply is None:
            raise self._waiting_error(call.run_id)
        return Decision(digest=call.digest, is_approved=reply.is_approved, reason=reply.text)

    def _waiting_error(self, run: int) -> CommandError:
        resume = f"{self.program} ask --resume {run}"
        sentence = f"Run {run} is waiting for approval. Resume it with: {resume}"
        return CommandError(sentence, returncode=EXIT_WAITING)
