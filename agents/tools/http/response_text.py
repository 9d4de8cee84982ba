"""Reads responses of HTTP tools: their type, charset, freshness, errors and text."""

import codecs
import json
from email.message import Message
from http import HTTPStatus

from agents.engine.sentences import Sentence as _
from agents.engine.text import shorten_line
from agents.engine.tool import ToolResult

from ..egress import Response

MAX_OUTPUT_CHARS = 100_000
MAX_ERROR_CHARS = 500
TEXT_SUBTYPES = {
    "json",
    "xml",
    "yaml",
    "x-yaml",
    "javascript",
    "x-ndjson",
    "x-www-form-urlencoded",
}
CHARSETS = {
    "ascii",
    "big5",
    "cp1252",
    "cp932",
    "euc_jp",
    "euc_kr",
    "gb18030",
    "gbk",
    "iso2022_jp",
    "iso8859-1",
    "iso8859-15",
    "koi8-r",
    "shift_jis",
    "utf-16",
    "utf-8",
}


def read_content_type(response: Response) -> tuple[str, str]:
    """Return the content type and charset; text if unspecified."""
    message = Message()
    message["content-type"] = response.headers.get("content-type", "text/plain")
    return message.get_content_type(), message.get_content_charset() or "utf-8"


def freshness(control: str) -> tuple[float | None, bool]:
    """Return how many seconds a response is fresh (None: not said), and if it is private."""
    directives = {directive.strip().lower() for directive in control.split(",")}
    seconds = [d.partition("=")[2].strip('"') for d in directives if "max-age=" in d]
    ages = [float(text) for text in seconds if text.isascii() and text.isdigit()]
    if directives & {"no-store", "no-cache"}:
        ages.append(0.0)
    return min(ages, default=None), any(d.startswith("private") for d in directives)


def is_text(content_type: str) -> bool:
    main, _, sub = content_type.partition("/")
    return main == "text" or sub in TEXT_SUBTYPES or sub.endswith(("+json", "+xml"))


def decode(content: bytes, charset: str) -> str:
    # Only charsets that are plain tables, because some of Python's codecs take forever.
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        name = "utf-8"
    if name not in CHARSETS:
        name = "utf-8"
    return content.decode(name, errors="replace").replace("\0", "\ufffd")


def status_error(host: str, status: int, text: str) -> ToolResult:
    short = shorten_line(text, MAX_ERROR_CHARS)
    status_text = format_status(status)
    error = (
        _(
            "%(host)s returned HTTP %(status)s: %(words)s",
            host=host,
            status=status_text,
            words=short,
        )
        if short
        else _("%(host)s returned HTTP %(status)s.", host=host, status=status_text)
    )
    return ToolResult(error=error, mendable=400 <= status < 500 and status not in {408, 429})


def format_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def pretty_json(text: str) -> str:
    """Format JSON over several lines, if it doesn't get too long."""
    if len(text) > MAX_OUTPUT_CHARS:
        return text
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False)
    pieces = []
    length = 0
    try:
        for piece in encoder.iterencode(json.loads(text)):
            pieces.append(piece)
            length += len(piece)
            if length > MAX_OUTPUT_CHARS:
                return text
    except (ValueError, RecursionError):
        return text
    return "".join(pieces).encode(errors="replace").decode()  # replaces lone surrogates
