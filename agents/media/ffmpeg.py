"""Runs ffmpeg on one file, confined: it can read that file and write to one folder."""

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from django.utils.translation import gettext_noop

from agents.knowledge.parsing import UnreadableDocument
from agents.tools.mcp import confine

logger = logging.getLogger(__name__)

PROGRAM = Path(__file__).with_name("ffmpeg_process.py")
MEMORY_BYTES = 2_000_000_000
OUTPUT_BYTES = 200_000_000
POLL_SECONDS = 0.1
INSPECT_SECONDS = 20.0
MAX_COMPLAINT_CHARS = 200_000
SYSTEM_PATHS = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/urandom")
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
    if found := shutil.which("ffmpeg"):
        return os.path.realpath(found)
    try:
        return str(os.path.realpath(import_module("imageio_ffmpeg").get_ffmpeg_exe()))
    except (ImportError, RuntimeError):
        return ""


def inspect(path: Path, mime_type: str, folder: Path) -> MediaFile:
    """Return what a file contains, without decoding it."""
    said = run(path, mime_type, [], folder, seconds=INSPECT_SECONDS, may_fail=True)
    found = DURATION.search(said)
    return MediaFile(
        path=path,
        mime_type=mime_type,
        duration=_seconds(found) if found else 0.0,
        has_picture=bool(PICTURE.search(said)),
        has_sound=": Audio: " in said,
    )


def last_time(said: str) -> float:
    """Return up to where ffmpeg got."""
    times = TIME.findall(said)
    return _to_seconds(*times[-1]) if times else 0.0


def _seconds(found: "re.Match[str]") -> float:
    return _to_seconds(*found.groups())


def _to_seconds(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def run(
    path: Path,
    mime_type: str,
    output: Sequence[str],
    folder: Path,
    *,
    seconds: float,
    before: Sequence[str] = (),
    report: Callable[[], None] = lambda: None,
    may_fail: bool = False,
) -> str:
    """Run ffmpeg on a file and return what it says; raise UnreadableDocument.

    `output` are its options after the input; it can only write into the folder.
    """
    demuxer = DEMUXERS.get(mime_type)
    if demuxer is None:
        raise UnreadableDocument(DAMAGED)
    command = [
        *(executable(), "-nostdin", "-hide_banner", "-y", "-loglevel", "info"),
        *("-protocol_whitelist", "file", "-threads", "1", "-f", demuxer, *before),
        *("-i", f"file:{path}", *output),
    ]
    said, code = _run(_confined(command, path, folder, seconds), folder, seconds, report)
    if code and not may_fail:
        logger.info("ffmpeg ended with %s: %s", code, said[-500:])
        raise UnreadableDocument(DAMAGED)
    return said


def _confined(command: list[str], path: Path, folder: Path, seconds: float) -> list[str]:
    limits = {
        "cpu": int(seconds) + 1,
        "memory": MEMORY_BYTES,
        "output": OUTPUT_BYTES,
        "nice": 10,
    }
    python = [sys.executable, "-I", "-S", str(PROGRAM), json.dumps(limits), *command]
    if confine.landlock_abi() <= 0:
        return python
    code = [sys.prefix, sys.base_prefix, str(PROGRAM.parent), executable()]
    wanted = [*code, *SYSTEM_PATHS, str(path)]
    policy = {
        "read": [name for each in wanted for name in (each, os.path.realpath(each))],
        "write": [*DEVICES, str(folder)],
    }
    return [sys.executable, "-I", "-S", confine.__file__, json.dumps(policy), *python]


def _run(
    command: list[str], folder: Path, seconds: float, report: Callable[[], None]
) -> tuple[str, int]:
    end = time.monotonic() + seconds
    log = folder / "ffmpeg.log"
    with log.open("w+b") as said:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={},
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                if time.monotonic() > end:
                    raise UnreadableDocument(TOO_LATE)
                report()
                time.sleep(POLL_SECONDS)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        said.seek(0)
        text = said.read(MAX_COMPLAINT_CHARS).decode("utf-8", "replace")
    log.unlink(missing_ok=True)
    return text, child.returncode
