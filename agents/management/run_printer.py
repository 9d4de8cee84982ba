"""A run in a terminal: its answer as it is written, its steps, and what it asks.

It prints events as they are sent (`Event.to_dict`), so the database's command and those of a
server look the same. It needs no Django.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from .escapes import escape_controls, escape_line, json_line

DIM = "\x1b[2m"
RESET = "\x1b[0m"
MAX_RESULT_CHARS = 200
SUCCESS_REASONS = {"completed", "tool_failure_degraded"}
EXIT_FAILED = 1
EXIT_WAITING = 3
APPROVE_PROMPT = "Approve? [y/N]"
REPEAT_PROMPT = "Run it again, or mark it as done? [again/done]"
ANSWER_PROMPT = "Your answer:"

WireEvent = Mapping[str, Any]


def uses_color(stream: TextIO) -> bool:
    """Whether to style text: only in a terminal, and not with NO_COLOR (no-color.org)."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not is_plain


class RunPrinter:
    """Writes a run's answer to one stream, and its steps to another.

    In a terminal the answer appears as it is written; elsewhere only once, when it is final.
    """

    def __init__(
        self, out: TextIO, notes: TextIO, *, as_json: bool = False, is_quiet: bool = False
    ) -> None:
        self.out = out
        self.notes = notes
        self.as_json = as_json
        self.is_quiet = is_quiet
        self._is_live = out.isatty() and not as_json
        self._has_color = uses_color(notes)
        self._streamed = ""  # of the answer, in the current step

    def print(self, event: WireEvent) -> None:
        if self.as_json:
            self._write(json_line(event) + "\n")
            return
        data = event["data"]
        is_nested = "parent" in data
        match event["type"]:
            case "delta" if self._is_live and not is_nested:
                self._streamed += data["content"]
                self._write(escape_controls(data["content"]))
            case "thought" if not is_nested:
                self._end_line()
            case "tool_call":
                function = data["function"]
                prefix = f"{escape_line(event['agent'])}: " if is_nested else ""
                call = f"{escape_line(function['name'])} {escape_line(function['arguments'])}"
                self._note(f"[{prefix}{call}]")
            case "tool_response":
                self._note(_describe_result(data))
            case "plan":
                self._note(f"[plan: {_count(data['steps'], 'step')}]")
            case "guardrail" if data["action"] != "allow":
                self._note(f"[guardrail: {escape_line(data['reason'])}]")
            case "status" if data["kind"] == "retry":
                self._note(f"[retry: {escape_line(data['message'])}]")
            case "approval_requested" if data["why"] == "elicitation":
                self._note("[a tool needs information: answer it on the page of this run]")
            case "run_finished":
                self._finish(data["answer"])

    def note(self, text: str, ending: str = "\n") -> None:
        """Write to the stream of notes, even if quiet."""
        self.notes.write(escape_controls(text) + ending)
        self.notes.flush()

    def _note(self, text: str) -> None:
        if self.is_quiet:
            return
        self._end_line()
        self.notes.write(f"{DIM}{text}{RESET}\n" if self._has_color else f"{text}\n")
        self.notes.flush()

    def _finish(self, answer: str) -> None:
        is_complete = answer == self._streamed and bool(answer)
        self._end_line()
        if is_complete:
            return
        # A guardrail may have changed what was streamed.
        self._write(escape_controls(answer) + ("" if answer.endswith("\n") else "\n"))

    def _end_line(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._write("\n")
        self._streamed = ""

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a waiting run asks: whether a call may be made, or a question."""

    agent: str
    tool: str
    arguments: str
    why: str  # one of `Approval.Why`
    explanation: str


@dataclass(frozen=True, slots=True)
class Reply:
    is_approved: bool
    text: str = ""


def read_reply(printer: RunPrinter, request: Request) -> Reply | None:
    """Ask the person at the terminal; None if nobody is there, or decides."""
    if not (sys.stdin and sys.stdin.isatty()):
        return None
    is_question = request.why == "question"
    is_unknown = request.why == "unknown"
    prompt = APPROVE_PROMPT
    if is_question:
        prompt = ANSWER_PROMPT
    elif is_unknown:
        prompt = REPEAT_PROMPT
    call = f"{request.agent} wants to call {request.tool} {request.arguments}"
    printer.note(f"{escape_line(call)}\n{request.explanation} {prompt} ", ending="")
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        line = ""
    reply = line.strip()
    if is_question:
        return Reply(is_approved=True, text=reply) if reply else None
    choice = reply.lower()
    # For a call that may have been made, no answer isn't a decision.
    if not line or (is_unknown and choice not in {"again", "done"}):
        return None
    return Reply(is_approved=choice in {"y", "yes", "again"})


def failure_of(event: WireEvent) -> str | None:
    """Return why the run failed, from its last event; None if it has an answer."""
    data = event["data"]
    if data["stopped_reason"] in SUCCESS_REASONS:
        return None
    reason: str = data["detail"] or data["stopped_reason"]
    return reason


def _describe_result(data: Mapping[str, Any]) -> str:
    lines = (data.get("content_preview") or data["content"]).strip().splitlines()
    first = lines[0] if lines else ""
    is_cut = len(lines) > 1 or len(first) > MAX_RESULT_CHARS
    label = f"{escape_line(data['name'])}{' failed' if data.get('is_error') else ''}"
    return f"  → {label}: {escape_line(first[:MAX_RESULT_CHARS])}{' …' if is_cut else ''}"


def _count(items: Any, noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"
