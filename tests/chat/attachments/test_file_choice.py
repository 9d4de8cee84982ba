"""A file's text is sent whole or searched: by its size, or as the user chooses."""

import pytest
from asgiref.sync import sync_to_async

from agents.catalog.attachments import file_context
from agents.catalog.language_models import planner_factory
from agents.engine.testing import Says
from agents.models import Document
from chat import messages
from chat.attachments.presentation import FileView
from chat.models import Attachment, Member
from tests.chat.attachments.test_attached_files import (
    answered,
    request_text,
    uploaded,
)
from tests.conftest import as_user

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
BIRDS = (
    "# Birds\n\n" + "\n\n".join(f"## Bird {n}\n\n" + "wing " * 200 for n in range(30))
).encode()


def choose(user, pk, sent_as):
    return as_user(user).post(f"/chat/files/{pk}/reading/", {"sent_as": sent_as})


def view_of(pk):
    return FileView(Attachment.objects.select_related("document").get(pk=pk))


def test_the_choice_has_its_size_as_a_reason(person):
    short, long = uploaded(person), uploaded(person, "birds.md", BIRDS)

    assert (view_of(short).sent_as, view_of(long).sent_as) == ("whole", "searchable")
    sentence = "About 7 tokens. Files of up to 8,000 tokens are sent in full."
    assert view_of(short).reason == sentence
    assert "Files of more than 8,000 tokens are searched instead." in view_of(long).reason


async def test_a_long_file_is_sent_whole_if_the_user_wants_it(scripted, person, chat):
    model = scripted(Says(answer="Birds."), Says(answer="Still."))
    pk = await sync_to_async(uploaded)(person, "birds.md", BIRDS)
    await answered(await messages.submit(chat, person, "What?", "a", files=[pk]))

    answer = await sync_to_async(choose)(person, pk, "whole")
    await answered(await messages.submit(chat, person, "And?", "b"))

    assert answer.json()["reason"].endswith("Chosen manually.")
    assert request_text(model, 0).count("wing") < 1_000
    assert request_text(model, 1).count("wing") == 30 * 200


async def test_a_short_file_is_searched_if_the_user_wants_it(scripted, person, chat):
    model = scripted(Says(answer="Heron."))
    pk = await sync_to_async(uploaded)(person)

    await sync_to_async(choose)(person, pk, "searchable")
    await answered(await messages.submit(chat, person, "Which?", "a", files=[pk]))

    assert "The user wants it to be searched" in request_text(model)


def test_what_does_not_fit_the_model_stays_searchable(person, monkeypatch):
    monkeypatch.setattr(planner_factory, "context_window", lambda agent, model: 10_000)
    pk = uploaded(person, "birds.md", BIRDS)

    answer = choose(person, pk, "whole")

    assert answer.status_code == 422
    assert "has room for 5,000. Keep it searchable" in answer.json()["problem"]
    assert Document.objects.get().sent_as == ""


def test_whole_files_stay_within_the_models_window():
    budget = file_context._Budget(1_000, 2_000)

    assert budget.takes(1_500, "whole")
    assert not budget.takes(600, "whole")
    assert not budget.takes(10, "searchable")
    assert not budget.takes(10, "")


def test_readers_of_a_chat_cannot_choose(person, stranger, chat):
    pk = uploaded(person)
    row = chat.messages.create(author=person, text="Read.", client_id="a", session=chat)
    Attachment.objects.update(message=row)
    Member.objects.create(session=chat, user=stranger)

    assert choose(stranger, pk, "whole").status_code == 404
    assert choose(person, pk, "whole").status_code == 200
