from contextlib import contextmanager

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from agents import runs
from agents.memory import MemoryScope, store


@pytest.fixture
def remember(person):
    """Save a memory of the person, or of somebody else."""

    def save(text, user=None, project=None, **about):
        scope = MemoryScope(user=(user or person).pk, project=project and project.pk)
        return store.save(scope, store.NewMemory(text=text, **about))

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
        from agents.catalog import agent_factory
        from agents.models import Run

        asker = user or person
        run = await sync_to_async(runs.prepare)(query=query, topic=topic, user=asker)
        await Run.objects.filter(pk=run.pk).aupdate(status="completed", **columns)
        await run.arefresh_from_db()
        return (await agent_factory.build(run)).planner.instructions

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
