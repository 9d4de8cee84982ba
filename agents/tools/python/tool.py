"""Runs Python code that a model wrote, with the chat's files and nothing else."""

import asyncio
import logging
import signal
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.engine import call_context
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolInput, ToolResult, text_argument
from agents.tools import sandbox
from agents.tools.progress import wait_with_progress
from agents.tools.sandbox.child import EXIT_NOT_CONFINED

from .code_worker import EXIT_ERROR, EXIT_MEMORY
from .files import (
    MAX_FILE_BYTES,
    MAX_FILES,
    ChatFile,
    CodeFolder,
    FileCheck,
    FolderTooLarge,
)

MAX_CODE_CHARS = 50_000
MAX_SECONDS = 30
MEMORY_MB = 256
MAX_TEXT_CHARS = 50_000
END_CHARS = 10_000  # of a text that is too long
MAX_OUTPUT_BYTES = 1_000_000
# Two processes of 256 MB at once; a call waits for its turn in a thread of its own.
SLOTS = sandbox.FairSlots(2, per_owner=1)
WAITING_SECONDS = 60.0
THREADS = ThreadPoolExecutor(32, thread_name_prefix="run_python")
CODE_RUNNER = sandbox.Worker(
    name="Python code",
    program=str(Path(__file__).with_name("code_worker.py")),
    memory_bytes=MEMORY_MB * 2**20,
    file_bytes=MAX_FILE_BYTES,
    output_bytes=MAX_OUTPUT_BYTES,
    nice=5,
    runs_foreign_code=True,
    # Number libraries would start threads, which are refused.
    environment={
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
    },
)
PACKAGES = {"numpy": "numpy", "pandas": "pandas", "matplotlib": "matplotlib", "PIL": "Pillow"}
INSTALLED = [name for module, name in PACKAGES.items() if find_spec(module)]
UNAVAILABLE = _(
    "Python code can't be confined on this machine: that needs Linux 6.2 or later with "
    "Landlock and seccomp."
)

logger = logging.getLogger(__name__)


class _Stopped(Exception):
    """Raised in the thread when nobody waits for the result any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How the code ended: a sentence about it, unless it ended well."""

    output: str
    problem: Callable[[str], str] | None = None


