"""E-mails: headers, the body, and attachments that are documents."""

import re
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import cast

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
    found, notes = _attachments(message, source)
    listed = ", ".join(name for name, _ in found)
    blocks = [head, _body(message, source), f"**Attachments:** {listed}" if listed else ""]
    parts = [ParsedPart(text=markdown.join(blocks))]
    parts += [part for _, parsed in found for part in parsed]
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


def _body(message: EmailMessage, source: SourceFile) -> str:
    """Return the message as text, or else as HTML."""
    readable: dict[str, str] = {}
    for number, part in enumerate(message.walk()):
        kind = part.get_content_type()
        if number < MAX_PARTS and kind in {"text/plain", "text/html"} and not _filename(part):
            readable.setdefault(kind, _text(part))
    plain = readable.get("text/plain", "")
    if plain.strip() or "text/html" not in readable:
        return markdown.escape(plain)
    return html.convert(readable["text/html"], source.work).text


def _text(part: EmailMessage) -> str:
    data = part.get_payload(decode=True)
    charset = part.get_content_charset() or ""
    return decode_leniently(data, charset) if isinstance(data, bytes) else ""


def _filename(part: object) -> str:
    try:
        return cast(EmailMessage, part).get_filename() or ""
    except (ValueError, LookupError):
        return ""


def _attachments(
    message: EmailMessage, source: SourceFile
) -> tuple[list[tuple[str, list[ParsedPart]]], list[str]]:
    """Return the attachments' names and parts, and notes about those that can't be read."""
    from . import parse as parse_any

    found: list[tuple[str, list[ParsedPart]]] = []
    notes = []
    for part in message.walk():
        name, data = _filename(part), part.get_payload(decode=True)
        if not name or not isinstance(data, bytes):
            continue
        if source.depth or len(found) >= MAX_ATTACHMENTS:
            found.append((name, []))
            continue
        try:
            parsed = parse_any(replace(source, data=data, name=name, mime_type="", depth=1))
        except UnreadableDocument as error:
            notes.append(f"The attachment {name!r} wasn't read. {error}")
            found.append((name, []))
            continue
        found.append((name, [_label(each, name) for each in parsed.parts]))
    return found, notes


def _label(part: ParsedPart, name: str) -> ParsedPart:
    """Return an attachment's part under its name; numbers are the e-mail's."""
    part_label = part.label or (f"{part.number}" if part.kind != "text" else "")
    label = f"{name}: {part_label}" if part_label else name
    return ParsedPart(text=part.text, label=label[:200], is_recognized=part.is_recognized)
