"""The type of a file by its content. A name only chooses between kinds of text.

The process that parses documents loads this module alone, so it imports nothing of the product.
"""

import struct
from pathlib import PurePath
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

HEAD_BYTES = 8_192
# Of a ZIP file's directory: each entry becomes an object that is ten times larger.
MAX_DIRECTORY_BYTES = 4_000_000
ZIP_END_BYTES = 22
MAX_ZIP_END_BYTES = ZIP_END_BYTES + 65_535  # with a comment
PDF = "application/pdf"
TEXT = "text/plain"
ZIP = "application/zip"
OLE = "application/x-ole-storage"
OTHER = "application/octet-stream"
EPUB = "application/epub+zip"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODT = "application/vnd.oasis.opendocument.text"
ODP = "application/vnd.oasis.opendocument.presentation"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
RTF = "application/rtf"
BMP, TIFF, HEIC, AVIF = "image/bmp", "image/tiff", "image/heic", "image/avif"
SQLITE, PROGRAM, TAR = (
    "application/vnd.sqlite3",
    "application/x-executable",
    "application/x-tar",
)
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SIGNATURES = (
    (b"%PDF-", PDF),
    (b"PK\x05\x06", ZIP),
    (b"PK\x07\x08", ZIP),
    (OLE_MAGIC, OLE),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"{\\rtf", RTF),
    (b"BM", BMP),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
    (b"SQLite format 3\0", SQLITE),
    (b"MZ", PROGRAM),
    (b"\x7fELF", PROGRAM),
    (b"\xca\xfe\xba\xbe", PROGRAM),
    (b"\xcf\xfa\xed\xfe", PROGRAM),
    (b"\0asm", PROGRAM),
)
# Two or three letters can also begin a text.
SHORT_SIGNATURES = (b"BM", b"BZh", b"MZ")
ARCHIVE_TYPES = {
    *(ZIP, TAR, "application/gzip", "application/x-bzip2", "application/x-xz"),
    *("application/zstd", "application/x-7z-compressed", "application/vnd.rar"),
}
# By the brand in the `ftyp` box of an ISO media file.
BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"heim", b"mif1", b"msf1"), HEIC),
    **dict.fromkeys((b"avif", b"avis"), AVIF),
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    b"qt  ": "video/quicktime",
}
VIDEO_CODECS = (b"V_VP", b"V_AV1", b"V_MPEG", b"V_THEORA")
ZIP_FOLDERS = {"word/": DOCX, "ppt/": PPTX, "xl/": XLSX}
ZIP_TYPES = {
    **{kind.encode(): kind for kind in (EPUB, ODS, ODT, ODP)},
    # Templates, and texts that are written as web pages or of several files.
    **{f"{kind}-template".encode(): kind for kind in (ODS, ODT, ODP)},
    **{f"{ODT}-{variant}".encode(): ODT for variant in ("web", "master")},
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
    if head.startswith(b"PK\x03\x04"):
        mime_type = _zip_type(file)
    else:  # the looser the rule, the later
        mime_type = (
            _by_signature(head) or _marked_text(head) or detect_type(head) or _media_type(head)
        )
        if not mime_type and head[257:262] == b"ustar":
            mime_type = TAR
        elif not mime_type and b"%PDF-" in head[:1_024]:
            mime_type = PDF  # scanners and mail gateways put bytes before the header
    file.seek(0)
    return mime_type or (TEXT if _is_text(head) else OTHER)


def refine(mime_type: str, name: str) -> str:
    """Return the kind of text or old Office file, which only the name tells."""
    ending = PurePath(name).suffix.lower()
    if mime_type == TEXT:
        return TEXT_ENDINGS.get(ending, TEXT)
    return OLE_ENDINGS.get(ending, OLE) if mime_type == OLE else mime_type


def detect_type(data: bytes) -> str:
    """Return the type of an image or sound by its first bytes; empty for anything else."""
    head = data[:16]
    match head[:4], head[8:12]:
        case b"\x89PNG", _ if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return "image/png"
        case b"GIF8", _ if head[4:6] in {b"7a", b"9a"}:
            return "image/gif"
        case b"RIFF", b"WEBP":
            return "image/webp"
        case b"RIFF", b"WAVE":
            return "audio/wav"
        case b"OggS", _:
            return "audio/ogg"
        case b"fLaC", _:
            return "audio/flac"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    # An MPEG frame starts with 11 set bits and its layer, which is never 0.
    is_frame = len(head) > 2 and head[0] == 0xFF and head[1] & 0xE6 in {0xE2, 0xE4, 0xE6}
    return "audio/mpeg" if head.startswith(b"ID3") or is_frame else ""


def _by_signature(head: bytes) -> str:
    start, mime_type = next(
        (signature for signature in SIGNATURES if head.startswith(signature[0])), (b"", "")
    )
    if mime_type == BMP and not (len(head) > 14 and head[6:10] == bytes(4)):
        return ""
    return "" if start in SHORT_SIGNATURES and _is_text(head) else mime_type


def _media_type(head: bytes) -> str:
    if head[4:8] == b"ftyp":
        return BRANDS.get(head[8:12], "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        is_webm = b"webm" in head[:64]
        # A recording of sound only has a codec of sound only.
        is_sound = b"A_" in head and not any(codec in head for codec in VIDEO_CODECS)
        return ("audio/" if is_sound else "video/") + ("webm" if is_webm else "x-matroska")
    return "video/x-msvideo" if head[:4] == b"RIFF" and head[8:12] == b"AVI " else ""


def _zip_type(file: BinaryIO) -> str:
    try:
        if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
            return ZIP
        with ZipFile(file) as archive:
            names = set(archive.namelist())
            has_type = "mimetype" in names and archive.getinfo("mimetype").file_size < 100
            declared = archive.read("mimetype").strip() if has_type else b""
    except (BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        return ZIP
    if declared in ZIP_TYPES:
        return ZIP_TYPES[declared]
    if "META-INF/container.xml" in names:
        return EPUB
    if "[Content_Types].xml" not in names:
        return ZIP
    for folder, mime_type in ZIP_FOLDERS.items():
        if any(name.startswith(folder) for name in names):
            return mime_type
    return ZIP


def _directory_bytes(file: BinaryIO) -> int:
    """Return how long a ZIP file says its directory is; 0 if it has none."""
    size = file.seek(0, 2)
    first = max(0, size - MAX_ZIP_END_BYTES)
    file.seek(first)
    tail = file.read()
    is_last = tail[-ZIP_END_BYTES:].startswith(b"PK\x05\x06")
    end_offset = len(tail) - ZIP_END_BYTES if is_last else tail.rfind(b"PK\x05\x06")
    if end_offset < 0 or len(tail) < end_offset + ZIP_END_BYTES:
        return 0
    length: int = struct.unpack_from("<L", tail, end_offset + 12)[0]
    locator = tail[max(0, end_offset - 20) : end_offset]
    if not locator.startswith(b"PK\x06\x07"):
        return length
    # The form for large files: its record is at the place that the locator names, or before it.
    for offset in (struct.unpack_from("<Q", locator, 8)[0], first + end_offset - 20 - 56):
        file.seek(max(0, min(offset, size)))
        record = file.read(56).ljust(56, b"\0")
        length = max(length, struct.unpack_from("<Q", record, 40)[0])
    return length


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
