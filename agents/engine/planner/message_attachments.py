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

Sense = Literal["image", "audio"]

# Per request. Providers limit an image to 5 MB in base64, and a whole request to 20 MB or more.
MAX_ATTACHMENTS = 10
MAX_BYTES = 12_000_000
MAX_ONE_BYTES = 3_750_000
# OpenAI's names of the formats that can be sent.
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}

HIDES_DATA = "this agent hides personal data from models, and images can't be masked"
CANT_SEE = "this model can't see images"
CANT_HEAR = "this model can't hear audio"
CANT_HEAR_FORMAT = "models can only hear WAV and MP3"
CANT_READ = "this model can't read files"
LEFT_OUT = "left out of this request for lack of space"
UNAVAILABLE = "no longer available"
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
    others = {name: value for name, value in message.items() if name != "material"}
    content = f"{message['material']}\n\n{message['content']}".strip()
    return {**others, "content": content}


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
    budget, selected = _Budget(MAX_ATTACHMENTS, MAX_BYTES), list[Message]()
    unsent: Counter[str] = Counter()
    is_latest = True
    for message in reversed(history):
        if "attachments" in message:
            is_last = is_latest and message["role"] in {"tool", "user"}
            message, reasons = _select(message, senses, hides_data, budget)
            unsent.update(reasons if is_last else ())
        is_latest = is_latest and message["role"] == "tool"
        selected.append(message)
    return selected[::-1], dict(unsent)


def _select(
    message: Message, senses: Collection[Sense], hides_data: bool, budget: _Budget
) -> tuple[Message, list[str]]:
    sent, reasons, text = list[AttachmentRef](), list[str](), message["content"] or ""
    for ref in refs_of(message):
        reason = _obstacle(ref, senses, hides_data)
        if not reason and not budget.takes(ref):
            reason = LEFT_OUT
        if reason:
            text = explain(text, placeholder(ref), reason)
            reasons.append(reason)
        else:
            sent.append(ref)
    return _with_refs({**message, "content": text}, sent), reasons


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
        return f"too large for models (limit {format_size(MAX_ONE_BYTES)})"
    return ""


def drop(message: Message) -> Message:
    """Leave a message's attachments out, for lack of room."""
    text = message["content"] or ""
    for ref in refs_of(message):
        text = explain(text, placeholder(ref), LEFT_OUT)
    return _with_refs({**message, "content": text}, ())


def _with_refs(message: Message, refs: Sequence[AttachmentRef]) -> Message:
    others = {name: value for name, value in message.items() if name != "attachments"}
    return {**others, "attachments": list(refs)} if refs else others


def add_user_messages(history: Sequence[Message]) -> list[Message]:
    """Move attachments into a user message after the results of a turn.

    A tool's message can only have text, and nothing may come between the results of a turn.
    """
    if not has_attachments(history):
        return list(history)
    messages, waiting, calls = list[Message](), list[tuple[str, AttachmentRef]](), _Calls()
    for message in history:
        if message["role"] != "tool" and waiting:
            messages.append(_user_message(waiting))
            waiting = []
        calls.note(message)
        if message["role"] == "user":  # a user's own files stay with the question
            messages.append(message)
            continue
        waiting += [(calls.title(message), ref) for ref in refs_of(message)]
        messages.append(_with_refs(message, ()))
    return [*messages, _user_message(waiting)] if waiting else messages


class _Calls:
    """The tools of the calls so far, by call."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def note(self, message: Message) -> None:
        for call in message.get("tool_calls") or ():
            self._names[call["id"]] = call.get("function", {}).get("name", "")

    def title(self, message: Message) -> str:
        id = message.get("tool_call_id", "")
        return f"{self._names.get(id) or 'tool'} (call {id})"


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
    return [
        await _load_message(message, store) if "attachments" in message else message
        for message in messages
    ]


async def _load_message(message: Message, store: AttachmentStore) -> Message:
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": message["content"]}]
    for ref in refs_of(message):
        data = await store.load(ref["digest"])
        if data is None:
            text = explain("", placeholder(ref), UNAVAILABLE)
            parts.append({"type": "text", "text": text})
        else:
            # In a thread, because encoding megabytes takes a while.
            parts.append(await asyncio.to_thread(_to_part, ref, data))
    return {**_with_refs(message, ()), "content": parts}


def _to_part(ref: AttachmentRef, data: bytes) -> dict[str, Any]:
    text = b64encode(data).decode()
    if ref["kind"] == "audio":
        audio = {"data": text, "format": AUDIO_FORMATS[ref["mime_type"]]}
        return {"type": "input_audio", "input_audio": audio}
    url = f"data:{ref['mime_type']};base64,{text}"
    return {"type": "image_url", "image_url": {"url": url}}
