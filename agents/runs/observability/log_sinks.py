"""Logs events of runs as JSON lines, to the console or a file, by level."""

import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from agents.engine.events import DELTA_TYPES, Event, EventType, StatusKind
from agents.engine.privacy import StreamingMasker, mask_secrets

from .trace_span import ContentFilter

MAX_FILE_BYTES = 10_000_000
BACKUP_COUNT = 5
MAX_CONTENT_CHARS = 2_000
INFORMATIVE_KINDS = {
    StatusKind.COMPACTION,
    StatusKind.EXPERIENCE,
    StatusKind.REPLAYED,
    StatusKind.FINISHED_ANYWAY,
    StatusKind.SAMPLING,
    StatusKind.TOOL_PROGRESS,
}
WARNING_KINDS = {*StatusKind} - INFORMATIVE_KINDS
SUCCESS_REASONS = {"completed", "tool_failure_degraded"}
FAILURE_REASONS = {"error", "interrupted"}
LEVELS = {
    EventType.ERROR: logging.ERROR,
    EventType.GUARDRAIL: logging.WARNING,
    EventType.USAGE: logging.DEBUG,
    EventType.THOUGHT: logging.DEBUG,
    EventType.STEP_STARTED: logging.DEBUG,
}
# Fields without content: numbers, names and states.
LOGGED_FIELDS = (
    "step",
    "turn",
    "parent",
    "kind",
    "status",
    "action",
    "reason",
    "model",
    "route",
    "dialect",
    "max_steps",
    "id",
    "tool_call_id",
    "name",
    "tool",
    "stand_in",
    "from",
    "to",
    "attempt",
    "attempts",
    "seconds",
    "is_error",
    "is_approved",
    "by",
    "why",
    "type",
    "message",
    "detail",
    "stopped_reason",
    "turns",
    "tool_calls",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "dropped",
    "shortened",
)
# In these events, a field of that name contains users' text.
CONTENT_FIELDS = {EventType.APPROVAL_RESOLVED: {"reason"}}


class LogSink:
    """Writes a line for every event at or above its level."""

    is_full = False

    def __init__(
        self, handler: logging.Handler, level: str, content_filter: ContentFilter
    ) -> None:
        self.handler = handler
        self.content_filter = content_filter
        self.level = logging.getLevelNamesMapping()[level.upper()]
        self.with_content = self.level <= logging.DEBUG

    @classmethod
    def to_console(cls, level: str, content_filter: ContentFilter) -> "LogSink":
        return cls(logging.StreamHandler(sys.stderr), level, content_filter)

    @classmethod
    def to_file(cls, path: Path, level: str, content_filter: ContentFilter) -> "LogSink":
        """Return a sink for a file; each process needs its own, because they rotate it."""
        path = Path(str(path).replace("{pid}", str(os.getpid())))
        handler = RotatingFileHandler(
            path, maxBytes=MAX_FILE_BYTES, backupCount=BACKUP_COUNT, encoding="utf-8"
        )
        with suppress(OSError):  # another user's file that we can write to
            path.chmod(0o600)
        return cls(handler, level, content_filter)

    def take(self, run: Any, events: Sequence[Event]) -> None:
        for event in events:
            level = event_level(event)
            if event.type not in DELTA_TYPES and level >= self.level:
                text = format_line(
                    run.pk, event, level, self.content_filter, with_content=self.with_content
                )
                record = logging.LogRecord("ashiato.trace", level, "", 0, text, None, None)
                self.handler.emit(record)

    def flush(self) -> None:
        self.handler.flush()

    def close(self) -> None:
        self.handler.close()


def event_level(event: Event) -> int:
    """Return the log level of an event.

    Failures are errors, retries and the like warnings, steps info, the rest debug.
    """
    data = event.data
    match event.type:
        case EventType.TOOL_RESPONSE if data["is_error"]:
            return logging.ERROR
        case EventType.RUN_FINISHED | EventType.HANDOFF_RETURN:
            reason = data["stopped_reason"]
            if reason in FAILURE_REASONS:
                return logging.ERROR
            return logging.INFO if reason in SUCCESS_REASONS else logging.WARNING
        case EventType.STATUS:
            return logging.WARNING if data["kind"] in WARNING_KINDS else logging.DEBUG
    return LEVELS.get(event.type, logging.INFO)


def format_line(
    run: int,
    event: Event,
    level: int,
    content_filter: ContentFilter,
    *,
    with_content: bool = False,
) -> str:
    facts: dict[str, Any] = {
        "time": event.time.isoformat(timespec="milliseconds"),
        "level": logging.getLevelName(level).lower(),
        "run": run,
        "seq": event.seq,
        "agent": event.agent,
        "type": event.type.value,
    }
    content = CONTENT_FIELDS.get(event.type, ())
    names = [name for name in LOGGED_FIELDS if name in event.data and name not in content]
    fields = {name: _cut_value(event.data[name]) for name in names}
    if "type" in fields:
        fields["error"] = fields.pop("type")
    if "function" in event.data:
        fields["tool"] = event.data["function"]["name"]
    for name, value in fields.items():
        # Also names: a model can call a tool that doesn't exist, by any name.
        filtered = content_filter(value) if isinstance(value, str) else value
        if filtered not in (None, ""):
            facts[name] = filtered
    if with_content:
        facts["data"] = content_filter(_cut_value(event.data))
    return json.dumps(facts, ensure_ascii=False, default=str)


def _cut_value(value: Any) -> Any:
    """Return the value without secrets, its strings cut so that no personal data is halved."""
    if isinstance(value, str) and len(value) > MAX_CONTENT_CHARS:
        masked = StreamingMasker().feed(value[:MAX_CONTENT_CHARS])
        return f"{mask_secrets(masked)}…"
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, Mapping):
        return {name: _cut_value(item) for name, item in value.items()}
    return [_cut_value(item) for item in value] if isinstance(value, list | tuple) else value
