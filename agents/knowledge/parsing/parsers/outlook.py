"""Messages that Outlook saved (MSG)."""

import re
import struct
from datetime import UTC, datetime, timedelta

from . import html, mail, markdown
from .encoding import decode_leniently
from .ole import CompoundFile
from .values import ParsedDocument, ParsedPart, SourceFile

FOLDER = re.compile(r"^(__attach_version1\.0_#[0-9A-Fa-f]{8})/")
# The names of properties: what a message, or an attachment, has.
SUBJECT = "0037"
SENDER_NAME = "0C1A"
SENDER_ADDRESS = "5D01"
SENDER_OTHER = "0C1F"
TO = "0E04"
CC = "0E03"
BODY = "1000"
HTML = "1013"
LONG_NAME = "3707"
SHORT_NAME = "3704"
CONTENT = "3701"
SENT = 0x00390040
EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def parse(source: SourceFile) -> ParsedDocument:
    file = CompoundFile(source.data, source.work)
    subject = _text(file, "", SUBJECT)
    sender = _text(file, "", SENDER_NAME)
    address = _text(file, "", SENDER_ADDRESS) or _text(file, "", SENDER_OTHER)
    if "@" in address and address != sender:
        sender = f"{sender} <{address}>".strip()
    fields = {
        "From": sender,
        "To": _text(file, "", TO),
        "Cc": _text(file, "", CC),
        "Date": _sent(file),
        "Subject": subject,
    }
    head = "\n".join(
        f"**{name}:** {markdown.collapse(value)}  " for name, value in fields.items() if value
    )
    body = markdown.escape(_text(file, "", BODY))
    page = file.read(f"__substg1.0_{HTML}0102")
    if page and (not body.strip() or b"<table" in page.lower()):
        body = html.convert(decode_leniently(page), source.work).text or body
    notes: list[str] = []
    names: list[str] = []
    attached: list[ParsedPart] = []
    folders = dict.fromkeys(match[1] for name in file.names() if (match := FOLDER.match(name)))
    for number, folder in enumerate(folders):
        name = _text(file, folder, LONG_NAME) or _text(file, folder, SHORT_NAME)
        data = file.read(f"{folder}/__substg1.0_{CONTENT}0102")
        if not name or not data:
            continue
        names.append(name)
        if not source.depth and number < mail.MAX_ATTACHMENTS:
            attached += mail.read_attachment(source, name, data, notes)
    listed = f"**Attachments:** {', '.join(names)}" if names else ""
    parts = [ParsedPart(text=markdown.join([head, body, listed])), *attached]
    return ParsedDocument(title=markdown.collapse(subject), parts=parts, notes=notes)


def _text(file: CompoundFile, folder: str, key: str) -> str:
    """Return a property, which is in UTF-16 or in the sender's encoding."""
    prefix = f"{folder}/" if folder else ""
    if wide := file.read(f"{prefix}__substg1.0_{key}001F"):
        return wide.decode("utf-16-le", "replace").rstrip("\0")
    return decode_leniently(file.read(f"{prefix}__substg1.0_{key}001E")).rstrip("\0")


def _sent(file: CompoundFile) -> str:
    properties = file.read("__properties_version1.0")
    for start in range(32, len(properties) - 15, 16):
        key, ticks = struct.unpack_from("<I4xQ", properties, start)
        if key == SENT and ticks < 2**62:
            try:
                return (EPOCH + timedelta(microseconds=ticks // 10)).isoformat(" ", "minutes")
            except OverflowError:
                return ""
    return ""