class RunPythonTool:
    name = "run_python"
    description: str = _(
        "Runs Python code. Returns what it prints and, as in a notebook's cell, the value of "
        "the last expression. Use it to compute, to analyze the chat's files and to draw "
        "charts. Each call starts afresh: no variables of earlier calls remain. The chat's "
        "files, also those that tools made, are in the current folder, by their names. "
        "Files that the code writes there are displayed to the user: images (PNG, JPEG, "
        "WebP), SVG, CSV, JSON and text, up to %(files)s files of 5 MB. No network, no "
        "other files, no subfolders, no threads or processes; %(seconds)s s, %(memory)s MB. "
        "Packages besides the standard library: %(packages)s.",
        files=MAX_FILES,
        seconds=MAX_SECONDS,
        memory=MEMORY_MB,
        packages=", ".join(INSTALLED) or "–",
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "code": {
                "type": "string",
                "description": "For example: import csv; list(csv.reader(open('a.csv')))",
            }
        },
        "required": ["code"],
    }
    effect = "read"
    is_untrusted = True  # it can print what others have written into the chat's files

    def __init__(
        self,
        check: FileCheck,
        files: Callable[[], Awaitable[Sequence[ChatFile]]] | None = None,
    ) -> None:
        self.check = check
        self.files = files
        self.timeout: float = MAX_SECONDS

    @property
    def unavailable(self) -> str:
        """Why it can't be used on this machine, if so."""
        return "" if sandbox.confines_foreign_code() else UNAVAILABLE

    async def execute(self, input: ToolInput, /) -> ToolResult:
        code = text_argument(input, "code")
        if self.unavailable:
            return ToolResult(error=self.unavailable)
        if not code.strip():
            return ToolResult(error=_("Enter Python code in `code`."), mendable=True)
        if len(code) > MAX_CODE_CHARS:
            return ToolResult(
                error=_(
                    "The code is %(count)s characters long; the limit is %(limit)s.",
                    count=f"{len(code):,}",
                    limit=f"{MAX_CODE_CHARS:,}",
                ),
                mendable=True,
            )
        files = await self.files() if self.files is not None else ()
        owner = call_context.current().user_id
        return await wait_with_progress(self._run_in_thread(code, files, owner))

    async def _run_in_thread(
        self, code: str, files: Sequence[ChatFile], owner: str
    ) -> ToolResult:
        stopped = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            # With the variables of the call, which say whose it is.
            run = partial(copy_context().run, self._run, code, files, owner, stopped)
            return await loop.run_in_executor(THREADS, run)
        except sandbox.NoFreeSlot:
            return ToolResult(error=_("Too much other code is running. Try again in a moment."))
        finally:
            stopped.set()

    def _run(
        self, code: str, files: Sequence[ChatFile], owner: str, stopped: threading.Event
    ) -> ToolResult:
        with (
            SLOTS.slot(owner, WAITING_SECONDS),
            tempfile.TemporaryDirectory(prefix="python-") as path,
        ):
            folder = CodeFolder(Path(path))
            notes = folder.add(files)
            ended = self._run_code(code, folder, stopped)
            attachments, file_notes = folder.written_files(self.check)
        parts = [_shorten(ended.output), *notes, *file_notes]
        text = "\n".join(part for part in parts if part)
        if ended.problem is not None:
            return ToolResult(
                error=ended.problem(text), mendable=True, attachments=tuple(attachments)
            )
        if not text and not attachments:
            text = _("The code ran and printed nothing. Print what you want to know.")
        return ToolResult(text, attachments=tuple(attachments))

    def _run_code(self, code: str, folder: CodeFolder, stopped: threading.Event) -> _Ended:
        output = bytearray()

        def report() -> None:
            if stopped.is_set():
                raise _Stopped
            folder.check_size()

        def ended(problem: Callable[[str], str] | None = None) -> _Ended:
            return _Ended(output=output.decode("utf-8", "replace").rstrip(), problem=problem)

        seconds = min(MAX_SECONDS, self.timeout)
        temporary = str(folder.temporary)
        grant = sandbox.Grant(
            seconds=seconds,
            writable=[str(folder.path), temporary],
            environment=dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), temporary),
        )
        try:
            reply = sandbox.run(
                CODE_RUNNER,
                {"code": code, "folder": str(folder.path)},
                grant,
                on_output=output.extend,
                report=report,
            )
        except TimeoutError:
            return ended(
                lambda text: _(
                    "The code didn't finish within %(seconds)s s and was stopped.\n%(output)s",
                    seconds=f"{seconds:g}",
                    output=text,
                )
            )
        except sandbox.WorkerFailed:
            return ended(
                lambda text: _(
                    "The code printed more than 1 MB and was stopped. Print less.\n%(output)s",
                    output=text,
                )
            )
        except FolderTooLarge:
            return ended(
                lambda text: _(
                    "The code wrote too many or too large files and was stopped.\n%(output)s",
                    output=text,
                )
            )
        if reply.code == EXIT_NOT_CONFINED and reply.complaint:
            logger.error("Python code wasn't run: %s", reply.complaint.strip())
            return ended(lambda _text: UNAVAILABLE)
        return ended(_problem(reply.code))


def _problem(code: int) -> Callable[[str], str] | None:
    """Return what to say about an exit code; None if the code ended well."""
    if code == 0:
        return None
    if code == EXIT_ERROR:
        return lambda text: _("The code raised an error.\n%(output)s", output=text)
    if code == EXIT_MEMORY:
        return lambda text: _(
            "The code needed more memory than the limit of %(limit)s MB.\n%(output)s",
            limit=MEMORY_MB,
            output=text,
        )
    if code < 0:
        name = signal.Signals(-code).name
        return lambda text: _(
            "Python was ended by the signal %(name)s.\n%(output)s", name=name, output=text
        )
    return lambda text: _(
        "The code ended Python with the exit code %(code)s.\n%(output)s",
        code=code,
        output=text,
    )


def _shorten(text: str) -> str:
    """Return a text with its beginning and its end, where an error is."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    start = text[: MAX_TEXT_CHARS - END_CHARS]
    omitted = len(text) - MAX_TEXT_CHARS
    return f"{start}\n… {omitted:,} characters left out …\n{text[-END_CHARS:]}"
