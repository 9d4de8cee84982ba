"""Open WebUI: an array of chats, or in older files the bare `chat` of one.

`history` has the tree. `messages` is a copy of one path of it, and may be outdated.
"""

import re
from hashlib import sha256
from typing import Any

from chat.imports.values import (
    Node,
    SourceChat,
    check_count,
    collect_text,
    dict_of,
    id_of,
    list_of,
    parse_time,
    text_of,
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
    chat = value.get("chat") if isinstance(value.get("chat"), dict) else value
    about = dict_of(chat)
    messages = dict_of(about.get("history")).get("messages")
    if not isinstance(messages, dict):
        return None
    check_count(messages)
    models = [text_of(model) for model in list_of(about.get("models"))]
    nodes = [
        _node(id_of(key), dict_of(entry), next(iter(models), ""))
        for key, entry in messages.items()
    ]
    return SourceChat(
        source="open_webui",
        agent=NAME,
        original_id=id_of(value.get("id")) or _digest(nodes),
        title=text_of(value.get("title")) or text_of(about.get("title")),
        nodes=nodes,
        current=id_of(dict_of(about.get("history")).get("currentId")) or None,
        created_at=parse_time(value.get("created_at")) or parse_time(about.get("timestamp")),
        updated_at=parse_time(value.get("updated_at")),
        is_archived=value.get("archived") is True,
        is_pinned=value.get("pinned") is True,
    )


def _digest(nodes: list[Node]) -> str:
    """Return an id for a chat without one: the same file has the same."""
    return sha256("\n".join(sorted(node.id for node in nodes)).encode()).hexdigest()


def _node(key: str, message: dict[str, Any], model: str) -> Node:
    node = Node(id=key, parent=id_of(message.get("parentId")) or None)
    node.at = parse_time(message.get("timestamp"))
    role = text_of(message.get("role"))
    if role not in {"user", "assistant"}:
        return node
    node.role = role
    content = message.get("content")
    text = content if isinstance(content, str) else _parts_text(content)
    names = (text_of(dict_of(file).get("name")) for file in list_of(message.get("files")))
    if role == "user":
        node.text = "\n".join(filter(None, [text, *(f"[file: {n}]" for n in names if n)]))
        return node
    node.model = text_of(message.get("model")) or model
    node.notes = [TAG.sub("", found).strip() for found in DETAILS.findall(text)]
    answer = DETAILS.sub("", text).strip()
    node.text = "\n\n".join(filter(None, [answer, _sources(message)]))
    if error := message.get("error"):
        node.error = "" if error is True else collect_text(error)
    return node


def _parts_text(content: Any) -> str:
    parts = map(dict_of, list_of(content))
    return "\n".join(
        "[image]" if part.get("type") == "image_url" else collect_text(part) for part in parts
    )


def _sources(message: dict[str, Any]) -> str:
    """Return the list that the numbers in the text refer to."""
    lines = []
    for at, entry in enumerate(map(dict_of, list_of(message.get("sources"))), start=1):
        source = dict_of(entry.get("source"))
        name, url = text_of(source.get("name")), text_of(source.get("url"))
        label = re.sub(r"[\[\]\n]", " ", name) or url
        is_web = url.startswith(("https://", "http://"))
        lines.append(f"{at}. [{label}](<{url}>)" if is_web else f"{at}. {label}")
    return "\n".join(lines)
