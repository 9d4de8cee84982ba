"""Finds out what a file is from its content; its name only decides between kinds of text."""

import re
from enum import StrEnum
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from .values import Source, UnreadableDocument


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
IMAGE_MAGIC = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ARCHIVE_MAGIC = (
    *(b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
    *(b"PK\x05\x06", b"PK\x07\x08"),
)
PROGRAM_MAGIC = (b"MZ", b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\0asm")
# By the brand in the `ftyp` box: HEIC and AVIF.
IMAGE_BRANDS = (b"heic", b"heix", b"heim", b"mif1", b"avif", b"avis")
MEDIA_MAGIC = (b"OggS", b"fLaC", b"ID3", b"\x1aE\xdf\xa3")
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


def sniff(source: Source) -> Format:
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
    if data.startswith(IMAGE_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return Format.IMAGE
    if data[4:8] == b"ftyp" and data[8:12] in IMAGE_BRANDS:
        return Format.IMAGE
    if data.startswith(b"PK\x03\x04"):
        return _sniff_zip(data)
    if data.startswith(OLE_MAGIC):
        return _sniff_ole(data)
    if data.startswith(PROGRAM_MAGIC):
        raise UnreadableDocument(PROGRAM)
    if data.startswith(ARCHIVE_MAGIC) or data[257:262] == b"ustar":
        raise UnreadableDocument(ARCHIVE)
    if data.startswith(MEDIA_MAGIC) or data[4:8] == b"ftyp" or data[:4] == b"RIFF":
        raise UnreadableDocument(MEDIA)
    # Readers accept something in front of the header.
    if b"%PDF-" in data[:1024]:
        return Format.PDF
    return None


def _sniff_zip(data: bytes) -> Format:
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = set(archive.namelist())
            kind = archive.open("mimetype").read(100) if "mimetype" in names else b""
    except (BadZipFile, OSError, RuntimeError, NotImplementedError, ValueError) as error:
        raise UnreadableDocument("This file is damaged or incomplete.") from error
    if kind.startswith(b"application/epub+zip") or "META-INF/container.xml" in names:
        return Format.EPUB
    if kind.startswith(b"application/vnd.oasis.opendocument.spreadsheet"):
        return Format.SPREADSHEET
    for folder, office in (
        ("word/", Format.DOCX),
        ("ppt/", Format.PPTX),
        ("xl/", Format.SPREADSHEET),
    ):
        if "[Content_Types].xml" in names and any(name.startswith(folder) for name in names):
            return office
    raise UnreadableDocument(ARCHIVE)


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
        odd = start[1::2].count(0) + start[::2].count(0)
        if odd * 3 < len(start):
            raise UnreadableDocument(UNKNOWN)
    return Format.TEXT


def _is_mail(data: bytes) -> bool:
    head = data[:20_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    lines = [line for line in head.split(b"\n") if line[:1] not in (b" ", b"\t")]
    if len(lines) < 3 or not all(HEADER_LINE.match(line) for line in lines):
        return False
    return sum(line.lower().startswith(MAIL_HEADERS) for line in lines) >= 2
