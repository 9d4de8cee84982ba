"""Workflows in a terminal: start and follow one, or validate a text."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError, CommandParser

from agents.engine.errors import AgentError
from agents.engine.plans import read_definition
from agents.management.commands import ask
from agents.management.run_printer import EXIT_WAITING
from agents.models import Run, Workflow
from agents.web.workflows import resources, start


class Command(ask.Command):
    help = (
        "Runs a workflow and prints its answer, or checks a definition. As with ask, a run "
        "that requires approval stays paused without a terminal, and the command exits with "
        f"{EXIT_WAITING}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        run = commands.add_parser("run", help="run a workflow")
        run.add_argument("name")
        run.add_argument("--param", action="append", default=[], metavar="KEY=VALUE")
        run.add_argument("--json", action="store_true", help="print one JSON event per line")
        check = commands.add_parser("check", help="check a definition for errors")
        check.add_argument("file", help="YAML or JSON file; - reads stdin")

    def handle(  # type: ignore[override]  # other arguments than ask
        self, command: str, **options: Any
    ) -> None:
        if command == "check":
            self._check(options["file"])
        else:
            self.open_printer(as_json=options["json"])
            self.run_to_end(_prepare_run(options["name"], options["param"]))

    def _check(self, file: str) -> None:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"Can't read {file}: {error}") from error
        definition = read_definition(text)
        available = resources.available()
        missing = available.find_missing(definition.plan)
        for problem in [*definition.problems, *map(definition.locate, missing)]:
            self.stdout.write(f"{file}:{problem.line}:{problem.column}: {problem.message}")
        if definition.problems:
            raise CommandError("The definition has errors.")
        if missing:
            kinds = [
                f"the {kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"
                for kind, names in available.missing_names(definition.plan).items()
            ]
            if kinds:
                reason = f"{' and '.join(kinds)} must be added or enabled first."
            else:
                reason = "its arguments don't match the tools. Fix them first."
            raise CommandError(f"The workflow can't run here: {reason}")
        count = len(list(definition.plan.walk()))
        steps = f"{count} step{'' if count == 1 else 's'}"
        self.stdout.write(f"{definition.name}: {steps}, no errors.")


def _prepare_run(name: str, assignments: Iterable[str]) -> Run:
    pairs = [text.partition("=") for text in assignments]
    if unclear := [key for key, separator, _value in pairs if not separator]:
        raise CommandError(f"--param must be KEY=VALUE, not {unclear[0]!r}.")
    try:
        workflow = start.find_workflow(name, Workflow.objects.filter(enabled=True))
        request = start.build_request(workflow, {key: value for key, _sign, value in pairs})
        return start.prepare_run(request, None, f"workflow.{uuid4().hex}")
    except start.WorkflowNotStarted as error:
        raise CommandError(error) from error
    except AgentError as error:
        raise CommandError(f"{error} {error.advice}") from error
