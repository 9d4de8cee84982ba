"""Runs ffmpeg on one file: what is in it, and parts of it in other formats."""

import logging
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from django.utils.translation import gettext_noop

from agents.knowledge.parsing import UnreadableDocument
from agents.tools import sandbox

logger = logging.getLogger(__name__)

FFMPEG = sandbox.Worker(
    name="ffmpeg", memory_bytes=2_000_000_000, file_bytes=200_000_000, nice=10
)
PROGRAMS = "imageio_ffmpeg.binaries"  # of the extra `video`
INSPECT_SECONDS = 20.0
# A frame of 8K has 33 million.
MAX_PIXELS = 40_000_000
# The reader of each type is named, so that a file can't choose one that opens other files.
DEMUXERS = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mp4": "mov",
    "audio/webm": "matroska",
    "audio/x-matroska": "matroska",
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/webm": "matroska",
    "video/x-matroska": "matroska",
    "video/x-msvideo": "avi",
}
DURATION = re.compile(r"Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)")
TIME = re.compile(r"time=(\d+):(\d\d):(\d\d(?:\.\d+)?)")
PICTURE = re.compile(r"Stream #0.*: Video: (?!png|mjpeg)")
MAX_VOLUME = re.compile(r"max_volume: (-?[\d.]+) dB")
TOO_LATE = gettext_noop("This file took too long to decode. Cut it into shorter parts.")
DAMAGED = gettext_noop("This file can't be decoded. It may be damaged.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFile:
    """A sound or video file, and what is in it."""

    path: Path
    mime_type: str
    duration: float = 0.0
    has_picture: bool = False
    has_sound: bool = False


@cache
def executable() -> str:
    """Return the system's ffmpeg, that of the extra `video`, or nothing."""
    if program := shutil.which("ffmpeg"):
        return os.path.realpath(program)
    # The package's own function would run it to try it, with all our environment variables.
    try:
        programs = [
            file for file in files(PROGRAMS).iterdir() if file.name.startswith("ffmpeg")
        ]
    except ImportError:
        return ""
    return os.path.realpath(str(programs[0])) if programs else ""


def inspect(path: Path, mime_type: str, folder: Path) -> MediaFile:
    """Return what a file contains, without decoding it."""
    output = run(path, mime_type, [], folder, seconds=INSPECT_SECONDS, may_fail=True)
    duration_match = DURATION.search(output)
    return MediaFile(
        path=path,
        mime_type=mime_type,
        duration=_to_seconds(*duration_match.groups()) if duration_match else 0.0,
        has_picture=bool(PICTURE.search(output)),
        has_sound=": Audio: " in output,
    )


def last_time(output: str) -> float:
    """Return up to where ffmpeg got."""
    times = TIME.findall(output)
    return _to_seconds(*times[-1]) if times else 0.0


def _to_seconds(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def run(
    path: Path,
    mime_type: str,
    output_options: Sequence[str],
    folder: Path,
    *,
    seconds: float,
    input_options: Sequence[str] = (),
    report: Callable[[], None] = lambda: None,
    may_fail: bool = False,
) -> str:
    """Run ffmpeg on a file and return what it says; raise UnreadableDocument.

    `output_options` follow the input; it can only write into the folder.
    """
    demuxer = DEMUXERS.get(mime_type)
    if demuxer is None:
        raise UnreadableDocument(DAMAGED)
    command = [
        *(executable(), "-nostdin", "-hide_banner", "-y", "-loglevel", "info"),
        *("-protocol_whitelist", "file", "-max_pixels", str(MAX_PIXELS)),
        *("-threads", "1", "-f", demuxer, *input_options),
        *("-i", f"file:{path}", *output_options),
    ]
    grant = sandbox.Grant(seconds=seconds, readable=[str(path)], writable=[str(folder)])
    try:
        ended = sandbox.run(FFMPEG, {}, grant, program=command, report=report)
    except TimeoutError as error:
        raise UnreadableDocument(TOO_LATE) from error
    if ended.code and not may_fail:
        logger.info("ffmpeg ended with %s: %s", ended.code, ended.complaint[-500:])
        raise UnreadableDocument(DAMAGED)
    return ended.complaint
