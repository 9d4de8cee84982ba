"""Results of MCP tools as text and attachments.

Images, sounds and binary resources become attachments, with a placeholder in the text. Text
resources stay text. A few linked resources are read from the server as well. Only the client
imports this module, because the wire types take a while to import.
"""

import asyncio
import binascii
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import unquote, urlsplit

import mcp_types as wire

from agents.engine.attachments import (
    MAX_ATTACHMENT_BYTES,
    format_size,
    placeholder,
    too_large,
    verify,
)
from agents.engine.privacy import MASK
from agents.engine.sentences import Sentence as _
from agents.engine.text import cut_text
from agents.engine.tool import Attachment, ToolResult
from agents.file_types import OTHER

MAX_TEXT_CHARS = 200_000
TRUNCATION_CHARS = 100
MAX_DESCRIPTION_CHARS = 500
# Linked resources: more links than this are a list to choose from, so none of them is read.
MAX_READ_LINKS = 3
MAX_LINKED_BYTES = 1_000_000
MAX_LINKED_CHARS = 20_000
READ_SECONDS = 5.0

Contents = wire.TextResourceContents | wire.BlobResourceContents
# Reads a resource; None if the server can't.
ResourceReader = Callable[[str], Awaitable[Sequence[Contents] | None]]


async def to_tool_result(
    result: wire.CallToolResult,
    credentials: Iterable[str] = (),
    read_resource: ResourceReader | None = None,
) -> ToolResult:
    """Return a response's text and attachments.

    Credentials that a server echoes are removed from the text.
    """
    linked = (
        await _read_links(result, read_resource)
        if read_resource and not result.is_error
        else {}
    )
    content = _Content(linked)
    for block in result.content:
        content.add(block)
    has_text = any(isinstance(block, wire.TextContent) for block in result.content)
    if not has_text and result.structured_content is not None:
        content.parts.insert(0, json.dumps(result.structured_content, ensure_ascii=False))
    text = "\n".join(filter(None, content.parts))
    for credential in credentials:
        text = text.replace(credential, MASK)
    text = _truncate(text)
    attachments = tuple(content.attachments)
    if result.is_error:
        error = text or _("The tool failed without giving a reason.")
        return ToolResult(error=error, mendable=True, attachments=attachments)
    # How long it is fresh and if it is for one person, as far as it says so.
    hints = {**(result.model_extra or {}), **(result.meta or {})}
    milliseconds = hints.get("ttlMs")
    max_age = None
    if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool):
        max_age = max(0.0, milliseconds / 1000)
    is_private = hints.get("cacheScope") == "private"
    return ToolResult(text, attachments=attachments, max_age=max_age, is_private=is_private)


class _Content:
    """The text and the attachments of a result, block by block."""

    def __init__(self, linked: dict[str, Sequence[Contents]]) -> None:
        self.linked = linked
        self.parts: list[str] = []
        self.attachments: list[Attachment] = []

    def add(self, block: wire.ContentBlock) -> None:
        match block:
            case wire.TextContent():
                self.parts.append(block.text)
            case wire.ImageContent() | wire.AudioContent():
                self._attach(block.type, block.data, block.mime_type)
            case wire.ResourceLink():
                facts = [block.title or block.name, block.uri, block.mime_type]
                facts += [format_size(block.size)] if block.size else []
                label = ", ".join(str(fact) for fact in facts if fact)
                description = (block.description or "").strip()[:MAX_DESCRIPTION_CHARS]
                self.parts.append(
                    f"[resource: {label}]" + (f" {description}" if description else "")
                )
                for contents in self.linked.get(block.uri, ()):
                    self._add_contents(contents, max_chars=MAX_LINKED_CHARS)
            case wire.EmbeddedResource():
                self._add_contents(block.resource)
            case _:
                self.parts.append(f"[{block.type}]")

    def _add_contents(self, contents: Contents, max_chars: int = MAX_TEXT_CHARS) -> None:
        if isinstance(contents, wire.TextResourceContents):
            text = _truncate(contents.text, max_chars)
            self.parts.append(f"[resource: {contents.uri}]\n{text}")
        else:
            try:
                path = unquote(urlsplit(contents.uri).path)
            except ValueError:
                path = ""
            name = path.rstrip("/").rpartition("/")[2]
            self._attach("resource", contents.blob, contents.mime_type or "", name)

    def _attach(self, kind: str, text: str, mime_type: str, name: str = "") -> None:
        label = ", ".join(filter(None, [name, mime_type]))
        # Before decoding: the size is known, and decoding it would only take memory.
        if (size := len(text) * 3 // 4) > MAX_ATTACHMENT_BYTES + 2:
            self.parts.append(f"[{kind}: {label}, {format_size(size)}; {too_large()}]")
            return
        try:
            data = b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if not data:
            why = _("the server's base64 is invalid") if text.strip() else _("it is empty")
            self.parts.append(f"[{kind}: {label or OTHER}; {why}]")
            return
        attachment = verify(Attachment(data=data, mime_type=mime_type, name=name))
        self.attachments.append(attachment)
        is_wrong = attachment.mime_type == OTHER and mime_type not in {"", OTHER}
        notice = f" (declared as {mime_type}, which it isn't)" if is_wrong else ""
        self.parts.append(f"{placeholder(attachment)}{notice}")


async def _read_links(
    result: wire.CallToolResult, read_resource: ResourceReader
) -> dict[str, Sequence[Contents]]:
    """Read the linked resources, if they are few and small; what fails stays a link."""
    links = [block for block in result.content if isinstance(block, wire.ResourceLink)]
    small = [link.uri for link in links if (link.size or 0) <= MAX_LINKED_BYTES]
    linked: dict[str, Sequence[Contents]] = {}
    if len(links) > MAX_READ_LINKS:
        return linked
    try:
        async with asyncio.timeout(READ_SECONDS):
            for uri in dict.fromkeys(small):
                contents = await read_resource(uri)
                size = sum(
                    len(item.text)
                    if isinstance(item, wire.TextResourceContents)
                    else len(item.blob) * 3 // 4
                    for item in contents or ()
                )
                if contents and size <= MAX_LINKED_BYTES:
                    linked[uri] = contents
    except TimeoutError:
        pass
    return linked


def _truncate(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    return text if len(text) <= max_chars else cut_text(text, max_chars - TRUNCATION_CHARS)
