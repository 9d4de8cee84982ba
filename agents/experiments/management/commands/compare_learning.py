import asyncio
import json
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import runs
from agents.db import database
from agents.engine.errors import AgentError
from agents.experiments import learning_demo
from agents.experiments.errors import ExperimentRejected
from agents.experiments.learning_demo import Comparison
from agents.experiments.models import Experiment


class Command(BaseCommand):
    help = (
        "Shows what learning is worth: an agent of its own answers the training questions of "
        "the shipped set, its answers are corrected, and then it answers other questions, with "
        "the switch off and on. The agent, the set and both experiments stay in the console."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", default="demo", help="model to use (default: demo)")
        parser.add_argument(
            "--user", default="", help="account that asks (default: an administrator)"
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            comparison = asyncio.run(_compare(options["user"], options["model"]))
        except (AgentError, ExperimentRejected) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(_report(comparison), ensure_ascii=False))
        else:
            self._print(comparison)

    def _print(self, comparison: Comparison) -> None:
        on = {result.name: result for result in comparison.on.results.all()}
        self.stdout.write(f"{'off':>5} {'on':>5}  example")
        for result in comparison.off.results.all():
            other = on[result.name]
            self.stdout.write(f"{_score(result):>5} {_score(other):>5}  {result.name}")
        self.stdout.write(f"{_score(comparison.off):>5} {_score(comparison.on):>5}  mean score")
        self.stdout.write(
            f"{comparison.off.passed} of {comparison.off.count} passed without experiences, "
            f"{comparison.on.passed} with the {comparison.experiences} that were learned and "
            "approved."
        )


async def _compare(name: str, model: str) -> Comparison:
    try:
        user = await database.run(_find_user, name)
        return await learning_demo.compare(user, model)
    finally:
        await runs.shut_down(hand_over=False)


def _find_user(name: str) -> User:
    users = get_user_model()._default_manager.filter(is_active=True).order_by("pk")
    found = users.filter(username=name) if name else users.filter(is_superuser=True)
    if (user := found.first()) is None:
        raise CommandError(
            f"There is no account named {name!r}." if name else "Create an account first."
        )
    return user


def _score(scored: Any) -> str:
    return "—" if scored.score is None else f"{scored.score:.2f}"


def _report(comparison: Comparison) -> dict[str, Any]:
    return {
        "experiences": comparison.experiences,
        "off": _figures(comparison.off),
        "on": _figures(comparison.on),
    }


def _figures(experiment: Experiment) -> dict[str, Any]:
    names = ("score", "passed", "count")
    about = {name: getattr(experiment, name) for name in names}
    return {"experiment": experiment.pk, **about}
