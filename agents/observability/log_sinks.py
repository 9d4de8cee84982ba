"""What happens in runs as lines of JSON, on the console or in a file, at a level."""

import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from agents.engine.events import Event, Type
from agents.engine.privacy.secrets import masked

MOST_BYTES = 10_000_000
KEPT_FILES = 5
MOST_CONTENT = 2_000
WORDS = {Type.DELTA, Type.THOUGHT_DELTA}
TROUBLE = {"retry", "model_fallback", "tool_fallback", "degraded", "resumed", "slow", "limited"}
WELL_ENDED = {"completed", "tool_failure_degraded"}
FAILED = {"error", "interrupted"}
LEVELS = {
    Type.ERROR: logging.ERROR,
    Type.GUARDRAIL: logging.WARNING,
    Type.USAGE: logging.DEBUG,
    Type.THOUGHT: logging.DEBUG,
    Type.STEP_STARTED: logging.DEBUG,
}
# What of an event is no content: numbers, names and states.
FACTS = (
    *("step", "turn", "parent", "kind", "status", "action", "reason", "model", "road"),
    *("dialect", "max_steps", "id", "tool_call_id", "name", "tool", "stand_in", "from", "to"),
    *("attempt", "attempts", "seconds", "is_error", "is_approved", "by", "why", "type"),
    *("message", "detail", "stopped_reason", "turns", "tool_calls", "finish_reason"),
    *("prompt_tokens", "completion_tokens", "cost", "dropped", "shortened"),
)
# Of these events one of those names is something else: what a person wrote.
CONTENT = {Type.APPROVAL_RESOLVED: {"reason"}}


def are_wanted(environment: Any) -> bool:
    """Whether anybody but the database and the pages is to hear of runs."""
    lines = environment.trace_console != "off" or environment.trace_file is not None
    return lines or environment.sends_spans


class Lines:
    """Writes a line for every event that matters at its level."""

    is_full = False

    def __init__(self, handler: logging.Handler, level: str) -> None:
        self.handler = handler
        self.level = logging.getLevelNamesMapping()[level.upper()]
        self.with_content = self.level <= logging.DEBUG

    @classmethod
    def on_console(cls, level: str) -> "Lines":
        return cls(logging.StreamHandler(sys.stderr), level)

    @classmethod
    def in_file(cls, path: Path, level: str) -> "Lines":
        """Each process needs a file of its own, or they would turn each other's over."""
        path = Path(str(path).replace("{pid}", str(os.getpid())))
        most = {"maxBytes": MOST_BYTES, "backupCount": KEPT_FILES, "encoding": "utf-8"}
        handler = RotatingFileHandler(path, **most)
        with suppress(OSError):  # a file of another user's, who lets us write
            path.chmod(0o600)
        return cls(handler, level)

    def take(self, run: Any, events: Sequence[Event]) -> None:
        for event in events:
            level = level_of(event)
            if event.type not in WORDS and level >= self.level:
                text = line(run.pk, event, level, with_content=self.with_content)
                self.handler.emit(_record(level, text))

    def flush(self) -> None:
        self.handler.flush()

    def close(self) -> None:
        self.handler.close()


def level_of(event: Event) -> int:
    """error: failures; warning: what had to be got over; info: steps; debug: all the rest."""
    data = event.data
    match event.type:
        case Type.TOOL_RESPONSE if data["is_error"]:
            return logging.ERROR
        case Type.RUN_FINISHED | Type.HANDOFF_RETURN:
            reason = data["stopped_reason"]
            is_well = reason in WELL_ENDED
            return logging.ERROR if reason in FAILED else 20 if is_well else logging.WARNING
        case Type.STATUS:
            return logging.WARNING if data["kind"] in TROUBLE else logging.DEBUG
    return LEVELS.get(event.type, logging.INFO)


def line(run: int, event: Event, level: int, *, with_content: bool = False) -> str:
    facts: dict[str, Any] = {
        "time": event.time.isoformat(timespec="milliseconds"),
        "level": logging.getLevelName(level).lower(),
        "run": run,
        "seq": event.seq,
        "agent": event.agent,
        "type": event.type.value,
    }
    about = _facts(event)
    if with_content:
        about |= {"data": _masked(event.data)}
    return json.dumps(facts | about, ensure_ascii=False, default=str)


def _facts(event: Event) -> dict[str, Any]:
    content = CONTENT.get(event.type, ())
    names = [name for name in FACTS if name in event.data and name not in content]
    facts = {name: _masked(event.data[name]) for name in names}
    if "type" in facts:
        facts["error"] = facts.pop("type")
    if "function" in event.data:
        facts["tool"] = event.data["function"]["name"]
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        text = masked(value[:MOST_CONTENT])
        return text if len(value) <= MOST_CONTENT else f"{text}…"
    if isinstance(value, Mapping):
        return {name: _masked(item) for name, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list | tuple) else value


def _record(level: int, text: str) -> logging.LogRecord:
    return logging.LogRecord("ashiato.trace", level, "", 0, text, None, None)
