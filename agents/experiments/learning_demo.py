"""Shows that learning helps: the shipped example set with the switch off, then on.

An agent answers the training questions and a reviewer corrects them. What is learned from that
goes the product's own way, from the feedback over the review into the prompt. The examples ask
other questions.
"""

import asyncio
import tomllib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents import runs
from agents.catalog import agent_spec
from agents.db import database
from agents.learning import extraction, store
from agents.models import Agent, Experience, Run, ToolRegistration
from agents.review import feedback
from agents.review.models import Example, ExampleSet

from . import service
from .models import Experiment
from .service import Options

FILE = Path(__file__).with_name("learning_examples.toml")
TOOLS = ("calculator", "database")
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The same examples with the switch off and on."""

    off: Experiment
    on: Experiment
    experiences: int


def load_file() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))


async def compare(user: User, model: str = "demo") -> Comparison:
    """Train an agent of its own, and run the examples without and with experiences."""
    content = load_file()
    agent = await database.run(make_agent, content, model)
    await train(agent, user, content["training"])
    learned = await database.run(learn_and_approve, agent, user)
    example_set = await database.run(make_set, content, agent)
    off = await _score(example_set, agent, user, is_on=False)
    on = await _score(example_set, agent, user, is_on=True)
    return Comparison(off=off, on=on, experiences=learned)


@transaction.atomic
def make_agent(content: dict[str, Any], model: str) -> Agent:
    """Create the agent again, so that it has no experiences yet."""
    Agent.objects.filter(name=content["agent"]).delete()
    agent = Agent.objects.create(
        name=content["agent"],
        description="Shows what an agent learns from corrections.",
        model=model,
        learns=True,
    )
    agent.tools.set(ToolRegistration.objects.filter(name__in=TOOLS, enabled=True))
    return agent


async def train(agent: Agent, user: User, training: list[dict[str, str]]) -> None:
    """Have the training questions answered, and correct the answers like a reviewer."""
    for example in training:
        run = await database.run(_prepare, agent, user, example["question"])
        runs.launch(run)
        await runs.wait(run)
        await database.run(_correct, run.pk, user, example["correction"])


def _prepare(agent: Agent, user: User, question: str) -> Run:
    topic = f"learning.{uuid4().hex[:12]}"
    return runs.prepare(query=question, topic=topic, user=user, agent=agent)


def _correct(pk: int, user: User, correction: str) -> None:
    feedback.correct(user, Run.objects.get(pk=pk), correction, seen_stamp="")


def learn_and_approve(agent: Agent, user: User) -> int:
    """Learn from the corrections, and approve what they suggest for everyone."""
    now = timezone.now() + timedelta(seconds=1)
    extraction.learn(now - timedelta(hours=1), now)
    proposed = Experience.objects.filter(agent=agent, status=Experience.Status.REVIEW)
    for row in proposed:
        store.approve(row, user)
    return Experience.objects.filter(agent=agent, scope=Experience.Scope.AGENT).count()


@transaction.atomic
def make_set(content: dict[str, Any], agent: Agent) -> ExampleSet:
    """Create or replace the example set, which stays for further experiments."""
    about = {"description": content["description"], "agent": agent}
    example_set, _is_new = ExampleSet.objects.update_or_create(about, name=content["name"])
    example_set.examples.all().delete()
    for example in content["examples"]:
        Example.objects.update_or_create(
            {
                "question": example["question"],
                "checks": [{"kind": "contains", "value": example["contains"]}],
                "example_set": example_set,
                "agent": agent,
                "agent_name": agent.name,
            },
            name=f"{content['name']}: {example['name']}",
        )
    return example_set


async def _score(
    example_set: ExampleSet, agent: Agent, user: User, *, is_on: bool
) -> Experiment:
    pk = await database.run(_start, example_set, agent, user, is_on)
    while await Experiment.objects.open().filter(pk=pk).aexists():
        await service.advance(pk)
        await asyncio.sleep(POLL_SECONDS)
    return await Experiment.objects.aget(pk=pk)


def _start(example_set: ExampleSet, agent: Agent, user: User, is_on: bool) -> int:
    spec = agent_spec.describe(agent) | {"learns": is_on}
    options = Options(target=Experiment.Target.DRAFT, is_live=True)
    return service.start_examples(example_set, agent, spec, user, options).pk
