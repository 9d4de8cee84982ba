import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from uuid import uuid4

from django.core.management.base import CommandError

from agents import runs
from agents.engine.errors import AgentError
from agents.engine.events import Event, Type
from agents.management.terminal import TerminalCommand, visible_line
from agents.models import Agent, Approval, Run
from agents.runs import approvals, event_store, pubsub
from agents.runs.approvals import AtTerminal, NotDecided, Word

ANSWERED = {"completed", "tool_failure_degraded"}
WAITS = 3

Words = Sequence[tuple[int, Word]]


ALLOW = "Allow it? [y/N]"
AGAIN = "Make it again, or was it done? [again/done]"


class Command(TerminalCommand):
    help = (
        "Asks an agent one question and prints its answer, or every event with --json. At a "
        "terminal it asks before a call that needs your word; elsewhere it leaves the run "
        f"waiting and exits with {WAITS}."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("question", nargs="?", default="")
        parser.add_argument("--agent", default="", help="its name; the default one if left out")
        parser.add_argument("--json", action="store_true", help="one event a line, as JSON")
        parser.add_argument(
            "--resume", type=int, metavar="RUN", help="go on with a run that was left waiting"
        )

    def handle(self, question: str, agent: str, resume: int | None, **options) -> None:
        self.as_json = options["json"]
        question = question.encode(errors="replace").decode().replace("\0", "").strip()
        if bool(question) == (resume is not None):
            raise CommandError("Ask something, or name a run to go on with.")
        run = _prepared(question, agent) if resume is None else _left_waiting(resume)
        self.see_to_its_end(run)

    def see_to_its_end(self, run: Run) -> None:
        last = self._go_on(run) if run.is_waiting else asyncio.run(self._begin(run))
        while last.type is Type.RUN_PAUSED:
            last = self._go_on(run)
        if last.data["stopped_reason"] not in ANSWERED:
            raise CommandError(last.data["detail"] or last.data["stopped_reason"])

    async def _begin(self, run: Run) -> Event:
        try:
            runs.launch(run)
            return await self._follow(run)
        finally:
            await runs.shut_down(hand_over=False)

    def _go_on(self, run: Run) -> Event:
        """Ask about what waits, outside of the event loop: a prompt would hold it up."""
        words = [(call.pk, self._word(call)) for call in run.approvals.waiting()]
        try:
            return asyncio.run(self._decide(run, words, event_store.last_seq(run)))
        except NotDecided as error:
            raise CommandError(error) from error

    async def _decide(self, run: Run, words: Words, after: int) -> Event:
        try:
            for pk, word in words:
                await approvals.decide(AtTerminal(), pk, word)
            return await self._follow(run, after)
        finally:
            await runs.shut_down(hand_over=False)

    async def _follow(self, run: Run, after: int = 0) -> Event:
        """Print what happens; gives the last of it, be it an end or a pause."""
        async with aclosing(pubsub.events(run, after)) as rows:
            async for row in rows:
                if row is not None:
                    last = row.value
                    self._print(last)
                    if last.type is Type.RUN_PAUSED:
                        break
        await runs.wait(run)
        return last

    def _word(self, call: Approval) -> Word:
        if not (sys.stdin and sys.stdin.isatty()):
            raise _waits(call.run_id)
        asks = f"{call.agent_name} wants to use {call.tool} {call.arguments}"
        question = AGAIN if call.is_unknown else ALLOW
        self._tell(f"{visible_line(asks)}\n{call.get_why_display()} {question} ", ending="")
        self.stderr.flush()
        try:
            said = sys.stdin.readline()
        except KeyboardInterrupt:
            said = ""
        word = said.strip().lower()
        # Of a call that may have been made, silence says nothing.
        if not said or (call.is_unknown and word not in {"again", "done"}):
            raise _waits(call.run_id)
        return Word(digest=call.digest, is_approved=word in {"y", "yes", "again"})

    def _print(self, event: Event) -> None:
        if self.as_json:
            self.stdout.write_json(event.to_dict())
        elif event.type is Type.TOOL_CALL:
            who = f"{event.agent}: " if "parent" in event.data else ""
            function = event.data["function"]
            self._tell(
                f"[{who}{visible_line(function['name'])} {visible_line(function['arguments'])}]"
            )
        elif event.type is Type.RUN_FINISHED:
            self.stdout.write(event.data["answer"])

    def _tell(self, text: str, ending: str = "\n") -> None:
        """Beside the answer, and not in the colour of an error."""
        self.stderr.write(text, style_func=str, ending=ending)


def _prepared(question: str, agent: str) -> Run:
    try:
        return runs.prepare(query=question, topic=f"ask.{uuid4().hex}", agent=_agent(agent))
    except AgentError as error:
        raise CommandError(f"{error} {error.advice}") from error


def _left_waiting(number: int) -> Run:
    try:
        return Run.objects.waiting().get(pk=number, user=None)
    except Run.DoesNotExist as error:
        raise CommandError(f"No run {number} was left waiting by this command.") from error


def _waits(run: int) -> CommandError:
    sentence = f"Run {run} waits for your word. Give it: manage.py ask --resume {run}"
    return CommandError(sentence, returncode=WAITS)


def _agent(name: str) -> Agent | None:
    if not name:
        return None
    try:
        return Agent.objects.get(name=name, enabled=True)
    except Agent.DoesNotExist as error:
        known = ", ".join(Agent.objects.filter(enabled=True).values_list("name", flat=True))
        raise CommandError(f"There is no agent named {name!r}. Agents: {known}.") from error
