"""Saved replies of models: a run that is answered from the cache, and when it isn't."""

import pytest
from asgiref.sync import sync_to_async

from agents.engine.testing import Says, ScriptedModel
from agents.metering.caches import hits
from agents.models import Agent, CacheEntry, CacheUsage, GuardrailPattern
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

QUESTION = "What is the capital of Norway?"


class PricedModel(ScriptedModel):
    """Reports what each reply has used, and why it ended."""

    usage = {"prompt_tokens": 100, "completion_tokens": 20, "cost": 0.002}
    finish_reason = "stop"

    async def stream(self, **request):
        async for chunk in super().stream(**request):
            yield chunk
        yield {"choices": [{"delta": {}, "finish_reason": self.finish_reason}]}
        yield {"choices": [], "usage": self.usage}


@pytest.fixture
async def model(scripted):
    await Agent.objects.aupdate(reply_cache="person")
    return scripted(model=PricedModel(Says(answer="Oslo."), Says(answer="Bergen.")))


async def test_the_same_question_in_another_chat_is_answered_from_the_cache(model, person):
    first = await run_question(QUESTION, user=person, topic="chat.1")
    second = await run_question(QUESTION, user=person, topic="chat.2")

    [usage] = [row.data async for row in second.events.filter(type="usage").order_by("seq")]
    assert (first.answer, second.answer) == ("Oslo.", "Oslo.")
    assert (usage["cost"], usage["total_tokens"]) == (0.0, 0)
    assert usage["cached"]["saved"]["prompt_tokens"] == 100
    step = await second.steps.afirst()
    assert step.notes[0]["kind"] == "cached"
    await sync_to_async(hits.flush)()
    assert (await CacheUsage.objects.aget(kind="model")).hits == 1


async def test_the_same_question_in_the_same_chat_asks_the_model_again(model, person):
    await run_question(QUESTION, user=person)

    assert (await run_question(QUESTION, user=person)).answer == "Bergen."


@pytest.mark.parametrize(("scope", "answer"), [("person", "Bergen."), ("public", "Oslo.")])
async def test_another_person_asks_the_model_unless_the_agent_is_public(
    model, person, stranger, scope, answer
):
    await Agent.objects.aupdate(reply_cache=scope)
    await run_question(QUESTION, user=person, topic="chat.1")

    theirs = await run_question(QUESTION, user=stranger, topic="chat.2")

    assert theirs.answer == answer


async def test_a_changed_agent_asks_the_model(model, person):
    await run_question(QUESTION, user=person, topic="chat.1")
    await Agent.objects.aupdate(instructions="Answer in one word.")

    assert (await run_question(QUESTION, user=person, topic="chat.2")).answer == "Bergen."


async def test_guardrails_check_a_saved_reply_again(model, person):
    await run_question(QUESTION, user=person, topic="chat.1")
    rule = {"name": "no-oslo", "pattern": "Oslo", "stage": "output", "action": "mask"}
    await GuardrailPattern.objects.acreate(**rule)

    second = await run_question(QUESTION, user=person, topic="chat.2")

    assert "Oslo" not in second.answer


async def test_an_agent_that_saves_no_personal_data_saves_no_replies(model, person):
    await Agent.objects.aupdate(personal_data="unkept")
    await run_question(QUESTION, user=person)

    assert not await CacheEntry.objects.aexists()


async def test_a_reply_that_was_cut_off_is_not_saved(model, person):
    model.finish_reason = "length"
    await run_question(QUESTION, user=person)

    assert not await CacheEntry.objects.aexists()
