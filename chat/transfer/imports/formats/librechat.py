"""LibreChat: one chat per file, flat or as a tree of `children`."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from chat.transfer.imports.values import (
    MAX_MESSAGES,
    Node,
    SourceChat,
    collect_text,
    dict_of,
    id_of,
    list_of,
    parse_time,
    text_of,
    with_files,
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
    index = 0
    while stack:
        value, above = stack.pop()
        message = dict_of(value)
        yield message, index, above
        message_id = _id(message, index)
        stack += [(child, message_id) for child in reversed(list_of(message.get("children")))]
        index += 1


def _id(message: dict[str, Any], index: int) -> str:
    return id_of(message.get("messageId")) or f"message-{index}"


def _node(message: dict[str, Any], index: int, above: str | None, model: str) -> Node:
    parent = id_of(message.get("parentMessageId")) or above
    node = Node(id=_id(message, index), parent=None if parent == ROOT else parent)
    if not message:
        return node
    node.created_at = parse_time(message.get("createdAt"))
    is_user = message.get("isCreatedByUser")
    if not isinstance(is_user, bool):
        is_user = text_of(message.get("sender")).lower() == "user"
    node.role = "user" if is_user else "assistant"
    blocks = [_text_and_note(dict_of(block)) for block in list_of(message.get("content"))]
    content = "\n\n".join(text for text, _note in blocks if text.strip())
    files = [*list_of(message.get("files")), *list_of(message.get("attachments"))]
    text = with_files(content or text_of(message.get("text")), files, "filename")
    if is_user:
        node.text = text
        return node
    node.model = text_of(message.get("model")) or model
    node.notes = [note for _text, note in blocks if note.strip()]
    if message.get("error") is True:
        node.error = text
    else:
        node.text = text
    return node


def _text_and_note(block: dict[str, Any]) -> tuple[str, str]:
    """Return the text of a block, or else the thought or tool call in it."""
    match block.get("type"):
        case "text":
            return _value(block.get("text")), ""
        case "think":
            return "", _value(block.get("think"))
        case "tool_call":
            call = dict_of(block.get("tool_call"))
            function = dict_of(call.get("function"))
            name = text_of(call.get("name")) or text_of(function.get("name"))
            arguments = collect_text(call.get("args")) or collect_text(
                function.get("arguments")
            )
            output = collect_text(call.get("output")) or collect_text(function.get("output"))
            call_text = f"{name}: {arguments}" if name and arguments else name or arguments
            return "", "\n\n".join(filter(None, [call_text, output]))
        case "image_file" | "image_url":
            return "[image]", ""
        case "error":
            return _value(block.get("error")) or _value(block.get("text")), ""
    return collect_text(block), ""


def _value(text: Any) -> str:
    return text_of(text) or text_of(dict_of(text).get("value"))
