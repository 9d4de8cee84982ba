import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from unicodedata import east_asian_width

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents import runs
from agents.catalog.command_arguments import find_agent
from agents.db import database
from agents.engine.text import shorten
from agents.models import Agent
from agents.review import examples
from agents.review.examples import ExampleResult
from agents.review.models import Example

MAX_CELL_CHARS = 40


class Command(BaseCommand):
    help = (
        "Manages runs saved as examples. `run` asks their questions again with the current "
        "agents. Tool results come from the recording, so there are no side effects; a call "
        "that wasn't recorded fails and lowers the score. The score is the mean of two parts: "
        "how many tool calls have the same tool and arguments, and how similar the answers "
        "are (by words, in Japanese by characters). It is saved unless --agent or --model is "
        "given."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        run = actions.add_parser("run", help="ask again and compare the answers")
        run.add_argument(
            "names", nargs="*", metavar="name", help="examples to run (default: all)"
        )
        run.add_argument("--agent", default="", help="agent to use instead of the original one")
        run.add_argument("--model", default="", help="model to use instead of the agent's")
        run.add_argument("--json", action="store_true", help="print one JSON result per line")
        run.add_argument(
            "--fail-under",
            type=float,
            metavar="SCORE",
            help="exit with 1 if any score is lower, for example 0.8",
        )
        actions.add_parser("list", help="list the examples and their last scores")
        remove = actions.add_parser("remove", help="delete examples")
        remove.add_argument("names", nargs="+", metavar="name")

    def handle(self, action: str, **options: Any) -> None:
        if action == "list":
            self._list()
        elif action == "remove":
            self._remove(options["names"])
        else:
            self._run_examples(**options)

    def _list(self) -> None:
        rows = [
            (row.name, row.agent_name, _format_score(row.score), _format_time(row.scored_at))
            for row in Example.objects.all()
        ]
        self._print_table(("example", "agent", "score", "last run"), rows)

    def _remove(self, names: Sequence[str]) -> None:
        for example in _get_examples(names):
            example.delete()
            self.stdout.write(f"Removed {example.name!r}.")

    def _run_examples(
        self,
        names: Sequence[str],
        agent: str,
        model: str,
        fail_under: float | None,
        **options: Any,
    ) -> None:
        chosen = (
            _get_examples(names) if names else list(Example.objects.select_related("agent"))
        )
        if not chosen:
            raise CommandError("There are no examples yet. Save one from the trace of a run.")
        trials = asyncio.run(_evaluate_all(chosen, find_agent(agent), model))
        self._report(trials, as_json=options["json"])
        under = [t.name for t in trials if fail_under is not None and t.score < fail_under]
        if under:
            raise CommandError(f"Scores below {fail_under:g}: {', '.join(under)}.")

    def _report(self, trials: Sequence[ExampleResult], *, as_json: bool) -> None:
        if as_json:
            for trial in trials:
                row = asdict(trial) | {"score": trial.score}
                self.stdout.write(json.dumps(row, ensure_ascii=False))
            return
        self._print_table(
            ("example", "agent", "model", "calls", "answer", "score"),
            [
                (
                    t.name,
                    t.agent,
                    t.model,
                    _format_score(t.calls),
                    _format_score(t.likeness),
                    _format_score(t.score),
                )
                for t in trials
            ],
        )
        for line in _report_lines(trials):
            self.stdout.write(line)

    def _print_table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print columns at the width of their content, counting wide characters as two."""
        table = [head, *([shorten(cell, MAX_CELL_CHARS) for cell in row] for row in rows)]
        widths = [max(map(_display_width, column)) for column in zip(*table, strict=True)]
        for row in table:
            cells = zip(row, widths, strict=True)
            line = "  ".join(
                cell + " " * (width - _display_width(cell)) for cell, width in cells
            )
            self.stdout.write(line.rstrip())


async def _evaluate_all(
    chosen: Sequence[Example], agent: Agent | None, model: str
) -> list[ExampleResult]:
    try:
        return [await _evaluate(example, agent, model) for example in chosen]
    finally:
        await runs.shut_down(hand_over=False)


async def _evaluate(example: Example, agent: Agent | None, model: str) -> ExampleResult:
    agent_name = agent or example.agent
    if agent_name is None:
        gone = f"The agent {example.agent_name} was deleted. Choose one with --agent."
        return ExampleResult(
            name=example.name, agent=example.agent_name, model=model, problem=gone
        )
    trial = await examples.evaluate(example, agent_name, model)
    if agent is None and not model:
        await database.run(examples.save_score, example, trial.score)
    return trial


def _report_lines(trials: Sequence[ExampleResult]) -> Iterator[str]:
    """Yield details that the figures don't show."""
    for trial in trials:
        if trial.problem:
            yield f"{trial.name}: {trial.problem}"
        for call in trial.not_recorded:
            yield f"{trial.name}: not recorded: {call}"
    mean = sum(trial.score for trial in trials) / len(trials)
    yield f"Mean of {len(trials)}: {mean:.2f}"
    yield "Calls are compared by tool and arguments, answers by words (Japanese: characters)."


def _get_examples(names: Sequence[str]) -> list[Example]:
    found = {row.name: row for row in Example.objects.select_related("agent")}
    for name in names:
        if name not in found:
            raise CommandError(
                f"There is no example named {name!r}. See: manage.py examples list"
            )
    return [found[name] for name in names]


def _format_score(score: float | None) -> str:
    return "—" if score is None else f"{score:.2f}"


def _format_time(moment: datetime | None) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M}" if moment else "never"


def _display_width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
