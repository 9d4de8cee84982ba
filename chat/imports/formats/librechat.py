"""LibreChat: one chat per file, flat or as a tree of `children`."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from chat.imports.values import (
    MAX_MESSAGES,
    Node,
    SourceChat,
    collect_text,
    dict_of,
    id_of,
    list_of,
    parse_time,
    text_of,
)

NAME = "LibreChat"
ROOT = "00000000-0000-0000-0000-000000000000"


def read(value: dict[str, Any]) -> SourceChat | None:
    tree = value.get("messagesTree")
    messages = tree if isinstance(tree, list) else value.get("messages")
    if "conversationId" not in value or not isinstance(messages, list):
        return None
    model = text_of(dict_of(value.get("options")).get("model"))
    entries = islice(_flatten(messages), MAX_MESSAGES + 1)  # which is rejected later
    nodes = [_node(*entry, model) for entry in entries]
    return SourceChat(
        source="librechat",
        agent=NAME,
        original_id=id_of(value.get("conversationId")),
        title=text_of(value.get("title")),
        nodes=nodes,
        # Not said in the file; of the visible path alone it is the last one.
        current=nodes[-1].id if nodes and value.get("branches") is False else None,
    )


def _flatten(messages: list[Any]) -> Iterator[tuple[dict[str, Any], int, str | None]]:
    """Yield each message with its number and the one it is nested in, without recursion."""
    stack: list[tuple[Any, str | None]] = [(message, None) for message in reversed(messages)]
    at = 0
    while stack:
        value, above = stack.pop()
        message = dict_of(value)
        yield message, at, above
        message_id = _id(message, at)
        stack += [(child, message_id) for child in reversed(list_of(message.get("children")))]
        at += 1


def _id(message: dict[str, Any], at: int) -> str:
    return id_of(message.get("messageId")) or f"message-{at}"


def _node(message: dict[str, Any], at: int, above: str | None, model: str) -> Node:
    parent = id_of(message.get("parentMessageId")) or above
    node = Node(id=_id(message, at), parent=None if parent == ROOT else parent)
    if not message:
        return node
    node.at = parse_time(message.get("createdAt"))
    is_user = message.get("isCreatedByUser")
    if not isinstance(is_user, bool):
        is_user = text_of(message.get("sender")).lower() == "user"
    node.role = "user" if is_user else "assistant"
    text = text_of(message.get("text"))
    parts = [_part(dict_of(part)) for part in list_of(message.get("content"))]
    content = "\n\n".join(part_text for part_text, _note in parts if part_text.strip())
    files = [*list_of(message.get("files")), *list_of(message.get("attachments"))]
    names = (text_of(dict_of(file).get("filename")) for file in files)
    text = "\n".join(filter(None, [content or text, *(f"[file: {n}]" for n in names if n)]))
    if is_user:
        node.text = text
        return node
    node.model = text_of(message.get("model")) or model
    node.notes = [note for _part_text, note in parts if note.strip()]
    if message.get("error") is True:
        node.error = text
    else:
        node.text = text
    return node


def _part(part: dict[str, Any]) -> tuple[str, str]:
    """Return the text of a part, or else the thought or tool call in it."""
    match part.get("type"):
        case "text":
            return _value(part.get("text")), ""
        case "think":
            return "", _value(part.get("think"))
        case "tool_call":
            return "", _tool_call(dict_of(part.get("tool_call")))
        case "image_file" | "image_url":
            return "[image]", ""
        case "error":
            return _value(part.get("error")) or _value(part.get("text")), ""
    return collect_text(part), ""


def _value(text: Any) -> str:
    return text_of(text) or text_of(dict_of(text).get("value"))


def _tool_call(call: dict[str, Any]) -> str:
    function = dict_of(call.get("function"))
    name = text_of(call.get("name")) or text_of(function.get("name"))
    arguments = collect_text(call.get("args")) or collect_text(function.get("arguments"))
    output = collect_text(call.get("output")) or collect_text(function.get("output"))
    call_text = f"{name}: {arguments}" if name and arguments else name or arguments
    return "\n\n".join(filter(None, [call_text, output]))
