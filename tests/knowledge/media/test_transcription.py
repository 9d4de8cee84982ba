"""Recordings become text with times, and silence stays silent."""

import socket
from dataclasses import replace

import pytest

from agents.knowledge import ingestion
from agents.knowledge.files import save
from agents.knowledge.ingestion import queue
from agents.knowledge.media import ffmpeg, transcription
from agents.knowledge.media.transcript import parse_reply, time_code, to_lines, to_parts
from agents.knowledge.parsing import UnreadableDocument
from agents.models import Chunk, Collection, Document
from agents.tools import sandbox
from tests.wire import HANG, Reply, fail, serve_in_thread

from .sounds import segment, wav

PATH = "/v1/audio/transcriptions"


@pytest.fixture(autouse=True)
def _without_ffmpeg(monkeypatch):
    """Most of this works without; what doesn't is tested beside it."""
    monkeypatch.setattr(ffmpeg, "executable", lambda: "")


def listen(tmp_path, configure, page, sound=None, **settings):
    path = tmp_path / "a.wav"
    path.write_bytes(wav() if sound is None else sound)
    with serve_in_thread(pages={PATH: page}) as server:
        values = {"transcription_model": "openai/whisper-1", "transcription_url": server.url}
        configure(**{**values, **settings})
        return transcription.transcribe(path, "audio/wav"), server.requests


def test_a_recording_is_sent_whole_with_its_language(tmp_path, configure):
    page = {"language": "english", "segments": [segment(0, "Good morning.")]}
    transcript, [request] = listen(tmp_path, configure, page, transcription_language="en")
    assert transcript.text == "Good morning."
    assert transcript.language == "en"
    assert wav() in request.body
    for part in (b'name="model"\r\n\r\nwhisper-1', b"verbose_json", b'"language"\r\n\r\nen'):
        assert part in request.body


def test_a_service_that_is_busy_is_asked_again(tmp_path, configure):
    replies = iter([fail(503, "busy"), {"text": "At last."}])
    transcript, requests = listen(tmp_path, configure, lambda _: next(replies), model_retries=1)
    assert transcript.text == "At last."
    assert len(requests) == 2


def test_a_service_that_knows_no_segments_still_returns_the_text(tmp_path, configure):
    def page(request):
        is_plain = b"verbose_json" not in request.body
        refusal = fail(400, "response_format 'verbose_json' is not compatible with this model")
        return {"text": "Plain."} if is_plain else refusal

    transcript, _ = listen(tmp_path, configure, page)
    assert to_lines(transcript) == [(0, "Plain.")]


def test_a_refused_key_is_a_sentence_without_the_key(tmp_path, configure):
    key = type("Key", (), {"get_secret_value": lambda self: "sk-secret-1234567890"})()
    page = fail(401, "bad key sk-secret-1234567890")
    with pytest.raises(UnreadableDocument) as refused:
        listen(tmp_path, configure, page, transcription_key=key)
    assert "rejected the API key" in str(refused.value)
    assert "1234567890" not in str(refused.value)


def test_a_service_that_hangs_is_given_up(tmp_path, configure):
    hanging = Reply(parts=(b"{", HANG))
    with pytest.raises(UnreadableDocument, match="didn't respond in time"):
        listen(tmp_path, configure, hanging, transcription_seconds=0.3)


def test_silence_is_refused_before_it_is_sent(tmp_path, configure):
    page = {"text": "ご視聴ありがとうございました"}
    with pytest.raises(UnreadableDocument, match="nearly silent"):
        listen(tmp_path, configure, page, wav(volume=0.0001))


def test_words_imagined_in_silence_are_dropped():
    found = parse_reply(
        {
            "segments": [
                segment(0, "Hello."),
                segment(5, "ご視聴ありがとうございました", no_speech_prob=0.95),
                segment(9, "Thank you.", no_speech_prob=0.7, avg_logprob=-1.2),
                segment(13, "la la la la", compression_ratio=9.0),
                *(segment(20 + at, "you") for at in range(5)),
            ]
        }
    )
    assert [part.text for part in found.segments] == ["Hello.", "you", "you"]


def test_nothing_but_imagined_words_is_no_speech(tmp_path, configure):
    page = {"segments": [segment(0, "Thanks for watching!", no_speech_prob=0.97)]}
    with pytest.raises(UnreadableDocument, match="No speech was found"):
        listen(tmp_path, configure, page)


def test_lines_have_times_and_speakers_and_parts_have_five_minutes():
    raw = [segment(1, "Shall we begin?", speaker="A"), segment(6, "Yes.", speaker="B")]
    found = parse_reply({"segments": [*raw, segment(4000, "Bye.", speaker="A")]})
    first, last = to_parts(to_lines(found))
    assert first.text == "[00:01] A: Shall we begin?\n\n[00:06] B: Yes."
    assert (first.label, last.text) == ("00:00–05:00", "[1:06:40] A: Bye.")
    assert time_code(3_725.9) == "1:02:05"


