"""Titles: the first question cleaned, then one by the model."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.catalog.language_models import model_clients
from agents.engine.errors import QuotaExceeded
from agents.engine.testing import Says, ScriptedModel
from agents.metering import budgets
from agents.metering.figures.models import TitleUsage
from agents.models import Agent, GuardrailPattern, Run
from chat import messages
from chat.models import ChatSession, Message
from chat.sessions import titles
from tests.conftest import frames_until, tab


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is 12.5% of 3480? Be brief.", "What is 12.5% of 3480?"),
        ("Hello! How do I stop a run?", "How do I stop a run?"),
        ("Hi there,\n\nplease compare July and August.", "Compare July and August."),
        ("@helper **Compare** `July` with [August](http://x)", "Compare July with August"),
        ("# Quarterly plan\nWrite one", "Quarterly plan"),
        ("```py\nprint()\n```\nWhy does this fail?", "Why does this fail?"),
        ("こんにちは。煎茶の在庫は？急いでいます。", "煎茶の在庫は？"),
        ("お世話になっております。見積もりをお願いします。", "見積もりをお願いします。"),
        ("e.g. this one", "e.g. this one"),
        ("Hello!", ""),
        ("こんにちは", ""),
        ("???", ""),
        ("6 * 7", "6 * 7"),
        ("snake_case stays", "snake_case stays"),
    ],
)
def test_a_title_is_the_first_meaningful_sentence(text, title):
    assert titles.make_title(text) == title


class Unanswered(ScriptedModel):
    async def stream(self, **request):
        await asyncio.sleep(60)
        yield


@pytest.fixture
def named(person, agent, monkeypatch):
    """Return a chat with one answered question, and have titles asked of a scripted model."""

    def make(*script, text="Which tea sold best?", model=None, **about):
        Agent.objects.filter(pk=agent.pk).update(model="openai/tea")
        scripted = model or ScriptedModel(*script)
        monkeypatch.setattr(model_clients, "llm_by_name", lambda name: scripted)
        chat = ChatSession.objects.create(user=person, title=titles.make_title(text))
        row = {"user": person, "agent": agent, "agent_name": "helper", "model": "openai/tea"}
        row |= {"topic": chat.topic, "query": text, "answer": "Sencha.", "status": "completed"}
        run = Run.objects.create(**(row | about))
        Message.objects.create(session=chat, author=person, run=run, text=text, client_id="a")
        return chat, run, scripted

    return sync_to_async(make)


async def name(run):
    """Have the run's chat named, as when the run ends."""
    if (unnamed := await sync_to_async(titles.find_unnamed)(run)) is not None:
        await titles._name_chat(unnamed)


pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


async def test_the_model_names_a_chat_after_its_first_answer(named):
    chat, run, model = await named(Says(answer='**"Best-selling tea"**.\nIt is…'))

    await name(run)

    await chat.arefresh_from_db()
    assert (chat.title, chat.title_source) == ("Best-selling tea", "model")
    assert chat.title_tokens > 0
    used = await TitleUsage.objects.aget(run=run)
    assert used.input_tokens + used.output_tokens == chat.title_tokens
    [request] = model.requests
    assert "Which tea sold best?" in str(request["messages"])
    assert request["max_tokens"] <= titles.MAX_TOKENS
    assert not request.get("tools")


