"""An agent that masks personal data sends no recordings to other services."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.loader import render_to_string
from django.urls import reverse

from agents.knowledge.media import ffmpeg, services, transcription, video
from agents.knowledge.parsing import UnreadableDocument
from agents.models import Agent, Document
from tests.wire import serve_in_thread

from .sounds import segment, wav

PATH = "/v1/audio/transcriptions"


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(wav())
    return path


def test_a_private_recording_is_not_sent(sound, configure, monkeypatch):
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")
    with serve_in_thread(pages={PATH: {"text": "Heard."}}) as server:
        configure(transcription_model="openai/whisper-1", transcription_url=server.url)
        with pytest.raises(UnreadableDocument, match="masks personal data"):
            transcription.transcribe(sound, "audio/wav", is_private=True)
    assert server.requests == []


def test_a_private_recording_is_transcribed_on_this_machine(sound, configure, monkeypatch):
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")
    heard = {"segments": [segment(0, "Heard here.")]}
    monkeypatch.setattr(transcription, "_listen_here", lambda *_: heard)
    configure(transcription_model="openai/whisper-1", whisper_model=sound.parent)
    found = transcription.transcribe(sound, "audio/wav", is_private=True)
    assert found.text == "Heard here."


def test_frames_of_a_private_video_are_only_read_by_ocr(tmp_path, configure, monkeypatch):
    configure(vision_model="openai/seer", vision_url="http://127.0.0.1:9/v1")
    monkeypatch.setattr(video, "parse", lambda *_, **__: video.ParsedDocument())
    monkeypatch.setattr(video.metered_media, "describe_image", pytest.fail)
    private = video._Watched(is_private=True)
    assert video._describe(tmp_path / "a.jpg", lambda done, total: None, private) == ""


@pytest.mark.django_db
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("setting", Agent.PersonalData.values)
def test_the_chosen_agent_decides_where_a_recording_is_read(person_client, setting):
    agent = Agent.objects.create(name="listener", personal_data=setting)
    file = SimpleUploadedFile("a.wav", wav())
    person_client.post(reverse("chat:uploads"), {"file": file, "agent": agent.name})
    assert Document.objects.get().is_private == (setting == "hidden")


@pytest.mark.parametrize(
    ("model", "url", "place"),
    [
        ("", "", ""),
        ("openai/whisper-1", "https://api.openai.com/v1", "api.openai.com"),
        ("openai/whisper-1", "http://127.0.0.1:8000/v1", ""),
        ("openai/whisper-1", "http://10.0.0.8/v1", ""),
        ("openai/whisper-1", "http://speaches:8000/v1", ""),
        ("deepgram/nova-3", "", "deepgram"),
    ],
)
def test_where_sound_goes_is_said_where_the_recording_starts(configure, model, url, place):
    configure(transcription_model=model, transcription_url=url)
    assert services.destination("transcription") == place
    page = render_to_string("chat/messages/_record.html", {})
    assert (f"Sent to {place} for transcription." in page) == bool(place)


def test_without_transcription_the_recorder_says_so():
    page = render_to_string("chat/messages/_record.html", {})
    assert "no transcription model is configured" in page
