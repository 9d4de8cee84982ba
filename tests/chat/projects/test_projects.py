"""Projects: what their chats get, who sees what, and what moving a chat changes."""

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from agents import runs
from agents.accounts.users import profiles
from agents.knowledge import scope
from agents.memory import memories
from agents.models import Agent, Collection, Memory, Project, Run
from chat import messages
from chat.messages import run_factory
from chat.models import ChatSession, Message
from chat.people_data import data_export, erasure
from chat.projects import membership, moving
from tests.conftest import instructions_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
def project(person, agent):
    return membership.create(person, "Launch", instructions="Prices are in yen.")


@pytest.fixture
def shared(project, person, stranger):
    membership.add(project, stranger.username, "write", person)
    return project


def prepare(user, project=None, query="Hi", topic="chat.1"):
    return runs.prepare(query=query, topic=topic, user=user, project=project)


async def instructions(user, project, query="Hi"):
    run = await sync_to_async(prepare)(user, project, query)
    await Run.objects.filter(pk=run.pk).aupdate(status="completed")
    return await instructions_of(run)


async def test_its_instructions_replace_the_users_own(person, project):
    await sync_to_async(profiles.save_setting)(person, answer_style="Answer in haiku.")

    text = await instructions(person, project)

    assert "<project_instructions>" in text
    assert "Prices are in yen." in text
    assert "haiku" not in text
    assert "haiku" in await instructions(person, None)


async def test_a_former_member_gets_nothing_of_it(person, stranger, shared):
    run = await sync_to_async(prepare)(stranger, shared)
    await sync_to_async(membership.remove)(shared, stranger.pk, person)

    assert "yen" not in await instructions_of(run)


async def test_a_shared_project_has_its_own_memory_only(person, stranger, shared):
    def save(text, project=None):
        memories.save(Memory(user=person, project=project, text=text))

    await sync_to_async(save)("My cat is called Mikan")
    await sync_to_async(save)("The cat on the logo is called Tama", shared)

    text = await instructions(person, shared, "What is the name of the cat?")

    assert "Tama" in text
    assert "Mikan" not in text
    assert "Tama" in await instructions(stranger, shared, "What is the name of the cat?")


async def test_what_is_remembered_in_a_project_stays_there(person, project):
    await instructions(person, project, "Remember that the launch is in May")

    memory = await Memory.objects.aget()
    assert memory.project_id == project.pk
    assert "May" not in await instructions(person, None, "When is the launch?")


async def test_a_new_chat_starts_in_its_project(person, project):
    message = await messages.submit(None, person, "6 * 7", "a", project=project.pk)
    await runs.wait(message.run)

    run = await Run.objects.aget(pk=message.run.pk)
    chat = await ChatSession.objects.aget()
    assert (chat.project_id, run.project_id) == (project.pk, project.pk)


async def test_a_chat_cannot_start_in_anothers_project(stranger, project):
    with pytest.raises(messages.submission.MessageRejected):
        await messages.submit(None, stranger, "6 * 7", "a", project=project.pk)


def test_its_documents_are_in_scope_for_its_runs(person, project, stranger):
    documents = Collection.objects.get(topic=project.topic)

    found = scope.for_run(person.pk, "chat.1", None, topics=[project.topic])

    assert documents.pk in found.collections
    assert documents not in Collection.objects.for_user(stranger)
    membership.add(project, stranger.username, "read", person)
    assert documents in Collection.objects.for_user(stranger)
    assert documents not in Collection.objects.editable_by(stranger)


def test_a_moved_chat_does_not_send_earlier_results_again(person, project, chat):
    run = Run.objects.create(
        user=person, topic=chat.topic, agent_name="helper", model="demo", query="Find it",
        answer="Found.", status="completed", tool_calls=1, project=project,
    )  # fmt: skip
    Message.objects.create(session=chat, author=person, run=run, text="Find it", client_id="a")
    run.steps.create(
        number=1, turn=1, first_seq=1, kind="tool", status="done", action="search",
        call_id="c", action_input={}, observation="SECRET PASSAGE", agent_name="helper",
        started_at=run.started_at,
    )  # fmt: skip

    there = run_factory.history(chat, agent=Agent.objects.get(), project=project.pk)
    elsewhere = run_factory.history(chat, agent=Agent.objects.get())

    assert "SECRET PASSAGE" in str(there)
    assert "SECRET PASSAGE" not in str(elsewhere)
    assert [m["role"] for m in elsewhere] == ["user", "assistant"]


