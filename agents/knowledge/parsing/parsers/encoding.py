"""Decodes text in any of the usual encodings."""

import codecs
import re

KANA = re.compile("[ぁ-ゟァ-ヺー]")
CONTROL_CHARS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
BOM_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Names in pages and e-mails that mean a larger character set in practice.
ALIASES = {
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ms_kanji": "cp932",
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "gb2312": "gb18030",
    "ks_c_5601-1987": "cp949",
    "unicode": "utf-8",
}


def decode(data: bytes, declared: str = "") -> str | None:
    """Decode bytes, or return None if no known encoding fits.

    A byte order mark decides, then UTF-8, then the declared encoding if it fits.
    """
    for mark, encoding in BOM_ENCODINGS.items():
        if data.startswith(mark):
            return _decode_as(encoding, data)
    sample = data[:4_000]
    if b"\0" in sample and len(sample) >= 4 and len(data) % 2 == 0:
        # UTF-16 without a mark, if every other byte is mostly 0.
        for encoding, high in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
            if high.count(0) * 10 > len(high) * 7:
                return _decode_as(encoding, data)
    if data.startswith(b"\x1b$") or b"\x1b$B" in data[:4_000]:
        declared = declared or "iso2022_jp"
    elif (text := _decode_as("utf-8", data)) is not None:
        return text
    if declared and (text := _decode_as(canonical(declared), data)) is not None:
        return text
    # Hardly any Shift_JIS is also valid EUC-JP, so that comes first. Western text has no kana
    # and only few accents.
    is_dense = sum(byte > 127 for byte in data) * 3 > len(data)
    readings = (_decode_as(encoding, data) for encoding in ("euc_jp", "cp932"))
    japanese = (text for text in readings if text and (is_dense or KANA.search(text)))
    return next(japanese, None) or _decode_as("cp1252", data)


def decode_leniently(data: bytes, declared: str = "") -> str:
    """Decode bytes of a page or an e-mail, replacing what doesn't fit."""
    if (text := decode(data, declared)) is not None:
        return text
    return data.decode(canonical(declared) or "utf-8", errors="replace")


def canonical(encoding: str) -> str:
    """Return Python's name of an encoding, or an empty string."""
    name = ALIASES.get(encoding.strip().lower(), encoding.strip())
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return ""
    # Others, such as base64 or rot13, are no encodings of text.
    return codec.name if codec._is_text_encoding else ""


def normalize_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode_as(encoding: str, data: bytes) -> str | None:
    if not encoding:
        return None
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None
