"""Runs an example set on a server, and fails if its score is too low: for CI."""

import asyncio
import sys
from typing import Any

from agents.management.escapes import escape_line, json_line

from .errors import FAILED, UNUSABLE, CommandFailed
from .server import Server

POLL_SECONDS = 1.0
RUNNING = "running"


async def run_set(
    server: Server, name: str, *, agent: str, min_score: float | None, as_json: bool
) -> None:
    """Run a set to its end and print its results."""
    experiment = await server.start_experiment(await _find_set(server, name), agent)
    while experiment["state"] == RUNNING:
        await asyncio.sleep(POLL_SECONDS)
        experiment = await server.experiment(experiment["id"])
    results = await server.results(experiment["id"])
    if as_json:
        sys.stdout.write(json_line({**experiment, "results": results}) + "\n")
    else:
        _print(experiment, results)
    _judge(experiment, min_score)


async def _find_set(server: Server, name: str) -> int:
    sets = await server.example_sets()
    for example_set in sets:
        if example_set["name"] == name:
            return int(example_set["id"])
    names = ", ".join(sorted(each["name"] for each in sets)) or "none"
    raise CommandFailed(
        f"There is no example set named {name!r}. Available: {names}.", UNUSABLE
    )


def _print(experiment: dict[str, Any], results: list[dict[str, Any]]) -> None:
    for result in results:
        line = f"{result['state']:<9} {_score(result):>5}  {result['name']}"
        sys.stdout.write(escape_line(line) + "\n")
        for reason in result.get("reasons", ()):
            sys.stdout.write(f"{'':17}{escape_line(reason)}\n")
    cost = experiment.get("cost_usd")
    sys.stdout.write(
        f"{experiment['passed']} of {experiment['count']} passed, mean score "
        f"{_score(experiment)}{'' if cost is None else f', ${cost:.4f}'}\n"
    )


def _judge(experiment: dict[str, Any], min_score: float | None) -> None:
    """Raise CommandFailed unless the set has passed: 1 if it's too low, 2 if it didn't run."""
    if experiment["state"] != "done":
        why = experiment.get("problem") or "The experiment was canceled."
        raise CommandFailed(why, UNUSABLE)
    failed = experiment["count"] - experiment["passed"]
    score = experiment.get("score") or 0.0
    if min_score is None and failed:
        raise CommandFailed(f"{failed} of {experiment['count']} didn't pass.", FAILED)
    if min_score is not None and score < min_score:
        raise CommandFailed(f"The mean score {score:.2f} is below {min_score:g}.", FAILED)


def _score(row: dict[str, Any]) -> str:
    score = row.get("score")
    return "—" if score is None else f"{score:.2f}"