def test_without_a_model_one_sentence_says_so(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(wav())
    with pytest.raises(UnreadableDocument, match="no transcription model is configured"):
        transcription.transcribe(path, "audio/wav")


def test_a_recording_that_services_refuse_is_refused_at_once(tmp_path, configure, monkeypatch):
    monkeypatch.setattr(transcription, "MAX_BYTES", 1_000)
    with pytest.raises(UnreadableDocument, match="larger than 25 MB"):
        listen(tmp_path, configure, {"text": "never asked"})


ENGINE = """
class Part:
    start, end, text = 0.0, 2.0, "Heard here."
    no_speech_prob, avg_logprob, compression_ratio = 0.0, -0.1, 1.0
class About:
    language = "en"
class WhisperModel:
    def __init__(self, path, **options): assert path.endswith("tiny")
    def transcribe(self, path, *, language, vad_filter):
        """
START = """
import runpy, sys
sys.path.insert(0, {folder!r})
runpy.run_path({program!r}, run_name="__main__")
"""


@pytest.fixture
def engine(tmp_path, configure, monkeypatch):
    """Install an engine in a folder of its own, with the code for `transcribe`."""

    def install(code: str = "return [Part()], About()") -> None:
        folder = tmp_path / "engine"
        folder.mkdir()
        (folder / "faster_whisper.py").write_text(ENGINE + code)
        program = folder / "start.py"
        program.write_text(
            START.format(folder=str(folder), program=transcription.WHISPER.program)
        )
        changed = replace(
            transcription.WHISPER,
            program=str(program),
            readable=[str(folder), transcription.WHISPER.program],
        )
        monkeypatch.setattr(transcription, "WHISPER", changed)
        (tmp_path / "tiny").mkdir()
        configure(whisper_model=tmp_path / "tiny")

    return install


def hear(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(wav())
    return transcription.transcribe(path, "audio/wav")


@pytest.mark.slow
def test_a_local_engine_transcribes_in_a_child_process(tmp_path, engine):
    engine()
    found = hear(tmp_path)
    assert (found.text, found.usage) == ("Heard here.", ())


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "return bytearray(20_000_000_000), None",
        "return open('{secret}').read(), None",
        "import socket; socket.create_connection(('127.0.0.1', {port}), 2); return [], None",
    ],
    ids=["memory", "files", "network"],
)
def test_a_local_engine_is_confined(tmp_path, engine, code):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    if "open" in code and sandbox.landlock_abi() <= 0:
        pytest.skip("this system has no Landlock")
    with socket.create_server(("127.0.0.1", 0)) as server:
        engine(code.format(secret=secret, port=server.getsockname()[1]))
        with pytest.raises(UnreadableDocument, match="Transcription on this server failed"):
            hear(tmp_path)


@pytest.mark.slow
def test_a_local_engine_that_hangs_is_killed(tmp_path, engine, configure):
    engine("import time; time.sleep(60)")
    configure(transcription_seconds=1.0)
    with pytest.raises(UnreadableDocument, match="took too long"):
        hear(tmp_path)


@pytest.mark.slow
def test_a_local_engine_that_is_not_installed_is_named(tmp_path, configure):
    path = tmp_path / "a.wav"
    path.write_bytes(wav())
    configure(whisper_model=tmp_path)
    with pytest.raises(UnreadableDocument, match="faster-whisper isn't installed"):
        transcription.transcribe(path, "audio/wav")


@pytest.fixture
def document(folder, db):
    collection = Collection.objects.create(name="Calls", is_open=True)
    stored = save(wav(), name="call.wav", owner=None)
    return ingestion.add_file(collection, None, "call.wav", stored)


@pytest.mark.usefixtures("db")
def test_an_uploaded_recording_can_be_searched(document, configure):
    page = {"language": "english", "segments": [segment(83, "The crane nests in April.")]}
    with serve_in_thread(pages={PATH: page}) as server:
        configure(transcription_model="whisper-1", transcription_url=server.url)
        queue.process_waiting()
    document.refresh_from_db()
    [part] = document.parts.all()
    assert document.status == Document.Status.READY
    assert (part.kind, part.is_recognized) == ("clip", True)
    assert part.text == "[01:23] The crane nests in April."
    assert Chunk.objects.filter(document=document, text__contains="crane").exists()


@pytest.mark.usefixtures("db")
def test_a_recording_that_cannot_be_transcribed_says_why(document):
    queue.process_waiting()
    document.refresh_from_db()
    assert document.status == Document.Status.FAILED
    assert document.problem.startswith("Audio can't be transcribed")
