"""Safe terminal output of commands with text from models, tools and other users."""

from pathlib import PurePath
from typing import Any

from django.core.management.base import BaseCommand, OutputWrapper

from .escapes import escape_controls


class TerminalOutput(OutputWrapper):
    """A terminal stream that never passes on control sequences in others' text."""

    @property
    def stream(self) -> Any:
        """The stream itself, for writers that escape what they write."""
        return self._out

    def write(  # type: ignore[override]  # same as OutputWrapper
        self, msg: Any = "", style_func: Any = None, ending: str | None = None
    ) -> None:
        # Before the style, which is our own control sequence.
        super().write(escape_controls(str(msg)), style_func, ending)


class TerminalCommand(BaseCommand):
    """A command whose whole output, errors included, is safe to print."""

    program = "manage.py"  # as it was called
    stdout: TerminalOutput
    stderr: TerminalOutput

    def __init__(self, stdout: Any = None, stderr: Any = None, **options: Any) -> None:
        super().__init__(stdout, stderr, **options)
        self.stdout = _wrap_output(self.stdout)
        self.stderr = _wrap_output(self.stderr)

    def run_from_argv(self, argv: list[str]) -> None:
        self.program = PurePath(argv[0]).name
        super().run_from_argv(argv)

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
