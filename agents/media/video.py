"""Reads a video: what is said on its sound track, and what is to be seen in key frames."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext_noop

from agents.engine.errors import AgentError
from agents.knowledge.parsing import ParsedDocument, UnreadableDocument, parse
from agents.llm import media_api

from . import ffmpeg, services
from .transcript import time_code, to_lines, to_parts
from .transcription import transcribe
from .watched import run_watched

Progress = Callable[[int, int], None]
Lines = list[tuple[float, str]]

NO_FFMPEG = gettext_noop("Videos can't be read: ffmpeg isn't installed on the server.")
TOO_LONG = gettext_noop("This video is longer than 2 hours. Cut it into parts.")
NOTHING = gettext_noop("Neither speech nor text was found in this video.")
MAX_SECONDS = 2 * 3600
MAX_FRAMES = 12
DECODE_SECONDS = 300.0
FRAME_SECONDS = 30.0
OCR_SECONDS = 30.0
QUESTION = "Describe this frame of a video in one or two sentences, with any text in it."


def read_video(path: Path, name: str, mime_type: str, progress: Progress) -> ParsedDocument:
    """Return what is said and seen when; raise UnreadableDocument with a sentence."""
    if not ffmpeg.executable():
        raise UnreadableDocument(NO_FFMPEG)
    with tempfile.TemporaryDirectory(prefix="video-") as folder:
        found = ffmpeg.inspect(path, mime_type, Path(folder))
        if found.duration > MAX_SECONDS:
            raise UnreadableDocument(TOO_LONG)
        notes: list[str] = []
        spoken, language = _listen(found, Path(folder), progress, notes)
        seen = _look(found, Path(folder), progress) if found.has_picture else []
    lines = sorted([*spoken, *seen])
    if not lines:
        raise UnreadableDocument(notes[0] if notes else NOTHING)
    title = PurePosixPath(name).stem
    return ParsedDocument(title=title, parts=to_parts(lines), language=language, notes=notes)


def _listen(
    video: ffmpeg.MediaFile, folder: Path, progress: Progress, notes: list[str]
) -> tuple[Lines, str]:
    """Return the transcript; a video without one can still be looked at."""
    if not video.has_sound:
        return [], ""
    target = folder / "sound.mp3"
    options = ["-vn", "-ac", "1", "-ar", "16000", "-b:a", "32k", "-f", "mp3", f"file:{target}"]
    _decode(video, options, folder, progress)
    try:
        transcript = transcribe(target, "audio/mpeg", lambda: progress(0, 0))
    except UnreadableDocument as problem:
        notes.append(str(problem))
        return [], ""
    return to_lines(transcript), transcript.language


def _decode(
    video: ffmpeg.MediaFile, options: list[str], folder: Path, progress: Progress
) -> None:
    ffmpeg.run(
        video.path,
        video.mime_type,
        options,
        folder,
        seconds=DECODE_SECONDS,
        report=lambda: progress(0, 0),
    )


def _look(video: ffmpeg.MediaFile, folder: Path, progress: Progress) -> Lines:
    """Return what is to be seen in frames at equal distances."""
    count = max(1, min(MAX_FRAMES, round(video.duration / 5)))
    lines: Lines = []
    for index in range(count):
        moment = video.duration * (index + 0.5) / count
        progress(index, count)
        frame = folder / f"frame-{index}.jpg"
        scale = "scale='min(1280,iw)':-2"
        options = ["-an", "-frames:v", "1", "-vf", scale, "-f", "image2", f"file:{frame}"]
        with suppress(UnreadableDocument):
            ffmpeg.run(
                video.path,
                video.mime_type,
                options,
                folder,
                seconds=FRAME_SECONDS,
                before=["-ss", f"{moment:.2f}"],
                report=lambda: progress(0, 0),
            )
            if frame.exists() and (text := _describe(frame, progress)):
                lines.append((moment, f"[{time_code(moment)}] (frame) {text}"))
    return lines


def _describe(frame: Path, progress: Progress) -> str:
    """Return a frame's description by a vision model, or the text in it."""
    service = services.find("vision")
    if service is not None:
        work = media_api.describe_image(
            service, frame.read_bytes(), "image/jpeg", question=QUESTION, max_tokens=200
        )
        with suppress(AgentError):
            return " ".join(run_watched(work, lambda: progress(0, 0)).split())
    parsed = parse(frame, "frame.jpg", mime_type="image/jpeg", deadline=OCR_SECONDS)
    return " ".join(" ".join(part.text for part in parsed.parts).split())
