from contextlib import contextmanager
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from agents import runs
from agents.memory import learning, memories, outcomes, style, texts
from agents.models import AgentStep, Experience, Memory, Run
from agents.review.models import Rating
from tests.conftest import instructions_of, prepare_run


@pytest.fixture
def remember(person):
    """Save a memory of the person, or of somebody else."""

    def save(text, user=None, project=None, **about):
        return memories.save(Memory(user=user or person, project=project, text=text, **about))

    return save


@pytest.fixture
def prepare(agent, person):
    """Create a run that hasn't started."""

    def create(query="Hi", topic="chat.1", user=None, **about):
        return runs.prepare(query=query, topic=topic, user=user or person, **about)

    return create


@pytest.fixture
def instructions(agent, person):
    """Return the instructions that an agent gets for a question."""

    async def build(query, user=None, topic="chat.1", **columns):
        from agents.models import Run

        asker = user or person
        run = await sync_to_async(runs.prepare)(query=query, topic=topic, user=asker)
        await Run.objects.filter(pk=run.pk).aupdate(status="completed", **columns)
        await run.arefresh_from_db()
        return await instructions_of(run)

    return build


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
        saved = learning.save_experiences(now - timedelta(hours=1), now)
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
    """Return how a question's run is prepared, and its row."""

    async def build(query="Show the GMV by month", user=None, topic="chat.9", **columns):
        asker = user or person
        run = await sync_to_async(runs.prepare)(query=query, topic=topic, user=asker)
        await Run.objects.filter(pk=run.pk).aupdate(status="completed", **columns)
        run = await Run.objects.select_related("agent", "user", "origin").aget(pk=run.pk)
        return await prepare_run(run), run

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
