"""The type of a file by its content. A name only chooses between kinds of text."""

from pathlib import PurePath
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

from agents.engine.attachments import OTHER_TYPE, detect_type

HEAD_BYTES = 8_192
MAX_ZIP_NAMES = 5_000
TEXT = "text/plain"
ZIP = "application/zip"
OLE = "application/x-ole-storage"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"\x1f\x8b", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"{\\rtf", "application/rtf"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
)
# By the brand in the `ftyp` box of an ISO media file.
BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"heim", b"mif1", b"msf1"), "image/heic"),
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    b"qt  ": "video/quicktime",
}
VIDEO_CODECS = (b"V_VP", b"V_AV1", b"V_MPEG", b"V_THEORA")
ZIP_FOLDERS = {"word/": DOCX, "ppt/": PPTX, "xl/": XLSX}
ZIP_TYPES = {
    b"application/epub+zip",
    b"application/vnd.oasis.opendocument.text",
    b"application/vnd.oasis.opendocument.spreadsheet",
    b"application/vnd.oasis.opendocument.presentation",
}
ENCODINGS = ("utf-8", "cp932", "euc_jp")
# Kinds of text that only a name can tell apart, and old Office files.
TEXT_ENDINGS = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xml": "application/xml",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".eml": "message/rfc822",
    ".svg": "image/svg+xml",
    ".vtt": "text/vtt",
    ".srt": "application/x-subrip",
}
OLE_ENDINGS = {
    ".doc": "application/msword",
    ".xls": "application/vnd.ms-excel",
    ".ppt": "application/vnd.ms-powerpoint",
    ".msg": "application/vnd.ms-outlook",
}


def sniff(file: BinaryIO) -> str:
    """Return the type of an open file by its bytes, and rewind it."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    found = _by_signature(head) or _marked_text(head) or detect_type(head) or _media_type(head)
    if head.startswith(b"PK\x03\x04"):
        found = _zip_type(file)
    file.seek(0)
    return found or (TEXT if _is_text(head) else OTHER_TYPE)


def refine(mime_type: str, name: str) -> str:
    """Return the kind of text or old Office file, which only the name tells."""
    ending = PurePath(name).suffix.lower()
    if mime_type == TEXT:
        return TEXT_ENDINGS.get(ending, TEXT)
    return OLE_ENDINGS.get(ending, OLE) if mime_type == OLE else mime_type


def _by_signature(head: bytes) -> str:
    found = next((type for start, type in SIGNATURES if head.startswith(start)), "")
    if found == "image/bmp" and not (len(head) > 14 and head[6:10] == bytes(4)):
        return ""  # a text that begins with BM
    # Scanners and mail gateways put bytes before the header.
    return found or ("application/pdf" if b"%PDF-" in head[:1_024] else "")


def _media_type(head: bytes) -> str:
    if head[4:8] == b"ftyp":
        return BRANDS.get(head[8:12], "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        is_webm = b"webm" in head[:64]
        # A recording of sound only has a codec of sound only.
        has_picture = any(
            codec in head for codec in (b"V_VP", b"V_AV1", b"V_MPEG", b"V_THEORA")
        )
        is_sound = not has_picture and b"A_" in head
        return ("audio/" if is_sound else "video/") + ("webm" if is_webm else "x-matroska")
    return "video/x-msvideo" if head[:4] == b"RIFF" and head[8:12] == b"AVI " else ""


def _zip_type(file: BinaryIO) -> str:
    try:
        with ZipFile(file) as archive:
            names = archive.namelist()[:MAX_ZIP_NAMES]
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 100:
                declared = archive.read("mimetype").strip()
                return declared.decode() if declared in ZIP_TYPES else ZIP
    except (BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        return ZIP
    if "[Content_Types].xml" not in names:
        return ZIP
    folders = ZIP_FOLDERS.items()
    return next((type for start, type in folders if _has_folder(names, start)), ZIP)


def _has_folder(names: list[str], start: str) -> bool:
    return any(name.startswith(start) for name in names)


def _marked_text(head: bytes) -> str:
    """Recognize UTF-16 by its mark, which also looks like the beginning of an MP3."""
    is_marked = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return TEXT if is_marked and _decodes(head[: len(head) // 2 * 2], "utf-16") else ""


def _is_text(head: bytes) -> bool:
    return b"\0" not in head and any(_decodes(head, encoding) for encoding in ENCODINGS)


def _decodes(head: bytes, encoding: str) -> bool:
    """Whether the bytes are text, except for a character that the end may cut in two."""
    try:
        head.decode(encoding)
    except UnicodeDecodeError as error:
        return len(head) == HEAD_BYTES and error.start >= len(head) - 4
    return True
