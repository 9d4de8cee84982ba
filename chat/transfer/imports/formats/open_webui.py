"""Open WebUI: an array of chats, or in older files the bare `chat` of one.

`history` has the tree. `messages` is a copy of one path of it, and may be outdated.
"""

import re
from hashlib import sha256
from typing import Any

from chat.transfer.imports.values import (
    Node,
    SourceChat,
    check_count,
    collect_text,
    dict_of,
    id_of,
    list_of,
    parse_time,
    text_of,
    with_files,
)

NAME = "Open WebUI"
# Thoughts and tool calls are part of the text.
DETAILS = re.compile(
    r"<details\s+type=\"(?:reasoning|tool_calls|code_interpreter)\""
    r"[^<]*+(?:<(?!/?details)[^<]*+)*</details>",
    re.DOTALL,
)
TAG = re.compile(r"</?(?:details|summary)[^<>]*>")


def read(value: dict[str, Any]) -> SourceChat | None:
    chat = dict_of(value.get("chat")) if isinstance(value.get("chat"), dict) else value
    history = dict_of(chat.get("history"))
    messages = history.get("messages")
    if not isinstance(messages, dict):
        return None
    check_count(messages)
    models = [text_of(model) for model in list_of(chat.get("models"))]
    nodes = [
        _node(id_of(key), dict_of(entry), next(iter(models), ""))
        for key, entry in messages.items()
    ]
    # For a chat without an id: the same file has the same one.
    digest = sha256("\n".join(sorted(node.id for node in nodes)).encode()).hexdigest()
    return SourceChat(
        source="open_webui",
        agent=NAME,
        original_id=id_of(value.get("id")) or digest,
        title=text_of(value.get("title")) or text_of(chat.get("title")),
        nodes=nodes,
        current=id_of(history.get("currentId")) or None,
        created_at=parse_time(value.get("created_at")) or parse_time(chat.get("timestamp")),
        updated_at=parse_time(value.get("updated_at")),
        is_archived=value.get("archived") is True,
        is_pinned=value.get("pinned") is True,
    )


def _node(key: str, message: dict[str, Any], model: str) -> Node:
    node = Node(id=key, parent=id_of(message.get("parentId")) or None)
    node.created_at = parse_time(message.get("timestamp"))
    role = text_of(message.get("role"))
    if role not in {"user", "assistant"}:
        return node
    node.role = role
    text = message.get("content")
    if not isinstance(text, str):
        blocks = map(dict_of, list_of(text))
        text = "\n".join(
            "[image]" if block.get("type") == "image_url" else collect_text(block)
            for block in blocks
        )
    if role == "user":
        node.text = with_files(text, list_of(message.get("files")), "name")
        return node
    node.model = text_of(message.get("model")) or model
    node.notes = [TAG.sub("", details).strip() for details in DETAILS.findall(text)]
    answer = DETAILS.sub("", text).strip()
    # The list that the numbers in the text refer to.
    lines = []
    for number, entry in enumerate(map(dict_of, list_of(message.get("sources"))), start=1):
        source = dict_of(entry.get("source"))
        url = text_of(source.get("url"))
        label = re.sub(r"[\[\]\n]", " ", text_of(source.get("name"))) or url
        is_web = url.startswith(("https://", "http://"))
        lines.append(f"{number}. [{label}](<{url}>)" if is_web else f"{number}. {label}")
    sources = "\n".join(lines)
    node.text = "\n\n".join(filter(None, [answer, sources]))
    if error := message.get("error"):
        node.error = "" if error is True else collect_text(error)
    return node
