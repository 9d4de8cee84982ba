"""Chooses the moments of a video that are worth a look: where the picture changes."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from agents.knowledge.parsing import UnreadableDocument

from . import ffmpeg

MAX_FRAMES = 12
# How much of the picture changes, from 0 to 1. Cuts and new slides have more.
MIN_CHANGE = 0.25
COMPARED_PER_SECOND = 2
# Of longer videos only key frames are decoded: encoders make one at most cuts.
LONG_SECONDS = 600
SEARCH_SECONDS = 240.0
MEASURE_SECONDS = 60.0
# After a cut, the picture has settled.
SETTLED_SECONDS = 0.3
MIN_DISTANCE_SECONDS = 1.0
# Without changes, one look per so many seconds.
EVEN_SECONDS = 15
CHANGE = re.compile(r"pts_time:(\d+(?:\.\d+)?)")

Report = Callable[[], None]


def measure(video: ffmpeg.MediaFile, folder: Path, report: Report) -> float:
    """Return how long a video is that doesn't say so, as recordings of browsers don't."""
    with suppress(UnreadableDocument):
        options = ["-map", "0:v", "-c", "copy", "-f", "null", "-"]
        output = ffmpeg.run(
            video.path, video.mime_type, options, folder, seconds=MEASURE_SECONDS, report=report
        )
        return ffmpeg.last_time(output)
    return 0.0


def find_changes(video: ffmpeg.MediaFile, folder: Path, report: Report) -> list[float]:
    """Return when the picture changes; nothing if looking for it takes too long."""
    is_long = video.duration > LONG_SECONDS
    compared = f"fps={COMPARED_PER_SECOND},scale=160:-2,format=rgb24"
    filters = f"{compared},select='gt(scene,{MIN_CHANGE})',metadata=print"
    options = ["-an", "-sn", "-vf", filters, "-f", "null", "-"]
    with suppress(UnreadableDocument):
        output = ffmpeg.run(
            video.path,
            video.mime_type,
            options,
            folder,
            seconds=SEARCH_SECONDS,
            input_options=["-skip_frame", "nokey"] if is_long else [],
            report=report,
        )
        return [float(seconds) for seconds in CHANGE.findall(output)]
    return []


def choose(duration: float, changes: Sequence[float]) -> list[float]:
    """Return up to twelve moments: changes first, then the middle of the longest gaps."""
    moments = [min(SETTLED_SECONDS, duration / 2)]
    for change in sorted(changes):
        moment = change + SETTLED_SECONDS
        if moment - moments[-1] >= MIN_DISTANCE_SECONDS and moment < duration:
            moments.append(moment)
    if len(moments) > MAX_FRAMES:  # as many as are looked at, spread over the whole video
        step = (len(moments) - 1) / (MAX_FRAMES - 1)
        moments = [moments[round(step * index)] for index in range(MAX_FRAMES)]
    min_moments = min(MAX_FRAMES, max(2, round(duration / EVEN_SECONDS)))
    while len(moments) < min_moments:
        gaps = [(end - start, start) for start, end in pairwise([*moments, duration])]
        length, start = max(gaps)
        if length < 2 * MIN_DISTANCE_SECONDS:
            break
        moments = sorted([*moments, start + length / 2])
    return moments
