"""Whether a WAV recording is silent, and how long it is; other formats need ffmpeg."""

import math
import sys
import wave
from array import array
from pathlib import Path

from django.utils.translation import gettext_noop

NEARLY_SILENT = gettext_noop("No speech was found: the recording is nearly silent.")
# The loudest tenth of a second of speech is far above this.
SILENT_DECIBELS = -50.0
WINDOWS_A_SECOND = 10
FULL_SCALE = 32_768


def is_silent(path: Path) -> bool | None:
    """Whether no tenth of a second is loud enough; None if it can't be measured."""
    try:
        with wave.open(str(path), "rb") as file:
            if file.getsampwidth() != 2:
                return None
            size = max(1, file.getframerate() // WINDOWS_A_SECOND)
            # It ends at the first loud moment, so speech costs next to nothing.
            while data := file.readframes(size):
                samples = array("h", data[: len(data) // 2 * 2])
                if sys.byteorder == "big":
                    samples.byteswap()
                square = sum(sample * sample for sample in samples) / max(1, len(samples))
                if square and 10 * math.log10(square / FULL_SCALE**2) >= SILENT_DECIBELS:
                    return False
            return True
    except (wave.Error, EOFError, OSError):
        return None


def length(path: Path) -> float:
    """Return how many seconds a WAV recording has; 0 if that isn't known."""
    try:
        with wave.open(str(path), "rb") as file:
            # A header can claim anything.
            frame_bytes = max(1, file.getsampwidth() * file.getnchannels())
            frames = min(path.stat().st_size // frame_bytes, file.getnframes())
            return frames / max(1, file.getframerate())
    except (wave.Error, EOFError, OSError):
        return 0.0
