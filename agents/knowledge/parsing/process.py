"""Starts the child process that parses a file, and kills it when it is late."""

import json
import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path, PurePath

from agents import file_types
from agents.engine import sentences
from agents.engine.sentences import Sentence as _
from agents.tools import sandbox

from . import libreoffice
from .parsers.values import (
    MAX_CHARS,
    NeedsConversion,
    NeedsRecognition,
    ParsedDocument,
    ParsedPart,
    UnreadableDocument,
)

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 600.0
MAX_FILE_BYTES = 200_000_000
PROGRAM = Path(__file__).with_name("parser_process.py")
DOCUMENT_PARSER = sandbox.Worker(
    name="document parser",
    program=str(PROGRAM),
    readable=(str(PROGRAM.parent), *sandbox.CPU_FACTS),
    memory_bytes=1_500_000_000,
    max_memory_bytes=4_000_000_000,  # for the models that read images
    open_files=256,
    output_bytes=MAX_CHARS * 6,
    nice=10,
    environment={"OMP_NUM_THREADS": "1"},
    modules=(file_types, sentences),
)
CPU_SECONDS = 60.0
MODEL_THREADS = 4

CRASHED = _("This file can't be read: its content makes the parser crash.")
TOO_LATE = _("Reading took longer than %(seconds)s s. Split the file and try again.")
TOO_MUCH_TEXT = _("This file contains too much text. Split it and upload the parts.")
TOO_LARGE = _("This file is larger than %(size)s MB.", size=MAX_FILE_BYTES // 1_000_000)
KILLED = _("This file needs too much memory or time to be read.")

Progress = Callable[[int, int], None]


def parse(
    path: str | Path,
    name: str,
    *,
    mime_type: str = "",
    progress: Progress | None = None,
    deadline: float = DEADLINE_SECONDS,
    recognizes: bool = True,
) -> ParsedDocument:
    """Parse a file in a child process; raise UnreadableDocument with a sentence for the user.

    Without `recognizes`, NeedsRecognition is raised for a file with images to read.

    `progress` is called with what is done and the total, several times a second; if it raises,
    the child is killed and the exception goes on.
    """
    if os.stat(path).st_size > MAX_FILE_BYTES:
        raise UnreadableDocument(TOO_LARGE)
    end = time.monotonic() + deadline
    source = os.path.abspath(path)
    request = {
        "path": source,
        "name": name,
        "mime_type": mime_type,
        "seconds": deadline,
        "recognizes": recognizes,
    }
    grant = sandbox.Grant(
        seconds=deadline,
        cpu_seconds=min(deadline, CPU_SECONDS),
        max_cpu_seconds=deadline * MODEL_THREADS,
        readable=[source],
    )
    reply = _Reply(progress)
    try:
        ended = sandbox.run(
            DOCUMENT_PARSER, request, grant, on_output=reply.add, report=reply.report
        )
    except NeedsConversion as needed:
        with tempfile.TemporaryDirectory(prefix="office-") as folder:
            converted = libreoffice.convert(
                source, needed.kind, Path(folder), seconds=deadline, report=reply.report
            )
            return parse(
                converted,
                f"{PurePath(name).stem}{converted.suffix}",  # it isn't converted twice
                progress=progress,
                deadline=end - time.monotonic(),
                recognizes=recognizes,
            )
    except TimeoutError as error:
        raise UnreadableDocument(TOO_LATE.fill(seconds=f"{deadline:.0f}")) from error
    except sandbox.WorkerFailed as error:
        raise UnreadableDocument(TOO_MUCH_TEXT) from error
    if reply.document is not None:
        return reply.document
    logger.warning("The parser ended with %s: %s", ended.code, ended.complaint[-4_000:])
    is_over_limit = ended.code in (-signal.SIGKILL, -signal.SIGXCPU)
    is_over_limit |= "memory allocation" in ended.complaint
    raise UnreadableDocument(KILLED if is_over_limit else CRASHED)


class _Reply:
    """The lines that a child writes, put together as a document."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.document: ParsedDocument | None = None
        self.parts: list[ParsedPart] = []
        self.line = bytearray()
        self.done = self.total = 0

    def report(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total)

    def add(self, piece: bytes) -> None:
        self.line += piece
        if b"\n" not in piece:
            return
        *lines, self.line = self.line.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "error" in message:
                raise UnreadableDocument(sentences.unpack(message["error"]))
            if "needs_conversion" in message:
                raise NeedsConversion(message["needs_conversion"])
            if "needs_recognition" in message:
                raise NeedsRecognition
            if "part" in message:
                self.parts.append(ParsedPart(**message["part"]))
            if "progress" in message:
                self.done, self.total = message["progress"]
            if "done" in message:
                done = message["done"] | {"notes": sentences.unpack(message["done"]["notes"])}
                self.document = ParsedDocument(parts=self.parts, **done)
