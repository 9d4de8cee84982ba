"""What reading a file costs is part of the first run that gets it."""

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from agents import runs
from agents.catalog.attachments import reading_costs
from agents.engine.events import EventType
from agents.knowledge.ingestion import queue
from agents.knowledge.media import ffmpeg
from agents.models import Agent, ReadingUsage, Run
from agents.web.presentation.steps.step_notes import note_sentence
from chat import attachments
from tests.wire import serve_in_thread

from .sounds import segment, wav

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folder")]
PATH = "/v1/audio/transcriptions"


@pytest.fixture
def listen(configure, monkeypatch):
    """Have waiting recordings transcribed by this model."""
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")

    def process(model: str = "whisper-1", **reply: object) -> None:
        page = {"segments": [segment(0, "Hello.")], **reply}
        with serve_in_thread(pages={PATH: page}) as server:
            configure(transcription_model=f"openai/{model}", transcription_url=server.url)
            queue.process_waiting()

    return process


@pytest.fixture
def recording(person):
    return attachments.receive(person, SimpleUploadedFile("call.wav", wav(2)))


def run_with(person, *rows) -> Run:
    agent, _is_new = Agent.objects.get_or_create(name="listener")
    files = attachments.refs_of(rows)
    about = {"user": person, "agent": agent, "topic": "chat.1", "status": "completed"}
    return Run.objects.create(query="?", files=files, **about)


def test_a_transcript_is_paid_for_once(person, recording, listen):
    listen(duration=60.0)
    [note] = reading_costs.charge(run_with(person, recording))
    assert note["usage"]["cost"] == pytest.approx(0.006)
    assert reading_costs.charge(run_with(person, recording)) == []
    assert note_sentence(note) == (
        "The attached files were read with openai/whisper-1. Cost: $0.0060."
    )


def test_an_unknown_price_is_said_to_be_unknown(person, recording, listen):
    listen("my-own")
    [note] = reading_costs.charge(run_with(person, recording))
    assert note["usage"]["cost"] is None
    assert note_sentence(note).endswith("The cost is unknown.")


def test_a_dictated_recording_is_paid_for_though_its_transcript_is_gone(
    person_client, person, recording, listen
):
    listen(duration=60.0)
    person_client.post(reverse("chat:dictate", args=[recording.pk]))
    recording.refresh_from_db()
    assert recording.document is None
    assert reading_costs.charge(run_with(person, recording))[0]["usage"]["cost"]


def test_a_recording_that_was_read_too_late_is_paid_for_by_the_next_run(
    person, recording, listen
):
    listen(duration=60.0)
    run = run_with(person)
    run.history = [{"role": "user", "content": "?", "files": attachments.refs_of([recording])}]
    assert reading_costs.charge(run)[0]["usage"]["cost"]


def test_others_do_not_pay_for_the_same_file(person, recording, listen, django_user_model):
    listen(duration=60.0)
    other = run_with(django_user_model.objects.create_user("eve"), recording)
    assert reading_costs.charge(other) == []
    assert ReadingUsage.objects.filter(user=person).count() == 1


def test_a_text_file_costs_nothing(person, listen):
    row = attachments.receive(person, SimpleUploadedFile("a.txt", b"Words."))
    listen()
    assert reading_costs.charge(run_with(person, row)) == []


async def launch(run: Run) -> None:
    runs.launch(run)
    await runs.wait(run)


async def drive_as_worker(run: Run) -> None:
    """Drive a queued run, which has no owner until a worker takes it."""
    await Run.objects.filter(pk=run.pk).aupdate(owner="", heartbeat_at=None)
    await runs.drive(run.pk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("execute", [launch, drive_as_worker])
async def test_the_run_has_the_cost_of_its_recording(person, execute):
    agent = await Agent.objects.acreate(name="listener", model="demo")
    usage = {"model": "openai/whisper-1", "cost": 0.25, "digest": "a" * 64}
    await ReadingUsage.objects.acreate(user=person, **usage)
    ref = {"kind": "audio", "name": "a.wav", "digest": "a" * 64, "document": None}
    files = [{**ref, "mime_type": "audio/wav", "size": 9}]
    about = {"topic": "chat.1", "agent": agent, "user": person, "files": files}
    run = await sync_to_async(runs.prepare)(query="Hello", **about)
    await execute(run)
    await run.arefresh_from_db()
    used = run.events.filter(type=EventType.USAGE)
    assert run.cost == pytest.approx(0.25)
    assert [row.data["model"] async for row in used][0] == "openai/whisper-1"
    assert not await ReadingUsage.objects.aexists()
