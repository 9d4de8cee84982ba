"""Safe terminal output of text from models, tools and other users."""

import json
from typing import Any
from unicodedata import category

from django.core.management.base import BaseCommand, OutputWrapper

# Line breaks and tabs are layout; joiners are part of emoji and several scripts.
ALLOWED_CHARS = {"\n", "\t", "\u200c", "\u200d"}
CONTROL_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def escape_controls(text: str) -> str:
    """Write out each character that a terminal would interpret or hide."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_sequence(c) if _is_control(c) else c for c in text)


def escape_line(text: str) -> str:
    """Escape one line, including its line breaks."""
    return "".join(c if c.isprintable() else _escape_sequence(c) for c in text)


def _is_control(char: str) -> bool:
    return category(char) in CONTROL_CATEGORIES and char not in ALLOWED_CHARS


def _escape_sequence(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


class TerminalOutput(OutputWrapper):
    """A terminal stream that never passes on control sequences in others' text."""

    def write(  # type: ignore[override]  # same as OutputWrapper
        self, msg: Any = "", style_func: Any = None, ending: str | None = None
    ) -> None:
        # Before the style, which is our own control sequence.
        super().write(escape_controls(str(msg)), style_func, ending)

    def write_json(self, value: Any) -> None:
        """Write a line of JSON that is safe in a terminal and valid for programs."""
        text = json.dumps(value, ensure_ascii=False)
        super().write("".join(json.dumps(c)[1:-1] if _is_control(c) else c for c in text))


class TerminalCommand(BaseCommand):
    """A command whose whole output, errors included, is safe to print."""

    def __init__(self, stdout: Any = None, stderr: Any = None, **options: Any) -> None:
        super().__init__(stdout, stderr, **options)
        self.stdout = _wrap_output(self.stdout)
        self.stderr = _wrap_output(self.stderr)

    def execute(self, *args: Any, **options: Any) -> Any:
        if out := options.pop("stdout", None):
            self.stdout = TerminalOutput(out)
        if errors := options.pop("stderr", None):
            self.stderr = TerminalOutput(errors)
        return super().execute(*args, **options)


def _wrap_output(output: OutputWrapper) -> TerminalOutput:
    stream: Any = output._out
    safe = TerminalOutput(stream, output.ending)
    safe.style_func = output.style_func
    return safe
