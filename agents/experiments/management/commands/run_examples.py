import asyncio
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import runs
from agents.catalog.agent_spec import AgentSpec
from agents.catalog.command_arguments import find_agent
from agents.db import database
from agents.experiments import service, targets
from agents.experiments.checks import label
from agents.experiments.errors import ExperimentRejected
from agents.experiments.models import Experiment, ExperimentResult
from agents.experiments.service import Options
from agents.models import Agent
from agents.review.models import ExampleSet

BELOW, UNUSABLE = 1, 2
POLL_SECONDS = 0.2


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
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--version", type=int, dest="number", help="an earlier version of the agent"
        )
        which.add_argument("--draft", action="store_true", help="the agent's unpublished draft")
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
        experiment = asyncio.run(self._run(options))
        results = list(experiment.results.select_related("run"))
        if options["json"]:
            self.stdout.write(json.dumps(_report(experiment, results), ensure_ascii=False))
        else:
            self._print(experiment, results)
        if experiment.state != Experiment.State.DONE:
            why = experiment.problem or "The experiment was canceled."
            raise CommandError(why, returncode=UNUSABLE)
        if not _is_passed(experiment, options["min_score"]):
            raise CommandError(_below(experiment, options["min_score"]), returncode=BELOW)

    async def _run(self, options: dict[str, Any]) -> Experiment:
        try:
            pk = await database.run(_start, options)
            while await Experiment.objects.open().filter(pk=pk).aexists():
                await service.advance(pk)
                await asyncio.sleep(POLL_SECONDS)
            return await Experiment.objects.aget(pk=pk)
        finally:
            await runs.shut_down(hand_over=False)

    def _print(self, experiment: Experiment, results: list[ExperimentResult]) -> None:
        for result in results:
            score = "—" if result.score is None else f"{result.score:.2f}"
            self.stdout.write(f"{result.state:<9} {score:>5}  {result.name}")
            for check in result.checks:
                if not check["passed"]:
                    about = f"{label(check['kind'])}: {check['value'][:80]}"
                    found = f" (found: {check['detail']})" if check["detail"] else ""
                    self.stdout.write(f"                 {about}{found}")
            if result.problem:
                self.stdout.write(f"                 {result.problem}")
            if result.state == ExperimentResult.State.DIVERGED and result.divergence:
                self.stdout.write(f"                 not recorded: {result.divergence['made']}")
        cost = "" if experiment.cost is None else f", ${experiment.cost:.4f}"
        mean = "—" if experiment.score is None else f"{experiment.score:.2f}"
        self.stdout.write(
            f"{experiment.passed} of {experiment.count} passed, mean score {mean}{cost}"
        )


def _start(options: dict[str, Any]) -> int:
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
        target, number, spec = _target(agent, options)
        experiment_options = Options(
            target=target,
            version=number,
            is_live=options["live"],
            judge_model=options["judge"],
            deadline=options["timeout"],
        )
        return service.start_examples(example_set, agent, spec, None, experiment_options).pk
    except ExperimentRejected as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error


def _target(agent: Agent, options: dict[str, Any]) -> tuple[str, int | None, AgentSpec]:
    if options["draft"]:
        return Experiment.Target.DRAFT, None, targets.draft(agent)
    if options["number"] is not None:
        spec, number = targets.version(agent, options["number"])
        return Experiment.Target.VERSION, number, spec
    spec, current = targets.published(agent)
    return Experiment.Target.PUBLISHED, current, spec


def _is_passed(experiment: Experiment, min_score: float | None) -> bool:
    if min_score is None:
        return experiment.passed == experiment.count
    return (experiment.score or 0.0) >= min_score


def _below(experiment: Experiment, min_score: float | None) -> str:
    if min_score is None:
        return f"{experiment.count - experiment.passed} of {experiment.count} didn't pass."
    return f"The mean score {experiment.score or 0.0:.2f} is below {min_score:g}."


def _report(experiment: Experiment, results: list[ExperimentResult]) -> dict[str, Any]:
    names = ("state", "score", "passed", "count", "cost", "problem")
    rows = [
        {
            "name": result.name,
            "state": result.state,
            "score": result.score,
            "checks": result.checks,
            "divergence": result.divergence,
            "problem": result.problem,
            "run": result.run_id,
            "answer": result.run.answer if result.run else "",
            "tokens": result.run.total_tokens if result.run else 0,
            "steps": result.run.step_count if result.run else 0,
            "seconds": result.run.seconds if result.run else None,
        }
        for result in results
    ]
    about = {name: getattr(experiment, name) for name in names}
    return {"experiment": experiment.pk, **about, "results": rows}
