"""Reads a video: what is said on its sound track, and what is to be seen in key frames."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext_noop

from agents.engine.errors import AgentError
from agents.knowledge.parsing import ParsedDocument, UnreadableDocument, parse
from agents.llm.media_models import MediaUsage
from agents.metering.budgets.metered import metered_media

from . import ffmpeg, scenes, services
from .transcript import time_code, to_lines, to_parts
from .transcription import transcribe
from .watched import run_watched

Progress = Callable[[int, int], None]
Lines = list[tuple[float, str]]

NO_FFMPEG = gettext_noop("Videos can't be read: ffmpeg isn't installed on the server.")
TOO_LONG = gettext_noop("This video is longer than 2 hours. Cut it into parts.")
NOTHING = gettext_noop("Neither speech nor text was found in this video.")
MAX_SECONDS = 2 * 3600
DECODE_SECONDS = 300.0
FRAME_SECONDS = 30.0
OCR_SECONDS = 30.0
QUESTION = "Describe this frame of a video in one or two sentences, with any text in it."


@dataclass(slots=True)
class _Watched:
    """What a video has shown so far; of a private one nothing is sent to models."""

    is_private: bool = False
    lines: Lines = field(default_factory=list)
    language: str = ""
    notes: list[str] = field(default_factory=list)
    usage: list[MediaUsage] = field(default_factory=list)


def read_video(
    path: Path, name: str, mime_type: str, progress: Progress, *, is_private: bool = False
) -> ParsedDocument:
    """Return what is said and seen when; raise UnreadableDocument with a sentence."""
    if not ffmpeg.executable():
        raise UnreadableDocument(NO_FFMPEG)
    watched = _Watched(is_private=is_private)
    with tempfile.TemporaryDirectory(prefix="video-") as name_of_folder:
        folder = Path(name_of_folder)
        video = ffmpeg.inspect(path, mime_type, folder)
        if not video.duration and video.has_picture:
            length = scenes.measure(video, folder, lambda: progress(0, 0))
            video = replace(video, duration=length)
        if video.duration > MAX_SECONDS:
            raise UnreadableDocument(TOO_LONG)
        if video.has_sound:
            _listen(video, folder, progress, watched)
        if video.has_picture:
            # What is to be seen where the picture changes.
            changes = scenes.find_changes(video, folder, lambda: progress(0, 0))
            moments = scenes.choose(video.duration, changes)
            previous_text = ""
            for index, moment in enumerate(moments):
                progress(index, len(moments))
                frame = _extract(video, moment, folder / f"frame-{index}.jpg", progress)
                text = _describe(frame, progress, watched) if frame else ""
                if text and text != previous_text:
                    line = f"[{time_code(moment)}] (frame) {text}"
                    watched.lines.append((moment, line))
                previous_text = text
    if not watched.lines:
        raise UnreadableDocument(watched.notes[0] if watched.notes else NOTHING)
    return ParsedDocument(
        title=PurePosixPath(name).stem,
        parts=to_parts(sorted(watched.lines)),
        language=watched.language,
        notes=watched.notes,
        usage=[usage.to_dict() for usage in watched.usage],
    )


def _listen(
    video: ffmpeg.MediaFile, folder: Path, progress: Progress, watched: _Watched
) -> None:
    """Add the transcript; a video without one can still be looked at."""
    target = folder / "sound.mp3"
    options = ["-vn", "-ac", "1", "-ar", "16000", "-b:a", "32k", "-t", str(MAX_SECONDS)]
    try:
        ffmpeg.run(
            video.path,
            video.mime_type,
            [*options, "-f", "mp3", f"file:{target}"],
            folder,
            seconds=DECODE_SECONDS,
            report=lambda: progress(0, 0),
        )
        transcript = transcribe(
            target, "audio/mpeg", lambda: progress(0, 0), is_private=watched.is_private
        )
    except UnreadableDocument as problem:
        watched.notes.append(str(problem))
        return
    watched.lines += to_lines(transcript)
    watched.language = transcript.language
    watched.usage += transcript.usage


def _extract(
    video: ffmpeg.MediaFile, moment: float, frame: Path, progress: Progress
) -> Path | None:
    scale = "scale='min(1280,iw)':-2"
    options = ["-an", "-frames:v", "1", "-vf", scale, "-f", "image2", f"file:{frame}"]
    with suppress(UnreadableDocument):
        ffmpeg.run(
            video.path,
            video.mime_type,
            options,
            frame.parent,
            seconds=FRAME_SECONDS,
            input_options=["-ss", f"{moment:.2f}"],
            report=lambda: progress(0, 0),
        )
    return frame if frame.exists() else None


def _describe(frame: Path, progress: Progress, watched: _Watched) -> str:
    """Return a frame's description by a vision model, or the text in it."""
    with suppress(AgentError):
        service = None if watched.is_private else services.find("vision")
        if service is not None:
            work = metered_media.describe_image(
                service, frame.read_bytes(), "image/jpeg", question=QUESTION, max_tokens=200
            )
            description = run_watched(work, lambda: progress(0, 0))
            watched.usage.append(description.usage)
            return " ".join(description.text.split())
    with suppress(UnreadableDocument):
        parsed = parse(frame, "frame.jpg", mime_type="image/jpeg", deadline=OCR_SECONDS)
        return " ".join(" ".join(page.text for page in parsed.parts).split())
    return ""
