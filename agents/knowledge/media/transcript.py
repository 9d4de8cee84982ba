"""What was said when, without what a model only imagined."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from agents.engine.text import UNSPACED
from agents.knowledge.parsing import ParsedPart
from agents.llm.media_models import MediaUsage

# Whisper's own limits: above and below these it heard nothing, or repeats itself.
NO_SPEECH = 0.6
SURELY_NO_SPEECH = 0.9
UNSURE = -0.8
REPETITIVE = 2.4
MAX_REPEATS = 2
PART_SECONDS = 300
TIME_MARK = re.compile(r"^\[(?:\d+:)?\d\d:\d\d\]\s*")
MAX_LINE_SECONDS = 30
MAX_SENTENCE_CHARS = 200
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
LANGUAGES = {"japanese": "ja", "ja": "ja", "english": "en", "en": "en"}
WITHOUT_SPACES = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Words from one moment to another; `speaker` if the model tells voices apart."""

    start: float
    end: float
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A recording's words; without times, it has one segment from the beginning."""

    segments: tuple[Segment, ...] = ()
    language: str = ""
    is_timed: bool = True
    usage: tuple[MediaUsage, ...] = ()

    @property
    def text(self) -> str:
        """The words alone, as plain text."""
        texts = [segment.text for segment in self.segments]
        return ("" if self.language == "ja" else " ").join(texts).strip()


def parse_reply(reply: Mapping[str, Any]) -> Transcript:
    """Read a transcription service's reply, in any of its formats."""
    language = LANGUAGES.get(str(reply.get("language", "")).lower(), "")
    raw_segments = reply.get("segments") or _sentences(reply.get("words"))
    if isinstance(raw_segments, list) and raw_segments:
        segments = tuple(_without_imagined(raw_segments))
        return Transcript(segments=segments, language=language)
    text = str(reply.get("text") or "").strip()
    only = (Segment(start=0, end=0, text=text),) if text else ()
    return Transcript(segments=only, language=language, is_timed=False)


def _sentences(raw_words: Any) -> list[dict[str, Any]]:
    """Return sentences of words with times, which some services return instead of segments."""
    sentences: list[dict[str, Any]] = []
    is_open = False
    for raw in raw_words if isinstance(raw_words, list) else ():
        text = str(raw.get("word") or raw.get("text") or "") if isinstance(raw, Mapping) else ""
        if not text.strip():
            continue
        if not is_open:
            sentences.append({"start": raw.get("start"), "text": ""})
        sentence = sentences[-1]
        glue = "" if not sentence["text"] or WITHOUT_SPACES.match(text) else " "
        sentence["end"] = raw.get("end")
        sentence["text"] += f"{glue}{text.strip()}"
        is_long = len(sentence["text"]) > MAX_SENTENCE_CHARS
        is_open = not is_long and not text.strip().endswith(SENTENCE_ENDS)
    return sentences


def _without_imagined(raw_segments: Iterable[Any]) -> Iterator[Segment]:
    """Yield segments without words that a model invented, as Whisper does in silence."""
    last = ""
    repeats = 0
    for raw in raw_segments:
        if not isinstance(raw, Mapping):
            continue
        silence = _number(raw.get("no_speech_prob"), 0.0)
        sureness = _number(raw.get("avg_logprob"), 0.0)
        is_quiet = silence > SURELY_NO_SPEECH or (silence > NO_SPEECH and sureness < UNSURE)
        if is_quiet or _number(raw.get("compression_ratio"), 1.0) > REPETITIVE:
            continue
        text = str(raw.get("text") or "").strip()
        repeats = repeats + 1 if text == last else 0
        last = text
        if text and repeats < MAX_REPEATS:
            yield Segment(
                start=_number(raw.get("start"), 0.0),
                end=_number(raw.get("end"), 0.0),
                text=text,
                speaker=str(raw.get("speaker") or "")[:60],
            )


def _number(value: Any, default: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value == value else default


def time_code(seconds: float) -> str:
    """Return a time as 1:02:03 or 02:03."""
    total = int(max(0.0, seconds))
    minutes, remainder = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes:02}:{remainder:02}"


def to_lines(transcript: Transcript) -> list[tuple[float, str]]:
    """Return the words in lines with their times, such as `[00:12] Speaker 1: Good morning.`"""
    if not transcript.is_timed:
        return [(segment.start, segment.text) for segment in transcript.segments]
    # Short segments of the same speaker are joined, so that lines are sentences.
    groups: list[list[Segment]] = []
    for segment in transcript.segments:
        first = groups[-1][0] if groups else None
        if (
            first is None
            or segment.speaker != first.speaker
            or segment.end - first.start > MAX_LINE_SECONDS
        ):
            groups.append([])
        groups[-1].append(segment)
    lines: list[tuple[float, str]] = []
    for group in groups:
        first = group[0]
        glue = "" if transcript.language == "ja" else " "
        speaker = f"{first.speaker}: " if first.speaker else ""
        text = glue.join(segment.text for segment in group)
        lines.append((first.start, f"[{time_code(first.start)}] {speaker}{text}"))
    return lines


def to_parts(lines: Iterable[tuple[float, str]]) -> list[ParsedPart]:
    """Return parts of five minutes each."""
    parts: list[ParsedPart] = []
    for index, group in groupby(lines, lambda line: int(line[0] // PART_SECONDS)):
        start = index * PART_SECONDS
        text = "\n\n".join(line for _start, line in group)
        label = f"{time_code(start)}–{time_code(start + PART_SECONDS)}"
        parts.append(
            ParsedPart(
                kind="clip", number=len(parts) + 1, label=label, text=text, is_recognized=True
            )
        )
    return parts


def without_times(text: str, language: str) -> str:
    """Return the words of lines with times, as one would write them; speakers stay."""
    lines = [TIME_MARK.sub("", line) for line in text.split("\n\n")]
    return ("" if language == "ja" else " ").join(line.strip() for line in lines).strip()
