"""Runs an example set from the terminal, for CI."""

import json
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.catalog.tools.command_arguments import find_agent
from agents.review.experiments import service, terminal
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment
from agents.review.experiments.scoring import targets
from agents.review.experiments.service import Options
from agents.review.models import ExampleSet

BELOW = 1
UNUSABLE = 2
REPORTED_FIELDS = ("state", "score", "passed", "count", "cost", "problem")


class Command(BaseCommand):
    help = (
        "Runs an example set and scores the answers, for CI. Exits with 0 if every example "
        "passed (or the score reaches --min-score), with 1 if not, and with 2 if the set "
        "couldn't be run. Tools answer from the recording unless --live is given; calls with "
        "side effects are never executed."
    )

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        # Django's own --version gives way to that of the agent.
        return super().create_parser(*args, **kwargs, conflict_handler="resolve")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("set", help="name of the example set")
        parser.add_argument("--agent", default="", help="agent to run (default: the set's)")
        version_group = parser.add_mutually_exclusive_group()
        version_group.add_argument(
            "--version", type=int, dest="number", help="an earlier version of the agent"
        )
        version_group.add_argument(
            "--draft", action="store_true", help="the agent's unpublished draft"
        )
        parser.add_argument("--live", action="store_true", help="execute tools that only read")
        parser.add_argument("--judge", default="", help="model for checks with a rubric")
        parser.add_argument(
            "--timeout",
            type=int,
            default=service.DEADLINE_SECONDS,
            help="seconds per example (default: %(default)s)",
        )
        parser.add_argument(
            "--min-score", type=float, metavar="SCORE", help="lowest mean score, e.g. 0.9"
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        [experiment] = terminal.run_to_end(partial(_start, options))
        results = list(experiment.results.select_related("run"))
        if options["json"]:
            report = {
                "experiment": experiment.pk,
                **{name: getattr(experiment, name) for name in REPORTED_FIELDS},
                "results": list(map(terminal.report, results)),
            }
            self.stdout.write(json.dumps(report, ensure_ascii=False))
        else:
            for line in terminal.lines(results):
                self.stdout.write(line)
            cost = "" if experiment.cost is None else f", ${experiment.cost:.4f}"
            mean = terminal.score_text(experiment.score)
            self.stdout.write(
                f"{experiment.passed} of {experiment.count} passed, mean score {mean}{cost}"
            )
        if experiment.state != Experiment.State.DONE:
            why = experiment.problem or "The experiment was canceled."
            raise CommandError(why, returncode=UNUSABLE)
        min_score = options["min_score"]
        failed = experiment.count - experiment.passed
        score = experiment.score or 0.0
        if min_score is None and failed:
            raise CommandError(f"{failed} of {experiment.count} didn't pass.", returncode=BELOW)
        if min_score is not None and score < min_score:
            raise CommandError(
                f"The mean score {score:.2f} is below {min_score:g}.", returncode=BELOW
            )


def _start(options: dict[str, Any]) -> list[Experiment]:
    example_set = ExampleSet.objects.filter(name=options["set"]).first()
    if example_set is None:
        names = ", ".join(ExampleSet.objects.values_list("name", flat=True)) or "none"
        raise CommandError(
            f"There is no example set named {options['set']!r}. Available: {names}.",
            returncode=UNUSABLE,
        )
    try:
        agent = find_agent(options["agent"]) or example_set.agent
    except CommandError as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error
    if agent is None:
        raise CommandError("Choose an agent with --agent.", returncode=UNUSABLE)
    try:
        if options["draft"]:
            target = Experiment.Target.DRAFT
            version = None
            spec = targets.draft(agent)
        elif options["number"] is not None:
            target = Experiment.Target.VERSION
            spec, version = targets.version(agent, options["number"])
        else:
            target = Experiment.Target.PUBLISHED
            spec, version = targets.published(agent)
        experiment_options = Options(
            target=target,
            version=version,
            is_live=options["live"],
            judge_model=options["judge"],
            deadline=options["timeout"],
        )
        return [service.start_examples(example_set, agent, spec, None, experiment_options)]
    except ExperimentRejected as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error
