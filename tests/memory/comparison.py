"""Compares a set of examples with learning off, then on.

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
from django.utils import timezone

from agents import runs
from agents.catalog import agent_spec
from agents.db import database
from agents.memory import experiences, learning
from agents.models import Agent, Experience, Run, ToolRegistration
from agents.review.annotations import feedback
from agents.review.experiments import service
from agents.review.experiments.models import Experiment
from agents.review.experiments.service import Options
from agents.review.models import Example, ExampleSet

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


async def compare(user: User, content: dict[str, Any]) -> Comparison:
    """Train an agent of its own, and run the examples without and with experiences."""
    agent = await database.run(make_agent, content)
    await train(agent, user, content["training"])
    learned = await database.run(learn_and_approve, agent, user)
    example_set = await database.run(make_set, content, agent)
    off = await _score(example_set, agent, user, is_on=False)
    on = await _score(example_set, agent, user, is_on=True)
    return Comparison(off=off, on=on, experiences=learned)


def make_agent(content: dict[str, Any]) -> Agent:
    settings = {"model": "demo", **content.get("settings", {})}
    agent = Agent.objects.create(name=content["agent"], learns=True, **settings)
    tools = ToolRegistration.objects.filter(name__in=content.get("tools", TOOLS))
    agent.tools.set(tools.filter(enabled=True))
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
    learning.save_experiences(now - timedelta(hours=1), now)
    proposed = Experience.objects.filter(agent=agent, status=Experience.Status.REVIEW)
    for row in proposed:
        experiences.approve(row, user)
    return Experience.objects.filter(agent=agent, scope=Experience.Scope.AGENT).count()


def make_set(content: dict[str, Any], agent: Agent) -> ExampleSet:
    example_set = ExampleSet.objects.create(name=content["name"], agent=agent)
    for example in content["examples"]:
        Example.objects.create(
            name=example["name"],
            question=example["question"],
            checks=[{"kind": "contains", "value": example["contains"]}],
            example_set=example_set,
            agent=agent,
            agent_name=agent.name,
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
