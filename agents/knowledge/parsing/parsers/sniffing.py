"""Finds out what a file is from its content; its name only decides between kinds of text."""

import re
from dataclasses import dataclass
from io import BytesIO
from zipfile import is_zipfile

from agents import file_types
from agents.engine.sentences import Sentence as _

from .languages import LANGUAGES
from .ole import CompoundFile
from .values import OLD_OFFICE, PROTECTED, SourceFile, UnreadableDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentType:
    """A kind of document: the module that parses it, and how it is recognized."""

    label: str
    parser: str
    endings: tuple[str, ...]
    contents: tuple[str, ...] = ()  # what `file_types.sniff` says of it, unless it is text
    mime_types: tuple[str, ...] = ()  # what a web server says of it
    is_text: bool = False


PDF = DocumentType(
    label="PDF",
    parser="pdf",
    endings=(".pdf",),
    contents=(file_types.PDF,),
)
DOCX = DocumentType(
    label=_("Word document"),
    parser="docx",
    endings=(".docx", ".docm", ".dotx", ".dotm"),
    contents=(file_types.DOCX,),
)
PPTX = DocumentType(
    label=_("PowerPoint presentation"),
    parser="pptx",
    endings=(".pptx", ".pptm", ".ppsx", ".ppsm", ".potx"),
    contents=(file_types.PPTX,),
)
ODT = DocumentType(
    label=_("OpenDocument text"),
    parser="odt",
    endings=(".odt", ".ott", ".odp", ".otp"),
    contents=(file_types.ODT, file_types.ODP),
)
RTF = DocumentType(
    label=_("RTF document"),
    parser="rtf",
    endings=(".rtf",),
    contents=(file_types.RTF,),
)
OUTLOOK = DocumentType(
    label=_("Outlook message"),
    parser="outlook",
    endings=(".msg",),
)
BINARY_OFFICE = DocumentType(
    label=_("old Office file"),
    parser="old_office",
    endings=(".doc", ".ppt", ".pps"),
)
SPREADSHEET = DocumentType(
    label=_("spreadsheet"),
    parser="spreadsheet",
    endings=(".xlsx", ".xlsm", ".xlsb", ".xltx", ".xls", ".ods"),
    contents=(file_types.XLSX, file_types.ODS),
)
DELIMITED = DocumentType(
    label=_("CSV file"),
    parser="delimited",
    endings=(".csv", ".tsv"),
    mime_types=("text/csv", "text/tab-separated-values"),
    is_text=True,
)
EPUB = DocumentType(
    label=_("EPUB book"),
    parser="epub",
    endings=(".epub",),
    contents=(file_types.EPUB,),
)
HTML = DocumentType(
    label=_("web page"),
    parser="html",
    endings=(".html", ".htm", ".xhtml", ".svg"),
    mime_types=("text/html", "application/xhtml+xml"),
    is_text=True,
)
MAIL = DocumentType(
    label=_("email"),
    parser="mail",
    endings=(".eml",),
    mime_types=("message/rfc822",),
    is_text=True,
)
MARKDOWN = DocumentType(
    label=_("Markdown file"),
    parser="markdown_file",
    endings=(".md", ".markdown", ".mdx"),
    mime_types=("text/markdown",),
    is_text=True,
)
MARKUP = DocumentType(
    label=_("text with markup"),
    parser="markup",
    endings=(".rst", ".org", ".tex", ".ltx"),
    mime_types=("text/x-rst", "text/org", "application/x-tex"),
    is_text=True,
)
NOTEBOOK = DocumentType(
    label=_("notebook"),
    parser="notebook",
    endings=(".ipynb",),
    mime_types=("application/x-ipynb+json",),
    is_text=True,
)
CODE = DocumentType(
    label=_("source code"),
    parser="code",
    endings=tuple(LANGUAGES),
    is_text=True,
)
IMAGE = DocumentType(
    label=_("image"),
    parser="image",
    endings=(
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".webp",
        ".bmp",
        ".tif",
        ".tiff",
        ".heic",
        ".heif",
        ".avif",
    ),
)
TEXT = DocumentType(
    label=_("text file"),
    parser="plain",
    endings=(".txt", ".text", ".log", ".json", ".yaml", ".yml"),
    is_text=True,
)
# All that can be read. What is expected and found follows from it, and what a folder offers.
TYPES = (
    PDF,
    DOCX,
    PPTX,
    ODT,
    RTF,
    BINARY_OFFICE,
    SPREADSHEET,
    DELIMITED,
    EPUB,
    HTML,
    MAIL,
    OUTLOOK,
    MARKDOWN,
    MARKUP,
    NOTEBOOK,
    CODE,
    IMAGE,
    TEXT,
)
BY_ENDING = {ending: kind for kind in TYPES for ending in kind.endings}
BY_MIME_TYPE = {mime_type: kind for kind in TYPES for mime_type in kind.mime_types}
# The main stream of compound files.
BY_STREAM = {
    "__properties_version1.0": OUTLOOK,
    "workbook": SPREADSHEET,
    "book": SPREADSHEET,
    "worddocument": BINARY_OFFICE,
    "powerpoint document": BINARY_OFFICE,
}
BY_CONTENT = {content: kind for kind in TYPES for content in kind.contents}

HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*\?>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9-]{1,40}:[ \t]")
MAIL_HEADERS = (b"from:", b"received:", b"return-path:", b"mime-version:", b"message-id:")

ARCHIVE = _("Archives can't be read. Unpack this one and upload its files.")
PROGRAM = _("Programs can't be read as documents.")
MEDIA = _("Audio and video files can't be read as documents.")
UNKNOWN = _("This file type isn't supported.")
REASONS = {
    **dict.fromkeys(file_types.ARCHIVE_TYPES, ARCHIVE),
    **dict.fromkeys((file_types.SQLITE,), UNKNOWN),
    file_types.PROGRAM: PROGRAM,
}


def sniff(source: SourceFile) -> DocumentType:
    """Return what a file is; raise UnreadableDocument if nothing fits."""
    declared = source.mime_type.partition(";")[0].strip().lower()
    expected = BY_ENDING.get(source.suffix) or BY_MIME_TYPE.get(declared)
    if expected in (TEXT, BINARY_OFFICE):
        expected = None  # such a file can contain anything
    actual = _sniff_binary(source) or _sniff_text(source.data, expected)
    if expected in (None, actual) or (expected.is_text and actual.is_text):
        return actual
    raise UnreadableDocument(
        _(
            "The file name says %(suffix)s, but the content is different (%(kind)s). "
            "Rename the file and upload it again.",
            suffix=source.suffix or _("another type"),
            kind=actual.label,
        )
    )


def _sniff_binary(source: SourceFile) -> DocumentType | None:
    """Return what isn't text; None for text and what may be."""
    data = source.data
    file = BytesIO(data)
    content = file_types.sniff(file)
    if content == file_types.OLE:
        # What is embedded in such a file has a folder of its own.
        for name in CompoundFile(data, source.work).names():
            if name == "EncryptedPackage":
                raise UnreadableDocument(PROTECTED)
            if kind := BY_STREAM.get(name.casefold()):
                return kind
        raise UnreadableDocument(OLD_OFFICE)
    if content == file_types.ZIP and data.startswith(b"PK\x03\x04") and not is_zipfile(file):
        raise UnreadableDocument(_("This file is damaged or incomplete."))
    if content in REASONS or content.startswith(("audio/", "video/")):
        raise UnreadableDocument(REASONS.get(content, MEDIA))
    return IMAGE if content.startswith("image/") else BY_CONTENT.get(content)


def _sniff_text(data: bytes, expected: DocumentType | None) -> DocumentType:
    start = data[:2_000]
    if HTML_START.match(start.lstrip(b"\xef\xbb\xbf")):
        return HTML
    if expected is not None and expected.is_text:
        return expected
    head = data[:20_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    lines = [line for line in head.split(b"\n") if line[:1] not in (b" ", b"\t")]
    are_headers = len(lines) >= 3 and all(HEADER_LINE.match(line) for line in lines)
    if are_headers and sum(line.lower().startswith(MAIL_HEADERS) for line in lines) >= 2:
        return MAIL
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        zero_count = start[1::2].count(0) + start[::2].count(0)
        if zero_count * 3 < len(start):
            raise UnreadableDocument(UNKNOWN)
    return TEXT
