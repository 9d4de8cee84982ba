from contextlib import contextmanager
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from agents import runs
from agents.learning import extraction, outcomes, style, texts
from agents.models import AgentStep, Experience, Run
from agents.review.models import Rating


@pytest.fixture
def learner(agent):
    """The default agent with its switch on."""
    agent.learns = True
    agent.save()
    return agent


@pytest.fixture
def answered(learner, person):
    """Create a run that was answered, with its calls."""

    def create(query="What was the GMV in 2024?", answer="I don't know.", calls=(), **about):
        about = {"topic": "chat.1", "user": person, **about}
        run = Run.objects.create(
            query=query,
            answer=answer,
            agent=learner,
            agent_name=learner.name,
            model="demo",
            status="completed",
            ended_at=timezone.now(),
            **about,
        )
        for number, (tool, given) in enumerate(calls, start=1):
            AgentStep.objects.create(
                run=run,
                number=number,
                kind="tool",
                status="done",
                action=tool,
                action_input=given,
                agent_name=learner.name,
                started_at=timezone.now(),
            )
        return run

    return create


@pytest.fixture
def rate():
    """Rate a run as its user."""

    def save(run, is_good=False, **about):
        return Rating.objects.create(run=run, user=run.user, is_good=is_good, **about)

    return save


@pytest.fixture
def learn():
    """Learn from the feedback of the last hour."""

    def work():
        now = timezone.now() + timedelta(seconds=1)
        saved = extraction.learn(now - timedelta(hours=1), now)
        style.learn(now - timedelta(hours=1), now)
        outcomes.count()
        return saved

    return work


@pytest.fixture
def experience(learner, person):
    """Save an experience as it is."""

    def save(question="What was the GMV in 2024?", text="GMV means revenue", **about):
        columns = {"agent": learner, "user": person, "kind": "correction", **about}
        digest = texts.digest(f"{question} {text}")
        return Experience.objects.create(question=question, text=text, digest=digest, **columns)

    return save


@pytest.fixture
def built(learner, person):
    """Return the runtime that an agent gets for a question, and its run."""

    async def build(query="Show the GMV by month", user=None, topic="chat.9", **columns):
        from agents.catalog import agent_factory

        asker = user or person
        run = await sync_to_async(runs.prepare)(query=query, topic=topic, user=asker)
        await Run.objects.filter(pk=run.pk).aupdate(status="completed", **columns)
        run = await Run.objects.select_related("agent", "user", "origin").aget(pk=run.pk)
        return await agent_factory.build(run), run

    return build


@pytest.fixture
def transactional_rollback():
    """Undo what an example of a property has saved."""

    @contextmanager
    def block():
        with transaction.atomic():
            yield
            transaction.set_rollback(True)

    return block