def test_a_chat_is_moved_in_and_out(person_client, project, chat):
    page = person_client.get(reverse("chat:move_to_project", args=[chat.pk])).text
    assert "can search its documents" in page

    person_client.post(reverse("chat:move_to_project", args=[chat.pk]), {"project": project.pk})
    assert ChatSession.objects.get().project == project
    home = person_client.get(reverse("chat:project", args=[project.pk])).text
    assert "Sums" in home

    person_client.post(reverse("chat:move_to_project", args=[chat.pk]), {"project": ""})
    assert ChatSession.objects.get().project is None


def test_the_list_of_chats_has_a_section_for_it(person_client, person, project, chat):
    moving.move(chat, person, project)

    page = person_client.get(reverse("chat:new")).text

    assert f'id="project-{project.pk}"' in page


def test_a_member_who_leaves_takes_their_chats_along(person, stranger, shared):
    theirs = ChatSession.objects.create(user=stranger, title="Mine", project=shared)

    membership.remove(shared, stranger.pk, person)

    theirs.refresh_from_db()
    assert theirs.project is None
    assert not Project.objects.for_user(stranger).exists()


def test_deleting_it_keeps_the_chats(person_client, person, project, chat):
    moving.move(chat, person, project)

    person_client.post(reverse("chat:delete_project", args=[project.pk]))

    assert not Project.objects.exists()
    assert ChatSession.objects.get().project is None
    assert not Collection.objects.filter(deleted_at=None, topic=project.topic).exists()


def test_a_new_member_sees_instructions_documents_and_memory(client, stranger, shared, person):
    memories.save(Memory(user=person, project=shared, text="Tea is hot"))
    client.force_login(stranger)

    page = client.get(reverse("chat:project", args=[shared.pk])).text

    assert "Prices are in yen." in page
    assert "Tea is hot" in page
    assert "Leave project" in page


def test_an_unknown_member_is_refused_with_a_sentence(person_client, project):
    url = reverse("chat:add_project_member", args=[project.pk])

    response = person_client.post(url, {"name": "nobody-here", "right": "read"})

    assert response.status_code == 422
    assert "No user is named “nobody-here”." in response.text


def test_an_export_has_a_deactivated_users_memories_and_nobody_elses(person, stranger, shared):
    for user, text in ((person, "The launch is in May"), (stranger, "My cat is called Mikan")):
        memories.save(Memory(user=user, project=shared, text=text))
    person.is_active = False
    person.save()

    files = {name: list(parts) for name, parts in data_export.files(person)}

    assert "May" in str(files["memories.json"])
    assert "Mikan" not in str(files["memories.json"])
    assert "yen" in str(files["projects.json"])


def test_an_export_has_projects_and_memories(person, project):
    names = [name for name, _parts in data_export.files(person)]

    assert {"projects.json", "memories.json"} <= {*names}


async def test_an_erased_owner_leaves_it_to_another_editor(person, stranger, shared):
    await erasure.erase(person, None)

    project = await Project.objects.aget()
    assert project.owner_id == stranger.pk


def test_a_deleted_memory_is_restored_on_the_projects_page(person_client, person, project):
    memory = memories.save(Memory(user=person, project=project, text="The launch is in May"))
    person_client.post(reverse("people:delete_memory", args=[memory.pk]))
    restore = f"{reverse('people:restore_deleted')}?items=memory:{memory.pk}"

    assert restore in person_client.get(project.get_absolute_url()).text
    assert person_client.post(restore).url == project.get_absolute_url()
