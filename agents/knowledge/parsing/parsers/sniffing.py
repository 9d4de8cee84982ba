"""Finds out what a file is from its content; its name only decides between kinds of text."""

import re
from enum import StrEnum
from io import BytesIO
from zipfile import is_zipfile

from agents import file_types

from .values import SourceFile, UnreadableDocument


class Format(StrEnum):
    PDF = "PDF"
    DOCX = "Word document"
    PPTX = "PowerPoint presentation"
    SPREADSHEET = "spreadsheet"
    DELIMITED = "CSV file"
    EPUB = "EPUB book"
    HTML = "web page"
    MAIL = "e-mail"
    MARKDOWN = "Markdown file"
    TEXT = "text file"
    IMAGE = "image"


BY_SUFFIX = {
    **dict.fromkeys((".pdf",), Format.PDF),
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), Format.DOCX),
    **dict.fromkeys((".pptx", ".pptm", ".ppsx", ".ppsm", ".potx"), Format.PPTX),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xltx", ".xls", ".ods"), Format.SPREADSHEET),
    **dict.fromkeys((".csv", ".tsv"), Format.DELIMITED),
    **dict.fromkeys((".epub",), Format.EPUB),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".svg"), Format.HTML),
    **dict.fromkeys((".eml",), Format.MAIL),
    **dict.fromkeys((".md", ".markdown", ".mdx"), Format.MARKDOWN),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"), Format.IMAGE),
    **dict.fromkeys((".tif", ".tiff", ".heic", ".heif", ".avif"), Format.IMAGE),
}
BY_MIME_TYPE = {
    "text/html": Format.HTML,
    "application/xhtml+xml": Format.HTML,
    "text/csv": Format.DELIMITED,
    "text/tab-separated-values": Format.DELIMITED,
    "text/markdown": Format.MARKDOWN,
    "message/rfc822": Format.MAIL,
}
TEXTUAL = {Format.DELIMITED, Format.HTML, Format.MAIL, Format.MARKDOWN, Format.TEXT}
HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*\?>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9-]{1,40}:[ \t]")
MAIL_HEADERS = (b"from:", b"received:", b"return-path:", b"mime-version:", b"message-id:")

ARCHIVE = "Archives can't be read. Unpack it and upload the files in it."
PROGRAM = "Programs can't be read as documents."
MEDIA = "Audio and video files can't be read as documents."
OLD_OFFICE = (
    "This file has an old Microsoft format. Save it as DOCX, PPTX or EML and try again."
)
PROTECTED = "This file is password-protected. Remove the password and upload it again."
UNKNOWN = "This file type isn't supported."
BINARY = {
    file_types.PDF: Format.PDF,
    file_types.DOCX: Format.DOCX,
    file_types.PPTX: Format.PPTX,
    file_types.XLSX: Format.SPREADSHEET,
    file_types.ODS: Format.SPREADSHEET,
    file_types.EPUB: Format.EPUB,
}
REASONS = {
    **dict.fromkeys(file_types.ARCHIVE_TYPES, ARCHIVE),
    **dict.fromkeys((file_types.ODT, file_types.ODP, file_types.SQLITE), UNKNOWN),
    file_types.PROGRAM: PROGRAM,
}


def sniff(source: SourceFile) -> Format:
    """Return the file's format; raise UnreadableDocument if none fits."""
    expected = BY_SUFFIX.get(source.suffix) or BY_MIME_TYPE.get(
        source.mime_type.partition(";")[0].strip().lower()
    )
    found = _sniff_binary(source.data) or _sniff_text(source.data, expected)
    if expected in (None, found) or (expected in TEXTUAL and found in TEXTUAL):
        return found
    raise UnreadableDocument(
        f"The name ends with {source.suffix or 'another type'}, but the content is a {found}. "
        "Rename the file and upload it again."
    )


def _sniff_binary(data: bytes) -> Format | None:
    """Return the format of what isn't text; None for text and what may be."""
    file = BytesIO(data)
    mime_type = file_types.sniff(file)
    if mime_type == file_types.OLE:
        return _sniff_ole(data)
    if mime_type == file_types.ZIP and data.startswith(b"PK\x03\x04") and not is_zipfile(file):
        raise UnreadableDocument("This file is damaged or incomplete.")
    if mime_type in REASONS or mime_type.startswith(("audio/", "video/")):
        raise UnreadableDocument(REASONS.get(mime_type, MEDIA))
    return Format.IMAGE if mime_type.startswith("image/") else BINARY.get(mime_type)


def _sniff_ole(data: bytes) -> Format:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise UnreadableDocument(PROTECTED)
    if any(name.encode("utf-16-le") in data for name in ("Workbook", "Book")):
        return Format.SPREADSHEET
    raise UnreadableDocument(OLD_OFFICE)


def _sniff_text(data: bytes, expected: Format | None) -> Format:
    start = data[:2_000]
    if HTML_START.match(start.lstrip(b"\xef\xbb\xbf")):
        return Format.HTML
    if expected in TEXTUAL:
        return expected
    if _is_mail(data):
        return Format.MAIL
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        zero_count = start[1::2].count(0) + start[::2].count(0)
        if zero_count * 3 < len(start):
            raise UnreadableDocument(UNKNOWN)
    return Format.TEXT


def _is_mail(data: bytes) -> bool:
    head = data[:20_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    lines = [line for line in head.split(b"\n") if line[:1] not in (b" ", b"\t")]
    if len(lines) < 3 or not all(HEADER_LINE.match(line) for line in lines):
        return False
    return sum(line.lower().startswith(MAIL_HEADERS) for line in lines) >= 2
