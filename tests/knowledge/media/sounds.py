"""Small recordings for tests."""

import io
import math
import wave
from array import array


def wav(seconds: float = 1.0, volume: float = 0.5, rate: int = 8_000) -> bytes:
    """Return a tone; with volume 0, silence."""
    steps = range(int(seconds * rate))
    tone = (int(32_000 * volume * math.sin(step / 3)) for step in steps)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(array("h", tone).tobytes())
    return file.getvalue()


def segment(start: float, text: str, **about: object) -> dict[str, object]:
    """Return a part of a transcript as Whisper's servers send it."""
    sure = {"no_speech_prob": 0.01, "avg_logprob": -0.2, "compression_ratio": 1.3}
    return {"start": start, "end": start + 4, "text": text, **sure, **about}
