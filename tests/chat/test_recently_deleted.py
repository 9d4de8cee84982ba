"""The page *Recently deleted* of a user: what is listed, for how long, and what is hidden."""

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import timezone

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore
from agents.knowledge import scope
from agents.memory import memories, store
from agents.models import Collection, Document, Experience, Memory, Run
from agents.review.models import Example
from agents.web.library import deletion as library_deletion
from chat.messages import message_actions
from chat.models import ChatSession, Message, Prompt
from chat.sessions import deletion

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

PAGE = "/account/recently-deleted/"


@pytest.fixture
def chat(person):
    return ChatSession.objects.create(user=person, title="Trip")


def delete(chat):
    async_to_sync(deletion.delete)(chat)


def listed(client, user, **query):
    client.force_login(user)
    return [item.key for item in client.get(PAGE, query).context["items"]]


def save_memory(user, text, **about):
    return memories.save(Memory(user=user, text=text, **about))


def test_everything_that_a_user_deleted_is_listed_for_them_only(client, person, stranger, chat):
    prompt = Prompt.objects.create(user=person, name="mail", title="Mail", text="x")
    collection = Collection.objects.create(name="Plans", owner=person)
    memory = save_memory(person, "I like tea")
    delete(chat)
    recently_deleted.mark(Prompt.objects.filter(pk=prompt.pk), person)
    library_deletion.delete_collection(collection, person)
    store.delete(memory, person)

    keys = [f"memory:{memory.pk}", f"collection:{collection.pk}"]
    keys += [f"prompt:{prompt.pk}", f"chat:{chat.pk}"]
    assert listed(client, person) == keys
    assert listed(client, person, kind="prompt") == [f"prompt:{prompt.pk}"]
    assert listed(client, stranger) == []
    restore = reverse("people:restore_deleted")
    assert client.post(f"{restore}?items={keys[0]}").status_code == 404
    assert Memory.objects.present().count() == 0


def test_a_chat_that_is_deleted_for_good_is_erased_by_the_server(person_client, person, chat):
    delete(chat)

    person_client.post(f"{reverse('people:erase_deleted')}?items=chat:{chat.pk}")

    assert listed(person_client, person) == []
    assert recently_deleted.erase_due() == 1
    assert not ChatSession.objects.exists()


def test_a_shorter_retention_period_of_chats_wins(client, person, chat, configure):
    memory = save_memory(person, "I like tea")
    store.delete(memory, person)
    delete(chat)
    configure(run_retention_days=3)
    week_ago = timezone.now() - timedelta(days=7)
    ChatSession.objects.update(deleted_at=week_ago)
    Memory.objects.update(deleted_at=week_ago)

    assert listed(client, person) == [f"memory:{memory.pk}"]


def test_examples_experiences_and_files_of_a_deleted_chat_are_hidden(agent, person, chat):
    about = {"user": person, "topic": chat.topic, "status": "completed", "agent": agent}
    run = Run.objects.create(query="q", **about)
    Example.objects.create(name="It", run=run, question="q")
    Experience.objects.create(
        agent=agent, user=person, run=run, question="q", text="GMV means revenue", digest="d"
    )
    files = Collection.objects.create(name="Files", topic=chat.topic, owner=person)
    assert files.pk in scope.for_user(person).collections

    delete(chat)

    assert not Example.objects.exists()
    assert not Experience.objects.for_user(person).exists()
    assert files.pk not in scope.for_user(person).collections
    recently_deleted.restore(person, f"chat:{chat.pk}")
    assert Example.objects.exists()
    assert Experience.objects.for_user(person).exists()
    assert files.pk in scope.for_user(person).collections


def test_deleted_messages_are_erased_with_their_chat(person, agent, chat):
    run = Run.objects.create(query="q", user=person, topic=chat.topic, status="completed")
    message = Message.objects.create(session=chat, author=person, text="Hi", run=run)
    async_to_sync(message_actions.delete)(chat, person, message.pk, below=False)

    deletion.delete_permanently(chat)
    recently_deleted.erase_due()

    assert not Message.objects.exists()
    assert not Run.objects.exists()


def test_a_memory_that_a_newer_one_replaces_is_not_restored(person):
    old = save_memory(person, "I live in Tokyo", subject="home city")
    store.delete(old, person)
    new = save_memory(person, "I live in Kyoto", subject="home city")

    with pytest.raises(CannotRestore, match="Kyoto"):
        recently_deleted.restore(person, f"memory:{old.pk}")

    store.delete(new, person)
    recently_deleted.restore(person, f"memory:{old.pk}")
    assert Memory.objects.current().get() == old


def test_documents_deleted_from_a_project_are_erased_with_who_deleted_them(person):
    collection = Collection.objects.create(name="Launch", topic="project.1")
    document = Document.objects.create(collection=collection, source="plan.md", owner=person)

    removal = library_deletion.delete_documents(collection, [document], person)

    assert removal.owner == person
