"""Attachments in requests: which of them a model gets, and in what form."""

import asyncio
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agents.engine.attachments import (
    AttachmentRef,
    AttachmentStore,
    explain,
    format_size,
    placeholder,
    refs_of,
)
from agents.engine.state import Message

from ..sentences import Sentence as _

Sense = Literal["image", "audio"]

# Per request. Providers limit an image to 5 MB in base64, and a whole request to 20 MB or more.
MAX_ATTACHMENTS = 10
MAX_BYTES = 12_000_000
MAX_ONE_BYTES = 3_750_000
# OpenAI's names of the formats that can be sent.
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}

HIDES_DATA = _("this agent masks personal data, and images can't be masked")
CANT_SEE = _("this model can't see images")
CANT_HEAR = _("this model can't hear audio")
CANT_HEAR_FORMAT = _("models can only hear WAV and MP3")
CANT_READ = _("this model can't read files")
LEFT_OUT = _("left out of this request for lack of space")
UNAVAILABLE = _("no longer available")
INSTRUCTIONS = "Attachments of the tool results above, not written by the user:"


@dataclass(slots=True)
class _Budget:
    """What a request still has room for."""

    count: int
    size: int

    def takes(self, ref: AttachmentRef) -> bool:
        if not self.count or ref["size"] > self.size:
            return False
        self.count -= 1
        self.size -= ref["size"]
        return True


def add_material(message: Message) -> Message:
    """Put the text of the user's files before the question they came with."""
    if "material" not in message:
        return message
    combined = {name: value for name, value in message.items() if name != "material"}
    combined["content"] = f"{message['material']}\n\n{message['content']}".strip()
    return combined


def has_attachments(messages: Iterable[Message]) -> bool:
    """Whether any message has some: most histories don't, and are used as they are."""
    return any("attachments" in message for message in messages)


def select(
    history: Sequence[Message], senses: Collection[Sense], *, hides_data: bool = False
) -> tuple[list[Message], dict[str, int]]:
    """Keep the newest references that the model can be sent; the text says why not others.

    Also return how many of the question's or the latest results' weren't, by reason.
    """
    if not has_attachments(history):
        return list(history), {}
    budget = _Budget(MAX_ATTACHMENTS, MAX_BYTES)
    selected = list[Message]()
    unsent: Counter[str] = Counter()
    is_latest = True
    for message in reversed(history):
        if "attachments" in message:
            is_last = is_latest and message["role"] in {"tool", "user"}
            text = message["content"] or ""
            refs = list[AttachmentRef]()
            for ref in refs_of(message):
                reason = _obstacle(ref, senses, hides_data)
                if not reason and not budget.takes(ref):
                    reason = LEFT_OUT
                if not reason:
                    refs.append(ref)
                    continue
                text = explain(text, placeholder(ref), reason)
                unsent[reason] += is_last
            message = _with_refs({**message, "content": text}, refs)
        is_latest = is_latest and message["role"] == "tool"
        selected.append(message)
    return selected[::-1], dict(+unsent)


def _obstacle(ref: AttachmentRef, senses: Collection[Sense], hides_data: bool) -> str:
    """Return why this model can't be sent the attachment, or an empty string."""
    match ref["kind"]:
        case "file":
            return CANT_READ
        case _ if hides_data:
            return HIDES_DATA
        case "image" if "image" not in senses:
            return CANT_SEE
        case "audio" if "audio" not in senses:
            return CANT_HEAR
        case "audio" if ref["mime_type"] not in AUDIO_FORMATS:
            return CANT_HEAR_FORMAT
    if ref["size"] > MAX_ONE_BYTES:
        return _("too large for models (limit %(limit)s)", limit=format_size(MAX_ONE_BYTES))
    return ""


def drop(message: Message) -> Message:
    """Leave a message's attachments out, for lack of room."""
    text = message["content"] or ""
    for ref in refs_of(message):
        text = explain(text, placeholder(ref), LEFT_OUT)
    return _with_refs({**message, "content": text}, ())


def _with_refs(message: Message, refs: Sequence[AttachmentRef]) -> Message:
    changed = {name: value for name, value in message.items() if name != "attachments"}
    if refs:
        changed["attachments"] = list(refs)
    return changed


def add_user_messages(history: Sequence[Message]) -> list[Message]:
    """Move attachments into a user message after the results of a turn.

    A tool's message can only have text, and nothing may come between the results of a turn.
    """
    if not has_attachments(history):
        return list(history)
    messages = list[Message]()
    waiting = list[tuple[str, AttachmentRef]]()
    tool_names: dict[str, str] = {}  # by call
    for message in history:
        if message["role"] != "tool" and waiting:
            messages.append(_user_message(waiting))
            waiting = []
        for call in message.get("tool_calls") or ():
            tool_names[call["id"]] = call.get("function", {}).get("name", "")
        if message["role"] == "user":  # a user's own files stay with the question
            messages.append(message)
            continue
        id = message.get("tool_call_id", "")
        title = f"{tool_names.get(id) or 'tool'} (call {id})"
        waiting += [(title, ref) for ref in refs_of(message)]
        messages.append(_with_refs(message, ()))
    return [*messages, _user_message(waiting)] if waiting else messages


def _user_message(titled_refs: Sequence[tuple[str, AttachmentRef]]) -> Message:
    lines = [
        f"{number}. {placeholder(ref)} from {title}"
        for number, (title, ref) in enumerate(titled_refs, 1)
    ]
    refs = [ref for _, ref in titled_refs]
    return {
        "role": "user",
        "content": "\n".join([INSTRUCTIONS, *lines]),
        "attachments": refs,
    }


async def load(messages: list[Message], store: AttachmentStore) -> list[Message]:
    """Return the messages with their attachments, in OpenAI's format."""
    if not has_attachments(messages):
        return messages
    loaded = list[Message]()
    for message in messages:
        if "attachments" not in message:
            loaded.append(message)
            continue
        content: list[Mapping[str, Any]] = [{"type": "text", "text": message["content"]}]
        for ref in refs_of(message):
            data = await store.load(ref["digest"])
            if data is None:
                text = explain("", placeholder(ref), UNAVAILABLE)
                content.append({"type": "text", "text": text})
            else:
                # In a thread, because encoding megabytes takes a while.
                content.append(await asyncio.to_thread(_content_part, ref, data))
        loaded.append({**_with_refs(message, ()), "content": content})
    return loaded


def _content_part(ref: AttachmentRef, data: bytes) -> dict[str, Any]:
    text = b64encode(data).decode()
    if ref["kind"] == "audio":
        audio = {"data": text, "format": AUDIO_FORMATS[ref["mime_type"]]}
        return {"type": "input_audio", "input_audio": audio}
    url = f"data:{ref['mime_type']};base64,{text}"
    return {"type": "image_url", "image_url": {"url": url}}
