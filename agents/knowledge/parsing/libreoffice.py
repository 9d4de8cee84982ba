"""Converts Word and PowerPoint files from before 2007 with LibreOffice, if it is installed."""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from agents.engine.sentences import Sentence as _
from agents.tools import sandbox

from .parsers.values import UnreadableDocument

logger = logging.getLogger(__name__)

LIBREOFFICE = sandbox.Worker(
    name="LibreOffice",
    readable=(
        *("/etc/libreoffice", "/var/lib/libreoffice", "/var/spool/libreoffice"),
        *("/etc/fonts", "/var/cache/fontconfig", *sandbox.CPU_FACTS),
    ),
    memory_bytes=2_000_000_000,
    file_bytes=200_000_000,
    open_files=256,
    nice=10,
    # It doesn't start without a socket, for a second window that is never opened.
    has_silent_sockets=True,
)
MAX_SECONDS = 120.0
# Macros, and links to other files, are never run or followed.
SETTINGS = """\
<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
</oor:items>
"""
NOT_INSTALLED = _(
    "This file is in an old Microsoft format, and LibreOffice isn't installed on the server. "
    "Save it as DOCX or PPTX and try again."
)
TOO_LATE = _(
    "Converting this file took longer than %(seconds)s s. "
    "Save it as DOCX or PPTX and try again."
)
NOT_CONVERTED = _(
    "LibreOffice can't convert this file. It may be damaged or password-protected."
)


# How each kind is read, named so that a file can't choose, and what is written.
FILTERS = {"word": ("MS Word 97", "docx"), "powerpoint": ("MS PowerPoint 97", "pptx")}


def convert(
    path: str,
    kind: str,
    folder: Path,
    *,
    seconds: float,
    report: Callable[[], None] = lambda: None,
) -> Path:
    """Write the file in today's format into an empty folder; raise UnreadableDocument."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        raise UnreadableDocument(NOT_INSTALLED)
    reader, ending = FILTERS[kind]
    profile = folder / "profile"
    settings = profile / "user" / "registrymodifications.xcu"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    source = folder / "document"
    source.symlink_to(path)
    command = [
        *(os.path.realpath(program), f"-env:UserInstallation={profile.as_uri()}"),
        *("--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck"),
        *(f"--infilter={reader}", "--convert-to", ending),
        *("--outdir", str(folder), str(source)),
    ]
    limit = min(seconds, MAX_SECONDS)
    grant = sandbox.Grant(
        seconds=limit,
        readable=[path],
        writable=[str(folder)],
        environment={"HOME": str(folder), "TMPDIR": str(folder), "PATH": "/usr/bin:/bin"},
    )
    try:
        ended = sandbox.run(LIBREOFFICE, {}, grant, program=command, report=report)
    except TimeoutError as error:
        raise UnreadableDocument(TOO_LATE.fill(seconds=f"{limit:.0f}")) from error
    except sandbox.WorkerFailed as error:
        raise UnreadableDocument(NOT_CONVERTED) from error
    converted = folder / f"document.{ending}"
    # A link could lead to a file that only the server can read.
    if ended.code or converted.is_symlink() or not converted.is_file():
        logger.info("LibreOffice ended with %s: %s", ended.code, ended.complaint[-500:])
        raise UnreadableDocument(NOT_CONVERTED)
    return converted
