"""E-mails: headers, the body, and attachments that are documents."""

import re
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import cast

from agents.engine.sentences import Sentence as _

from . import html, markdown
from .archive import DAMAGED
from .encoding import decode_leniently
from .values import ParsedDocument, ParsedPart, SourceFile, UnreadableDocument

HEADERS = ("From", "To", "Cc", "Date", "Subject")
MAX_ATTACHMENTS = 20
MAX_PARTS = 200
# The library's time for a header grows with the square of its length.
MAX_HEADER_CHARS = 10_000
LONG_HEADER = re.compile(
    rb"^content-(?:type|disposition|transfer-encoding)[ \t]*:(?:[^\r\n]|\r?\n[ \t]){10000}",
    re.IGNORECASE | re.MULTILINE,
)


def parse(source: SourceFile) -> ParsedDocument:
    if LONG_HEADER.search(source.data):
        raise UnreadableDocument(DAMAGED)
    message = message_from_bytes(source.data, policy=policy.default)
    subject = _header(message, "Subject")
    head = "\n".join(
        f"**{name}:** {value}  " for name in HEADERS if (value := _header(message, name))
    )
    attachments, notes = _read_attachments(message, source)
    # The message as text, or else as HTML.
    readable: dict[str, str] = {}
    for number, part in enumerate(message.walk()):
        kind = part.get_content_type()
        if number < MAX_PARTS and kind in {"text/plain", "text/html"} and not _filename(part):
            data = part.get_payload(decode=True)
            charset = part.get_content_charset() or ""
            text = decode_leniently(data, charset) if isinstance(data, bytes) else ""
            readable.setdefault(kind, text)
    body = markdown.escape(readable.get("text/plain", ""))
    if not body.strip() and "text/html" in readable:
        body = html.convert(readable["text/html"], source.work).text
    names = ", ".join(name for name, _ in attachments)
    blocks = [head, body, f"**Attachments:** {names}" if names else ""]
    parts = [ParsedPart(text=markdown.join(blocks))]
    parts += [part for _, attached in attachments for part in attached]
    return ParsedDocument(title=subject, parts=parts, notes=notes)


def _header(message: EmailMessage, name: str) -> str:
    raw = next(
        (str(value) for key, value in message.raw_items() if key.lower() == name.lower()), ""
    )
    if len(raw) > MAX_HEADER_CHARS:
        return f"{markdown.collapse(raw[:MAX_HEADER_CHARS])}…"
    try:
        return markdown.collapse(str(message.get(name, "")))
    except (ValueError, IndexError, AttributeError):  # malformed: the parser's own errors
        return ""


def _filename(part: object) -> str:
    try:
        return cast(EmailMessage, part).get_filename() or ""
    except (ValueError, LookupError):
        return ""


def _read_attachments(
    message: EmailMessage, source: SourceFile
) -> tuple[list[tuple[str, list[ParsedPart]]], list[str]]:
    """Return the attachments' names and parts, and notes about those that can't be read."""
    attachments: list[tuple[str, list[ParsedPart]]] = []
    notes: list[str] = []
    for attachment in message.walk():
        name = _filename(attachment)
        data = attachment.get_payload(decode=True)
        if not name or not isinstance(data, bytes):
            continue
        parts: list[ParsedPart] = []
        attachments.append((name, parts))
        if source.depth or len(attachments) > MAX_ATTACHMENTS:
            continue
        parts += read_attachment(source, name, data, notes)
    return attachments, notes


def read_attachment(
    source: SourceFile, name: str, data: bytes, notes: list[str]
) -> list[ParsedPart]:
    """Return an attachment's parts under its name; add a note if it can't be read."""
    from . import parse as parse_any

    try:
        parsed = parse_any(replace(source, data=data, name=name, mime_type="", depth=1))
    except UnreadableDocument as error:
        notes.append(
            _(
                "The attachment %(words)s wasn't read. %(sentence)s",
                words=repr(name),
                sentence=error,
            )
        )
        return []
    parts: list[ParsedPart] = []
    for part in parsed.parts:
        # Numbers are the e-mail's.
        part_label = part.label or (f"{part.number}" if part.kind != "text" else "")
        label = f"{name}: {part_label}" if part_label else name
        parts.append(replace(part, number=1, kind="text", label=label[:200]))
    return parts
