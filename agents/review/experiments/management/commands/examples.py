"""Examples from the terminal: list, remove and run them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.catalog import agent_spec
from agents.catalog.tools.command_arguments import find_agent
from agents.models import Agent
from agents.review.experiments import service, terminal
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment, ExperimentResult
from agents.review.experiments.sources.sources import ChosenExamples
from agents.review.models import Example


class Command(BaseCommand):
    help = (
        "Manages runs saved as examples. `run` asks their questions again with the current "
        "agents and scores the answers, as `run_examples` does with a set. Tool results come "
        "from the recording, so there are no side effects; a call that wasn't recorded stops "
        "the example. The score is saved unless --agent or --model is given."
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
            for row in Example.objects.all():
                scored = "never"
                if row.scored_at:
                    scored = f"{timezone.localtime(row.scored_at):%Y-%m-%d %H:%M}"
                score = terminal.score_text(row.score)
                self.stdout.write(f"{score:>5}  {scored:<16}  {row.name} ({row.agent_name})")
        elif action == "remove":
            for example in _get_examples(options["names"]):
                example.delete()
                self.stdout.write(f"Removed {example.name!r}.")
        else:
            self._run_examples(**options)

    def _run_examples(
        self,
        names: Sequence[str],
        agent: str,
        model: str,
        fail_under: float | None,
        **options: Any,
    ) -> None:
        examples = _get_examples(names)
        if not examples:
            raise CommandError("There are no examples yet. Save one from the trace of a run.")
        chosen_agent = find_agent(agent)
        orphans = [example for example in examples if not (chosen_agent or example.agent)]
        for example in orphans:
            self.stderr.write(
                f"{example.name}: The agent {example.agent_name} was deleted. Choose one with "
                "--agent."
            )
        tested = [example for example in examples if example not in orphans]
        try:
            experiments = terminal.run_to_end(partial(_start, tested, chosen_agent, model))
        except ExperimentRejected as error:
            raise CommandError(str(error)) from error
        rows = ExperimentResult.objects.filter(experiment__in=experiments)
        results = list(rows.select_related("run"))
        if options["json"]:
            printed = [json.dumps(terminal.report(row), ensure_ascii=False) for row in results]
        else:
            mean = sum(row.score or 0.0 for row in results) / max(1, len(results))
            printed = [*terminal.lines(results), f"Mean of {len(results)}: {mean:.2f}"]
        for line in printed:
            self.stdout.write(line)
        under = [row.name for row in results if (row.score or 0.0) < (fail_under or 0.0)]
        if under:
            raise CommandError(f"Scores below {fail_under:g}: {', '.join(under)}.")


def _start(
    examples: Sequence[Example], chosen_agent: Agent | None, model: str
) -> list[Experiment]:
    """Start an experiment for each agent with its examples."""
    by_agent: dict[Agent, list[int]] = defaultdict(list)
    for example in examples:
        if (agent := chosen_agent or example.agent) is not None:
            by_agent[agent].append(example.pk)
    is_current = chosen_agent is None and not model
    target = Experiment.Target.PUBLISHED if is_current else Experiment.Target.DRAFT
    started = []
    for agent, pks in by_agent.items():
        spec = agent_spec.describe(agent) | ({"model": model} if model else {})
        options = service.Options(target=target, version=agent.version or None)
        source = ChosenExamples(examples=tuple(pks))
        started.append(service.start_examples(source, agent, spec, None, options))
    return started


def _get_examples(names: Sequence[str]) -> list[Example]:
    """Return the examples of these names, or all."""
    examples = {row.name: row for row in Example.objects.select_related("agent")}
    for name in names:
        if name not in examples:
            raise CommandError(
                f"There is no example named {name!r}. See: manage.py examples list"
            )
    return [examples[name] for name in names or examples]
