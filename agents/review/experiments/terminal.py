"""Experiments from the terminal: runs them to their end, and prints their results."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agents import runs
from agents.db import database

from . import service
from .models import Experiment, ExperimentResult
from .scoring.checks import label

POLL_SECONDS = 0.2
INDENT = " " * 17


def run_to_end(start: Callable[[], Sequence[Experiment]]) -> list[Experiment]:
    """Start experiments, wait until they have ended and return them."""
    return asyncio.run(_run_to_end(start))


async def _run_to_end(start: Callable[[], Sequence[Experiment]]) -> list[Experiment]:
    try:
        pks = [experiment.pk for experiment in await database.run(start)]
        rows = Experiment.objects.filter(pk__in=pks)
        while running := [pk async for pk in rows.open().values_list("pk", flat=True)]:
            for pk in running:
                await service.advance(pk)
            await asyncio.sleep(POLL_SECONDS)
        return [experiment async for experiment in rows.order_by("pk")]
    finally:
        await runs.shut_down(hand_over=False)


def lines(results: Sequence[ExperimentResult]) -> Iterator[str]:
    """Yield what to print about results: their scores, and why they failed."""
    for result in results:
        yield f"{result.state:<9} {score_text(result.score):>5}  {result.name}"
        for check in result.checks:
            if not check["passed"]:
                detail = f" (found: {check['detail']})" if check["detail"] else ""
                yield f"{INDENT}{label(check['kind'])}: {check['value'][:80]}{detail}"
        if result.problem:
            yield f"{INDENT}{result.problem}"
        if result.state == ExperimentResult.State.DIVERGED and result.divergence:
            yield f"{INDENT}not recorded: {result.divergence['made']}"


def score_text(score: float | None) -> str:
    return "—" if score is None else f"{score:.2f}"


def report(result: ExperimentResult) -> dict[str, Any]:
    """Return a result as JSON data."""
    run = result.run
    return {
        "name": result.name,
        "state": result.state,
        "score": result.score,
        "checks": result.checks,
        "divergence": result.divergence,
        "problem": result.problem,
        "run": result.run_id,
        "model": run.model if run else "",
        "answer": run.answer if run else "",
        "tokens": run.total_tokens if run else 0,
        "steps": run.step_count if run else 0,
        "seconds": run.seconds if run else None,
    }
