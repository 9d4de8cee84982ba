"""Transcribes recordings: by a configured model, or by faster-whisper on this machine."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from agents.engine.errors import AgentError
from agents.knowledge.parsing import UnreadableDocument
from agents.llm import media_api
from agents.llm.media_api import MediaModel, Upload

from . import ffmpeg, services, sound
from .transcript import Transcript, parse_reply
from .watched import run_watched

MAX_BYTES = 25_000_000
MAX_SECONDS = 4 * 3600
COMPRESS_SECONDS = 600.0
LOCAL_PROGRAM = Path(__file__).with_name("whisper_process.py")
# What services accept, by the type read from the content.
ENDINGS = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/webm": "webm",
    "audio/x-matroska": "webm",
}
TOO_LARGE = gettext_noop(
    "This recording is larger than 25 MB. Cut it into parts, or have ffmpeg installed on the "
    "server, which makes recordings smaller."
)
TOO_LONG = gettext_noop("This recording is longer than 4 hours. Cut it into parts.")
NO_SPEECH = gettext_noop("No speech was found in this recording.")
LOCAL_FAILED = gettext_noop("Transcription on this server failed. Check its log.")

Report = Callable[[], None]


def transcribe(path: Path, mime_type: str, report: Report = lambda: None) -> Transcript:
    """Return what is said in a sound file; raise UnreadableDocument with a sentence."""
    if not services.can_transcribe():
        raise UnreadableDocument(services.NO_TRANSCRIPTION)
    with tempfile.TemporaryDirectory(prefix="sound-") as folder:
        path, mime_type = _prepared(path, mime_type, Path(folder), report)
        if sound.is_silent(path):
            raise UnreadableDocument(sound.NEARLY_SILENT)
        service = services.find("transcription")
        reply = (
            _ask(service, path, mime_type, report)
            if service is not None
            else _listen_here(path, report)
        )
    transcript = parse_reply(reply)
    if not transcript.segments:
        raise UnreadableDocument(NO_SPEECH)
    return transcript


def _prepared(path: Path, mime_type: str, folder: Path, report: Report) -> tuple[Path, str]:
    """Return the file as it is, or made smaller; refuse what is silent or too long."""
    if ffmpeg.executable() and mime_type in ffmpeg.DEMUXERS:
        found = ffmpeg.inspect(path, mime_type, folder)
        if found.duration > MAX_SECONDS:
            raise UnreadableDocument(TOO_LONG)
        _check_level(path, mime_type, folder, report)
        if path.stat().st_size > MAX_BYTES or mime_type not in ENDINGS:
            path, mime_type = _compressed(path, mime_type, folder, report), "audio/mpeg"
    if path.stat().st_size > MAX_BYTES:
        raise UnreadableDocument(TOO_LARGE)
    return path, mime_type


def _check_level(path: Path, mime_type: str, folder: Path, report: Report) -> None:
    """Refuse silence, in which models invent words."""
    options = ["-vn", "-t", str(MAX_SECONDS), "-af", "volumedetect", "-f", "null", "-"]
    said = ffmpeg.run(
        path, mime_type, options, folder, seconds=COMPRESS_SECONDS, report=report, may_fail=True
    )
    found = ffmpeg.MAX_VOLUME.search(said)
    if found and float(found[1]) < sound.SILENT_DECIBELS:
        raise UnreadableDocument(sound.NEARLY_SILENT)


def _compressed(path: Path, mime_type: str, folder: Path, report: Report) -> Path:
    """Return speech as a small MP3: an hour has 14 MB."""
    target = folder / "speech.mp3"
    rate = "32k"
    options = ["-vn", "-ac", "1", "-ar", "16000", "-b:a", rate, "-t", str(MAX_SECONDS)]
    ffmpeg.run(
        path,
        mime_type,
        [*options, "-f", "mp3", f"file:{target}"],
        folder,
        seconds=COMPRESS_SECONDS,
        report=report,
    )
    return target


def _ask(service: MediaModel, path: Path, mime_type: str, report: Report) -> dict[str, Any]:
    name = f"recording.{ENDINGS.get(mime_type, 'mp3')}"
    upload = Upload(name=name, mime_type=mime_type, data=path.read_bytes())
    language = settings.ENVIRONMENT.transcription_language
    try:
        return run_watched(media_api.transcribe(service, upload, language=language), report)
    except AgentError as error:
        raise UnreadableDocument(f"{error} {error.advice}".strip()) from error


def _listen_here(path: Path, report: Report) -> dict[str, Any]:
    """Run faster-whisper in a child process: its memory is freed when it ends."""
    environment = settings.ENVIRONMENT
    request = {
        "path": str(path),
        "model": str(environment.whisper_model),
        "language": environment.transcription_language or None,
    }
    command = [sys.executable, str(LOCAL_PROGRAM), json.dumps(request)]
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL
        )
        try:
            _wait(child, environment.transcription_seconds, report)
        finally:
            child.kill()
            child.wait()
        output.seek(0)
        try:
            reply = json.loads(output.read())
        except ValueError:
            raise UnreadableDocument(LOCAL_FAILED) from None
    if "problem" in reply:
        raise UnreadableDocument(reply["problem"])
    return dict(reply)


def _wait(child: "subprocess.Popen[bytes]", seconds: float, report: Report) -> None:
    left = seconds
    while left > 0:
        try:
            child.wait(0.5)
            return
        except subprocess.TimeoutExpired:
            left -= 0.5
            report()
    raise UnreadableDocument(ffmpeg.TOO_LATE)
