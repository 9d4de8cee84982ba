"""Runs workflows of increasing size, and prints the cost per step."""

import asyncio
import json
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from asgiref.sync import sync_to_async  # noqa: E402

from agents import runs  # noqa: E402
from agents.engine.plans.definition.plan import ExecutionPlan, ExecutionStep  # noqa: E402
from agents.models import Run, Workflow  # noqa: E402

AT_ONCE = 100


def plan(steps: int) -> ExecutionPlan:
    """Return a plan with a first step, many parallel ones, and a last one after all."""
    middle = [f"step {n}" for n in range(steps - 2)]
    first = ExecutionStep("calculator", {"input": "6 * 7"}, name="first")
    many = [
        ExecutionStep(
            "calculator",
            {"input": "${steps.first.output} + " + str(n)},
            name=name,
            depends_on=("first",),
            parallel=True,
        )
        for n, name in enumerate(middle)
    ]
    last = ExecutionStep(
        "calculator", {"input": "1 + 1"}, name="last", depends_on=tuple(middle)
    )
    return ExecutionPlan(f"{steps} steps", (first, *many, last))


async def cost(steps: int) -> dict:
    run = await sync_to_async(_prepare_run)(steps)
    cpu, began = time.process_time(), time.monotonic()
    runs.launch(run)
    await runs.wait(run)
    spent, took = time.process_time() - cpu, time.monotonic() - began
    run = await Run.objects.aget(pk=run.pk)
    assert run.status == Run.Status.COMPLETED, run.detail
    figures = {"CPU ms a step": spent * 1000 / steps, "steps a second": steps / took}
    return {"steps": steps, "events": await run.events.acount()} | figures


def _prepare_run(steps: int) -> Run:
    workflow = Workflow.objects.create(name=f"{steps} steps {time.monotonic_ns()}")
    text = json.dumps({"name": workflow.name, **plan(steps).to_dict()})
    version = workflow.versions.create(number=1, text=text)
    return runs.prepare(query="Go.", topic=f"bench.{workflow.pk}", workflow=version)


async def main() -> None:
    await cost(10)  # one-time costs
    print(json.dumps([await cost(int(steps)) for steps in sys.argv[1:]]))
    await runs.shut_down()


if __name__ == "__main__":
    asyncio.run(main())
