"""A run that waits for its model: visible, counted as waiting, and cancellable."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.utils import translation

from agents import runs
from agents.catalog.language_models import model_clients
from agents.db import database
from agents.engine.resilience import Limits
from agents.engine.testing import Says
from agents.metering.model_limits import SharedRateLimiter, queue_lengths
from agents.models import ModelSlot
from agents.web.presentation import RunView
from agents.web.presentation.formats.status_text import waiting_sentence
from agents.web.presentation.steps.step_notes import note_sentence
from tests.conftest import verify_run
from tests.language_models import make_model

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]


@pytest.fixture
def limited(agent, monkeypatch, scripted):
    """An agent whose model takes one call at a time."""
    model = scripted(Says(answer="Yes."))
    monkeypatch.setattr(model_clients, "build_llm", lambda setup, *more: model)
    make_model("fast", "openai/x", api_key="k", concurrency=1)
    agent.model = "fast"
    agent.save()
    return agent


async def start_waiting(agent):
    run = await sync_to_async(runs.prepare)(query="Now?", topic="chat.1", agent=agent)
    runs.launch(run)
    async with asyncio.timeout(10):
        while not await run.steps.exclude(notes=[]).aexists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return run


async def test_a_waiting_run_says_its_place_and_the_wait_is_not_active_time(limited):
    limiter = SharedRateLimiter("fast", Limits(concurrency=1))
    async with limiter.request("fast"):
        run = await start_waiting(limited)
        step = await run.steps.aget()
        assert "Waiting for fast: next in the queue." in waiting_sentence(step.notes)
        assert (await database.run(queue_lengths))["fast"].waiting == 1
        await run.arefresh_from_db()
        view = await sync_to_async(RunView)(run)
        assert await sync_to_async(lambda: (view.has_waited, view.is_waiting_now))() == (
            True,
            True,
        )
        await asyncio.sleep(0.3)
    await runs.wait(run)
    run = await verify_run(run)

    assert run.answer == "Yes."
    assert run.waited >= 0.3
    assert run.active < run.seconds - 0.25
    (note,) = (await run.steps.aget()).notes
    assert note["place"] == 0
    assert note_sentence(note).startswith("Waited ")


async def test_stopping_a_waiting_run_frees_its_place(limited):
    async with SharedRateLimiter("fast", Limits(concurrency=1)).request("fast"):
        run = await start_waiting(limited)
        await runs.stop(run)
        await runs.wait(run)

        assert await ModelSlot.objects.acount() == 1


@pytest.mark.parametrize(
    ("place", "language", "words"),
    [
        (3, "en", "3rd in the queue"),
        (12, "en-gb", "12th in the queue"),
        (22, "en", "22nd in the queue"),
    ],
)
def test_the_place_in_line_is_an_ordinal(place, language, words):
    note = {"kind": "limited", "limit": "concurrency", "most": 1, "model": "fast"}
    with translation.override(language):
        assert words in waiting_sentence([note | {"place": place}])
