"""`@agent` at the start of a message asks another agent once."""

import pytest
from django.contrib.auth.models import Group

from agents.models import Agent, Run
from chat import messages
from chat.errors import MessageRejected
from chat.messages import agent_choices, mentions, queue
from chat.models import Message

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("agent")]


@pytest.fixture
def writer(agent):
    return Agent.objects.create(name="Writer", instructions="Write.")


@pytest.fixture
def longer(writer):
    return Agent.objects.create(name="Writer-2", instructions="Write.")


@pytest.mark.parametrize(
    ("text", "name", "question"),
    [
        ("@Writer a poem", "Writer", "a poem"),
        ("＠writer　詩を書いて", "Writer", "詩を書いて"),
        ("@ＷＲＩＴＥＲ、詩", "Writer", "詩"),
        ("@writer: a\nb", "Writer", "a\nb"),
        ("@Writer-2 a poem", "Writer-2", "a poem"),
        ("@Writer @Writer-2 both?", "Writer", "@Writer-2 both?"),
    ],
)
def test_the_agent_is_found_by_its_name_and_removed_from_the_question(
    text, name, question, person, longer
):
    assert mentions.parse(text, person) == mentions.Mention(name, question)


@pytest.mark.parametrize(
    "text",
    [
        "Ask @Writer",
        " @Writer hello",
        "a@b.example",
        "@app.route('/')",
        "@media{}",
        "@x\ny",
        "@",
    ],
)
def test_other_text_is_sent_unchanged(text, person, writer):
    assert mentions.parse(text, person) is None


@pytest.mark.parametrize("text", ["@Writers hello", "@nobody", "@secret hello", "@off hello"])
def test_an_unavailable_agent_is_an_error_and_nothing_is_sent(text, person, writer):
    secret = Agent.objects.create(name="secret")
    secret.groups.add(Group.objects.create(name="Board"))
    Agent.objects.create(name="off", enabled=False)
    name = text[1:].split()[0]
    with pytest.raises(MessageRejected, match=f"There's no agent “{name}” that you can use."):
        messages.save(None, person, text, "c1")
    assert not Message.objects.exists()


def test_a_mention_without_a_question_is_an_error(person, writer):
    with pytest.raises(MessageRejected, match="Enter a message after @Writer."):
        messages.save(None, person, "@writer ", "c1")


def test_the_mentioned_agent_answers_once_and_the_chat_keeps_its_agent(
    person, chat, agent, writer
):
    asked = messages.save(chat, person, "@Writer a poem", "c1", agent.name)
    assert (asked.run.agent_name, asked.text, asked.run.query) == ("Writer", "a poem", "a poem")
    choices = agent_choices.list_agents(person)
    assert agent_choices.selected(choices, chat) == agent.name
    # Sent again after a lost reply, it is the same message.
    assert messages.save(chat, person, "@Writer a poem", "c1", agent.name).pk == asked.pk


def test_the_chats_options_stay_with_its_own_agent(person, chat, agent, writer):
    chat.options = {"temperature": 0.5}  # which the other agent doesn't allow
    chat.save()
    asked = messages.save(
        chat, person, "@Writer a poem", "c1", agent.name, options={"temperature": "0.7"}
    )
    chat.refresh_from_db()
    assert (asked.run.agent_name, chat.options) == ("Writer", {"temperature": 0.5})


def test_a_mention_as_a_form_field_works(person, chat, agent, writer):
    asked = messages.save(chat, person, "@Writer  a poem", "c1")
    Run.objects.filter(pk=asked.run_id).update(status="completed")
    again = messages.save(chat, person, " @nobody asks", "c2", "Writer", instead_of=asked.pk)
    assert (again.text, again.is_mention) == ("@nobody asks", True)


def test_a_queued_mention_keeps_its_agent_and_its_text(person, chat, agent, writer):
    messages.save(chat, person, "first", "c1", agent.name)
    queued = messages.save(chat, person, "@Writer a poem", "c2", agent.name)
    assert (queued.is_queued, queued.agent_name) == (True, "Writer")
    assert queue.withdraw(chat, person, queued.pk) == "@Writer a poem"
