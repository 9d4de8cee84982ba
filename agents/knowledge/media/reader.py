"""Reads sound and video as documents: what is said when, and what is to be seen."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from agents.knowledge.parsing import ParsedDocument

from .transcript import to_lines, to_parts
from .transcription import transcribe

Progress = Callable[[int, int], None]


def read_sound(
    path: Path, name: str, mime_type: str, progress: Progress, *, is_private: bool = False
) -> ParsedDocument:
    """Return a recording's transcript; raise UnreadableDocument with a sentence."""
    transcript = transcribe(path, mime_type, lambda: progress(0, 0), is_private=is_private)
    return ParsedDocument(
        title=PurePosixPath(name).stem,
        parts=to_parts(to_lines(transcript)),
        language=transcript.language,
        usage=[usage.to_dict() for usage in transcript.usage],
    )
