"""Transcribes recordings: by a configured model, or by faster-whisper on this machine."""

import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from agents.db.installation import default_models
from agents.engine.errors import AgentError
from agents.knowledge.parsing import UnreadableDocument
from agents.llm import media_api, media_prices
from agents.llm.media_models import Upload
from agents.metering.budgets.metered import metered_media
from agents.tools import sandbox

from . import ffmpeg, services, sound
from .transcript import Transcript, parse_reply
from .watched import run_watched

logger = logging.getLogger(__name__)

MAX_BYTES = 25_000_000
MAX_SECONDS = 4 * 3600
COMPRESS_SECONDS = 600.0
WHISPER = sandbox.Worker(
    name="faster-whisper",
    program=str(Path(__file__).with_name("whisper_process.py")),
    readable=sandbox.CPU_FACTS,
    memory_bytes=8_000_000_000,  # the largest model takes about 4 GB
    file_bytes=20_000_000,
    output_bytes=20_000_000,
    open_files=256,
    nice=10,
    environment={"HF_HUB_OFFLINE": "1"},
)
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
    "This recording is larger than 25 MB. Cut it into parts, or install ffmpeg on the "
    "server to compress recordings."
)
TOO_LONG = gettext_noop("This recording is longer than 4 hours. Cut it into parts.")
NO_SPEECH = gettext_noop("No speech was found in this recording.")
PRIVATE = gettext_noop(
    "This agent masks personal data, so recordings aren't sent to a transcription service. "
    "Attach it again with another agent."
)
LOCAL_FAILED = gettext_noop("Transcription on this server failed. Check its log.")

Report = Callable[[], None]


def transcribe(
    path: Path, mime_type: str, report: Report = lambda: None, *, is_private: bool = False
) -> Transcript:
    """Return what is said in a sound file; raise UnreadableDocument with a sentence.

    A private recording is only transcribed on this machine.
    """
    if not services.can_transcribe():
        raise UnreadableDocument(services.NO_TRANSCRIPTION)
    if is_private and not services.can_transcribe_here():
        raise UnreadableDocument(PRIVATE)
    try:
        service = None if is_private else services.find("transcription")
    except AgentError as error:
        raise UnreadableDocument(error.with_advice()) from error
    with tempfile.TemporaryDirectory(prefix="sound-") as folder:
        path, mime_type, seconds = _prepare(path, mime_type, Path(folder), report)
        if sound.is_silent(path):
            raise UnreadableDocument(sound.NEARLY_SILENT)
        if service is None:
            reply = _listen_here(path, Path(folder), report)
        else:
            name = f"recording.{ENDINGS.get(mime_type, 'mp3')}"
            upload = Upload(name=name, mime_type=mime_type, data=path.read_bytes())
            language = default_models.TRANSCRIPTION_LANGUAGE.value
            try:
                work = metered_media.transcribe(
                    service, upload, seconds=seconds, language=language
                )
                reply = run_watched(work, report)
            except AgentError as error:
                raise UnreadableDocument(error.with_advice()) from error
    transcript = parse_reply(reply)
    if not transcript.segments:
        raise UnreadableDocument(NO_SPEECH)
    if service is None:
        return transcript
    usage = media_prices.transcription_usage(service.model, reply, seconds)
    return replace(transcript, usage=(media_api.with_reported_cost(usage, reply),))


def _prepare(
    path: Path, mime_type: str, folder: Path, report: Report
) -> tuple[Path, str, float]:
    """Return the file as it is, or made smaller, and how long it is, if that is known.

    What is silent, where models invent words, or too long is refused.
    """
    seconds = sound.length(path)
    if ffmpeg.executable() and mime_type in ffmpeg.DEMUXERS:
        media_file = ffmpeg.inspect(path, mime_type, folder)
        if media_file.duration > MAX_SECONDS:
            raise UnreadableDocument(TOO_LONG)
        output = ffmpeg.run(
            path,
            mime_type,
            ["-vn", "-t", str(MAX_SECONDS), "-af", "volumedetect", "-f", "null", "-"],
            folder,
            seconds=COMPRESS_SECONDS,
            report=report,
            may_fail=True,
        )
        volume_match = ffmpeg.MAX_VOLUME.search(output)
        if volume_match and float(volume_match[1]) < sound.SILENT_DECIBELS:
            raise UnreadableDocument(sound.NEARLY_SILENT)
        seconds = ffmpeg.last_time(output) or media_file.duration
        if path.stat().st_size > MAX_BYTES or mime_type not in ENDINGS:
            # A small MP3: an hour of speech has 14 MB.
            target = folder / "speech.mp3"
            options = ["-vn", "-ac", "1", "-ar", "16000", "-b:a", "32k", "-t", str(MAX_SECONDS)]
            ffmpeg.run(
                path,
                mime_type,
                [*options, "-f", "mp3", f"file:{target}"],
                folder,
                seconds=COMPRESS_SECONDS,
                report=report,
            )
            path = target
            mime_type = "audio/mpeg"
    if path.stat().st_size > MAX_BYTES:
        raise UnreadableDocument(TOO_LARGE)
    return path, mime_type, seconds


def _listen_here(path: Path, folder: Path, report: Report) -> dict[str, Any]:
    """Run faster-whisper in a confined child process: its memory is freed when it ends."""
    environment = settings.ENVIRONMENT
    request = {
        "path": str(path),
        "model": str(environment.whisper_model),
        "language": default_models.TRANSCRIPTION_LANGUAGE.value or None,
    }
    grant = sandbox.Grant(
        seconds=environment.transcription_seconds,
        cpu_seconds=environment.transcription_seconds * (os.cpu_count() or 1),
        readable=[str(path), str(environment.whisper_model)],
        writable=[str(folder)],
        environment={"HOME": str(folder)},
    )
    try:
        reply = sandbox.run(WHISPER, request, grant, report=report).json()
    except TimeoutError as error:
        raise UnreadableDocument(ffmpeg.TOO_LATE) from error
    except sandbox.WorkerFailed as error:
        logger.warning("faster-whisper %s", error)
        raise UnreadableDocument(LOCAL_FAILED) from None
    if "problem" in reply:
        raise UnreadableDocument(reply["problem"])
    return reply
