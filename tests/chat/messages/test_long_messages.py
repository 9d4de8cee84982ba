"""Messages that are too long for the model: refused before they are sent, never lost."""

import pytest

from agents.catalog.language_models import planner_factory
from agents.models import Agent
from chat import messages
from chat.errors import MessageTooLong
from chat.models import ChatSession, Message
from tests.conftest import as_user
from tests.language_models import make_model

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def test_the_models_window_decides_how_long_a_message_can_be(chat, person):
    row = make_model("small", "ollama/some", context_window=4_000)
    Agent.objects.update(model="small")

    assert planner_factory.max_question_tokens(Agent.objects.get()) == 3_000
    with pytest.raises(MessageTooLong, match="Attach it as a file") as reason:
        messages.save(chat, person, "word " * 6_000, "a")
    assert 45 <= reason.value.percent <= 55
    row.context_window = 40_000
    row.save()
    assert messages.save(chat, person, "word " * 6_000, "a").run.query.startswith("word word")


def test_without_a_known_window_the_server_decides(chat, person):
    assert planner_factory.max_question_tokens(Agent.objects.get()) is None
    assert messages.save(chat, person, "word " * 39_000, "a").run is not None


def test_a_message_that_is_too_long_comes_back_whole_with_what_to_do(person):
    client = as_user(person)
    text = "word " * 60_000

    page = client.post("/chat/", {"text": text})

    assert page.status_code == 422
    assert not Message.objects.exists()
    assert page.context["draft"] == text
    assert page.context["percent"] == 66
    assert "data-attach-text" in page.text
    assert not ChatSession.objects.exists()