async def test_a_title_waits_until_no_run_is_live(named, monkeypatch):
    live_runs = [1]
    monkeypatch.setattr(titles, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(titles.runs, "active_count", lambda: len(live_runs))
    chat, run, model = await named(Says(answer="Tea"))

    titles.name_chat(await sync_to_async(titles.find_unnamed)(run))
    await asyncio.sleep(0.1)
    assert not model.requests
    live_runs.clear()
    await asyncio.gather(*titles._naming)

    await chat.arefresh_from_db()
    assert chat.title == "Tea"


async def test_a_title_does_not_wait_forever_on_a_busy_server(named, monkeypatch):
    monkeypatch.setattr(titles, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(titles, "MAX_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(titles.runs, "active_count", lambda: 1)
    chat, run, _model = await named(Says(answer="Tea"))

    titles.name_chat(await sync_to_async(titles.find_unnamed)(run))
    await asyncio.gather(*titles._naming)

    await chat.arefresh_from_db()
    assert chat.title == "Tea"


async def test_an_edited_title_is_kept(named):
    chat, run, model = await named(Says(answer="Tea"))
    await sync_to_async(titles.rename)(chat, "My own")

    await name(run)

    await chat.arefresh_from_db()
    assert chat.title == "My own"
    assert model.requests == []


@pytest.mark.parametrize("answer", ["", "…", "x" * 500])
async def test_an_unusable_reply_leaves_the_question(named, answer):
    chat, run, _model = await named(Says(answer=answer))

    await name(run)

    await chat.arefresh_from_db()
    assert chat.title == "Which tea sold best?"


async def test_a_model_that_does_not_answer_in_time_leaves_the_question(named, monkeypatch):
    monkeypatch.setattr(titles, "TIMEOUT_SECONDS", 0.05)
    chat, run, _model = await named(model=Unanswered())

    await name(run)

    await chat.arefresh_from_db()
    assert chat.title == "Which tea sold best?"


async def test_a_title_that_a_guardrail_blocks_leaves_the_question(named):
    about = {"stage": "output", "action": "block"}
    await GuardrailPattern.objects.acreate(name="Tea", pattern="secret tea", **about)
    chat, run, model = await named(Says(answer="The secret tea"))

    await name(run)

    await chat.arefresh_from_db()
    assert len(model.requests) == 1
    assert chat.title == "Which tea sold best?"


async def test_titles_can_be_switched_off(named, settings):
    settings.GENERATED_TITLES = False
    chat, run, model = await named(Says(answer="Tea"))

    await name(run)

    assert model.requests == []


async def test_a_used_up_quota_leaves_the_question(named, settings, person):
    settings.USER_TOKENS = 10
    chat, run, model = await named(Says(answer="Tea"), prompt_tokens=20)

    await name(run)

    assert model.requests == []


async def test_the_tokens_of_titles_count_towards_the_quota(settings, person):
    settings.USER_TOKENS = 10
    await ChatSession.objects.acreate(user=person, title="T", title_tokens=11)

    with pytest.raises(QuotaExceeded):
        await sync_to_async(budgets.check_run)(person)


async def test_the_agents_privacy_setting_applies_to_titles(named, agent):
    await Agent.objects.filter(pk=agent.pk).aupdate(personal_data="unkept")
    chat, run, _model = await named(Says(answer="Mail of ada@example.com"))

    await name(run)

    await chat.arefresh_from_db()
    assert "ada@example.com" not in chat.title
    assert chat.title_source == "model"


async def test_only_the_first_answer_names_a_chat(named, person):
    chat, run, model = await named(Says(answer="Tea"))
    later = await Run.objects.acreate(topic=chat.topic, user=person, status="completed")
    about = {"session": chat, "author": person, "text": "And coffee?"}
    await Message.objects.acreate(run=later, client_id="b", **about)

    await name(later)

    assert model.requests == []


async def test_a_blocked_message_never_becomes_a_title(person, agent):
    await GuardrailPattern.objects.acreate(
        name="Secret tea", pattern="secret tea", stage="input", action="block"
    )

    message = await messages.submit(None, person, "Where is the secret tea?", "a")
    assert "secret" not in message.session.title
    assert message.session.title.startswith("New chat, ")
    await runs.wait(message.run)
    await name(message.run)

    chat = await ChatSession.objects.aget()
    assert chat.title.startswith("New chat, ")


async def test_every_open_page_gets_the_new_title(named, person):
    chat, run, _model = await named(Says(answer="Best-selling tea"))
    other = await ChatSession.objects.acreate(user=person, title="Other")
    async with tab(person, f"/ws/chat/{other.pk}/") as page:
        await frames_until(page, "Which tea sold best?")

        await name(run)

        frames = await frames_until(page, "Best-selling tea")

    assert f"/chat/{chat.pk}/" in frames[-1]
    assert (await ChatSession.objects.aget(pk=chat.pk)).title == "Best-selling tea"
