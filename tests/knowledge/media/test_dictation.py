"""A recording's words go into the composer; the recording stays as a file."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents.catalog.attachments import file_context
from agents.knowledge.ingestion import queue
from agents.knowledge.media import ffmpeg
from agents.models import Document
from chat import attachments
from chat.models import Attachment
from tests.wire import serve_in_thread

from .sounds import segment, wav

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folder")]
PAGE = {"language": "english", "segments": [segment(0, "Good morning."), segment(40, "Bye.")]}


@pytest.fixture
def recording(person, configure, monkeypatch):
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")
    upload = SimpleUploadedFile("Recording.wav", wav())
    row = attachments.receive(person, upload)
    with serve_in_thread(pages={"/v1/audio/transcriptions": PAGE}) as server:
        configure(transcription_model="whisper-1", transcription_url=server.url)
        queue.process_waiting()
    return row


def test_the_words_are_returned_without_times(person_client, recording):
    reply = person_client.post(reverse("chat:dictate", args=[recording.pk])).json()
    recording.refresh_from_db()
    assert reply["text"] == "Good morning. Bye."
    assert reply["file"]["state"] == "ready"
    assert recording.document is None
    assert not Document.objects.exists()


def test_the_model_reads_them_once_in_the_message(person_client, recording):
    person_client.post(reverse("chat:dictate", args=[recording.pk]))
    recording.refresh_from_db()
    [ref] = attachments.refs_of([recording])
    part = file_context._document_part(ref, {}, file_context._Budget(1_000))
    assert "The message is its transcript." in part
    assert "Good morning" not in part


def test_a_recording_of_somebody_else_cannot_be_read(client, recording, django_user_model):
    client.force_login(django_user_model.objects.create_user("eve"))
    assert client.post(reverse("chat:dictate", args=[recording.pk])).status_code == 404


def test_a_file_without_a_transcript_stays_as_it_is(person_client, person):
    row = attachments.receive(person, SimpleUploadedFile("a.txt", b"Words."))
    assert person_client.post(reverse("chat:dictate", args=[row.pk])).status_code == 409
    assert Attachment.objects.get(pk=row.pk).document is not None


def test_pages_may_use_the_microphone_and_nothing_else(person_client):
    policy = person_client.get("/")["Permissions-Policy"]
    assert "microphone=(self)" in policy
    assert "camera=()" in policy
