import asyncio
import json
from uuid import uuid4

from django.core.management.base import BaseCommand, CommandError

from agents import live, runs
from agents.engine.errors import AgentError
from agents.engine.events import Event, Type
from agents.models import Agent, Run

ANSWERED = {"completed", "tool_failure_degraded"}


class Command(BaseCommand):
    help = "Asks an agent one question and prints its answer, or every event with --json."

    def add_arguments(self, parser) -> None:
        parser.add_argument("question")
        parser.add_argument("--agent", default="", help="its name; the default one if left out")
        parser.add_argument("--json", action="store_true", help="one event a line, as JSON")

    def handle(self, question: str, agent: str, **options) -> None:
        question = question.encode(errors="replace").decode().replace("\0", "").strip()
        if not question:
            raise CommandError("Ask something.")
        try:
            run = runs.prepare(query=question, topic=f"ask.{uuid4().hex}", agent=_agent(agent))
        except AgentError as error:
            raise CommandError(f"{error} {error.advice}") from error
        finished = asyncio.run(self._follow(run, options["json"]))
        if finished.data["stopped_reason"] not in ANSWERED:
            raise CommandError(finished.data["detail"] or finished.data["stopped_reason"])

    async def _follow(self, run: Run, as_json: bool) -> Event:
        try:
            runs.launch(run)
            async for row in live.events(run):
                if row is not None:
                    last = row.value
                    self._print(last, as_json)
        finally:
            await runs.shut_down()
        return last

    def _print(self, event: Event, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(event.to_dict(), ensure_ascii=False))
        elif event.type is Type.TOOL_CALL:
            function = event.data["function"]
            self.stderr.write(f"[{function['name']} {function['arguments']}]")
        elif event.type is Type.RUN_FINISHED:
            self.stdout.write(event.data["answer"])


def _agent(name: str) -> Agent | None:
    if not name:
        return None
    try:
        return Agent.objects.get(name=name, enabled=True)
    except Agent.DoesNotExist as error:
        known = ", ".join(Agent.objects.filter(enabled=True).values_list("name", flat=True))
        raise CommandError(f"There is no agent named {name!r}. Agents: {known}.") from error
