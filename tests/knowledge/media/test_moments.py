"""Times in transcripts and answers are links that play the recording from there."""

import pytest
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from agents.engine.material import Passage
from agents.knowledge.files import save
from agents.knowledge.media.transcript import to_parts
from agents.knowledge.parsing import ParsedPart
from agents.models import Agent, Collection, Document, DocumentPart, Run, StoredFile
from agents.web.library import viewer
from agents.web.presentation.evidence import Observation
from agents.web.presentation.recordings import (
    Recording,
    find_recordings,
    link_moments,
    link_times,
    play_passage,
)
from agents.web.presentation.run_view import RunView

from .sounds import wav

CALL = Recording(document=7, kind="audio", title="Call", moments=frozenset({3, 83, 754}))
FILM = Recording(document=8, kind="video", title="Film", moments=frozenset({3, 20, 4000}))


def test_a_time_in_a_transcript_is_a_link_to_the_document_at_that_time():
    html = link_moments("<p>[1:02:03] A: At 10:30 we met.</p>", CALL)
    assert 'href="/library/documents/7/?t=3723#place"' in html
    assert 'data-play="/library/documents/7/file/#t=3723"' in html
    assert html.count("<a ") == 1


@pytest.mark.parametrize(
    ("answer", "documents"),
    [
        ("<p>He agrees [12:34].</p>", [7]),  # only one recording has a line there
        ("<p>He agrees at 12:34.</p>", [7]),
        ("<p>合意しました（01:23）。</p>", [7]),
        ("<p>From [00:20–00:25] it snows.</p>", [8]),
        ("<p>Both begin [00:03].</p>", []),  # of which one?
        ("<p>Lunch is at 11:30.</p>", []),  # a time of day
        ("<p>[01:06:41] The end.</p>", [8]),  # the other is shorter
        ("<p><code>[12:34]</code></p>", []),
        ("<p>Ports 10.0.0.1:34 and 12:345 and 1:2:34:56</p>", []),
    ],
)
def test_a_time_in_an_answer_leads_to_the_recording_it_is_of(answer, documents):
    html = link_times(answer, [CALL, FILM])
    assert [pk for pk in (7, 8) if f"documents/{pk}/?t=" in html] == documents


def test_a_title_cannot_add_markup():
    evil = Recording(document=7, kind="audio", title='"><script>', moments=frozenset({3}))
    assert "<script" not in link_times("<p>[00:03]</p>", [evil])


@pytest.fixture
def document(folder, db, person) -> Document:
    stored = save(wav(), name="call.wav", owner=None)
    collection = Collection.objects.create(name="Chat", topic="chat.1", owner=person)
    return transcribed(collection, stored)


def transcribed(collection: Collection, stored: StoredFile) -> Document:
    lines = [(3.0, "[00:03] Hello."), (83.0, "[01:23] Goodbye."), (400.0, "[06:40] More.")]
    document = Document.objects.create(
        collection=collection,
        title="Call",
        source="call.wav",
        file=stored,
        mime_type="audio/wav",
        status="ready",
    )
    parts: list[ParsedPart] = to_parts(lines)
    DocumentPart.objects.bulk_create(
        DocumentPart(
            document=document, number=one.number, kind="clip", label=one.label, text=one.text
        )
        for one in parts
    )
    return document


@pytest.mark.parametrize(
    ("query", "part", "words"),
    [("t=83", 1, "Goodbye"), ("t=90", 1, "Goodbye"), ("t=400", 2, "More"), ("t=1", 1, "")],
)
def test_a_link_with_a_time_opens_the_line_and_the_player_there(document, query, part, words):
    place = viewer.find_place(document, QueryDict(query))
    view = viewer.build(document, place)
    assert (place.part, place.seconds) == (part, int(query[2:]))
    assert words in place.text
    assert view.file_url.endswith(f"/file/#t={place.seconds}")


def test_a_passage_of_a_transcript_is_played_from_its_line(document):
    text = document.parts.get(number=1).text
    start = text.index("Goodbye")
    place = viewer.find_place(document, QueryDict(f"part=1&start={start}&end={start + 4}"))
    assert place.seconds == 83


def test_members_read_the_transcript_in_the_chat_and_others_do_not(
    client, person, document, django_user_model
):
    url = reverse("library:transcript", args=[document.pk])
    client.force_login(person)
    page = client.get(url).text
    assert 'data-play="/library/documents/' in page
    assert "Goodbye." in page
    client.force_login(django_user_model.objects.create_user("eve"))
    assert client.get(url).status_code == 404


def test_an_answer_about_the_chats_recording_has_links(person, document):
    agent = Agent.objects.create(name="listener")
    run = Run.objects.create(
        user=person,
        agent=agent,
        topic="chat.1",
        query="?",
        answer="They part [01:23].",
        status="completed",
    )
    html = str(RunView(run, place="chat").evidence.html)
    assert f"/library/documents/{document.pk}/?t=83#place" in html
    assert "?t=" not in str(RunView(run, place="shared").evidence.html)


def test_a_recording_has_the_title_that_the_run_saw(person, document):
    passage = Passage(id="x", title="As it was", document=document.pk, kind="clip")
    run = Run(topic="chat.9")
    [found] = find_recordings(run, [Observation(1, "search", "", 1, passage=passage)])
    assert (found.title, found.moments) == ("As it was", {3, 83, 400})
    assert find_recordings(run, []) == ()


def test_a_transcript_that_was_read_again_has_its_new_times(person, document):
    run = Run(topic="chat.1")
    assert 83 in find_recordings(run, [])[0].moments
    document.parts.filter(number=1).update(text="[00:07] Other words.")
    Document.objects.update(indexed_at=timezone.now())
    assert find_recordings(run, [])[0].moments == {7, 400}


def test_a_cited_passage_can_be_played_from_the_list_of_sources():
    passage = Passage(id="x", title="Call", document=7, kind="clip")
    source = Observation(1, "search", "[01:23] Goodbye.", 1, passage=passage)
    assert "#t=83" in play_passage((CALL,), source)
    assert play_passage((FILM,), source) == ""
