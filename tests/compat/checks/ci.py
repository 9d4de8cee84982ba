"""The package, and the workflow for GitHub Actions: its steps, as a runner runs them."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tests.bench.processes import clean_environment
from tests.compat.packages import ROOT, python_programs, version
from tests.compat.rows import row
from tests.compat.served import Served, example, serve
from tests.compat.suite import run_tests

WAYS_IN = "Ways in"
PAGE = "command-line.md"
SERVER = "https://chat.example.org"
SECRET = re.compile(r"\$\{\{ *secrets\.ASHIATO_API_KEY *\}\}")
INSTALLS_UV = "astral-sh/setup-uv@"
RUN_SECONDS = 600
# The set of the workflow: a run, saved as an example with a check.
MAKE_SET = """
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from agents.models import Agent, Run
from agents.review.annotations import examples
from agents.review.models import ExampleSet
call_command("ask", "What is 6 * 7?", agent="helper")
user = get_user_model().objects.get(username="demo")
agent = Agent.objects.get(name="helper")
example_set = ExampleSet.objects.create(name="Regression", agent=agent)
example = examples.save(user, Run.objects.get(), "Six times seven", "", str(example_set.pk))
example.checks = [{{"kind": "contains", "value": "{expected}"}}]
example.save()
"""


@row(
    WAYS_IN,
    "GitHub Actions",
    version("uv"),
    real="the job's commands in a shell with its variables, uvx, a wheel built here",
    played="the runner and its action setup-uv, the package index, the demo model",
)
async def check_github_actions() -> str:
    with tempfile.TemporaryDirectory() as folder:
        wheels = await asyncio.to_thread(_build_wheel, folder)
        status, output = await _run_job(wheels, expected="42")
        assert status == 0, output
        assert "1 of 1 passed" in output, output
        status, output = await _run_job(wheels, expected="43")
        assert status == 1, output
        assert "is below 0.9" in output, output
    return "an example set passed; one that fails also fails the job"


@row(
    WAYS_IN,
    "Wheel and source package",
    real="pip's packages in new environments: the engine, its examples, the product, ACP",
    played="the model",
)
async def check_packages() -> str:
    return await run_tests("tests/test_package.py")


def _build_wheel(folder: str) -> str:
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "build", "-q", "--wheel", "--out-dir", folder, ROOT]
    subprocess.run(command, check=True, timeout=RUN_SECONDS)
    return folder


async def _run_job(wheels: str, expected: str) -> tuple[int, str]:
    """Run the page's job against a new installation; return its exit code and its log."""
    [job] = yaml.safe_load(example(PAGE, "yaml"))["jobs"].values()
    script = MAKE_SET.format(expected=expected)
    async with serve(script=script, scopes=("read", "configure")) as ashiato:
        environment = {name: _filled(value, ashiato) for name, value in job["env"].items()}
        environment["PATH"] = f"{python_programs('uv')}:{os.environ['PATH']}"
        environment["UV_FIND_LINKS"] = wheels
        log = ""
        for step in job["steps"]:
            if "uses" in step:
                assert step["uses"].startswith(INSTALLS_UV), step
                continue
            ended = await asyncio.to_thread(_run_step, step["run"], environment)
            log += ended.stdout
            if ended.returncode:
                return ended.returncode, log
    return 0, log


def _run_step(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner on Linux does by default."""
    return subprocess.run(
        ["bash", "-e", "-c", script],
        env=clean_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
    )


def _filled(text: str, ashiato: Served) -> str:
    return SECRET.sub(ashiato.key, text).replace(SERVER, ashiato.url)
