"""A child process that transcribes one recording with faster-whisper, and writes JSON."""

import json
import os
import sys
from importlib import import_module
from typing import Any

NOT_INSTALLED = (
    "Audio can't be transcribed: ASHIATO_WHISPER_MODEL is set, "
    "but faster-whisper isn't installed."
)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    # Whatever the engine prints must not end up in the reply.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        model = import_module("faster_whisper").WhisperModel
    except ImportError:
        reply: dict[str, Any] = {"problem": NOT_INSTALLED}
    else:
        reply = listen(model, request)
    with output:
        json.dump(reply, output)


def listen(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return a reply in the format of OpenAI's API; silence is skipped before it is heard."""
    engine = model(request["model"], device="cpu", compute_type="int8")
    heard, info = engine.transcribe(
        request["path"], language=request["language"], vad_filter=True
    )
    names = ("start", "end", "text", "no_speech_prob", "avg_logprob", "compression_ratio")
    segments = [{name: getattr(segment, name) for name in names} for segment in heard]
    return {"language": info.language, "segments": segments}


if __name__ == "__main__":
    main()
