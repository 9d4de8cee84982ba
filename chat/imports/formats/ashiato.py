"""Our own export (docs/chat-schema.md).

Steps are imported as notes: what they did happened elsewhere, so they are no steps here.
"""

import json
from typing import Any

from chat.imports.values import (
    Node,
    SourceChat,
    check_count,
    dict_of,
    id_of,
    list_of,
    parse_time,
    text_of,
)

NAME = "Ashiato"
SCHEMA = "ashiato.chat/1"


def read(value: dict[str, Any]) -> SourceChat | None:
    if value.get("schema") != SCHEMA:
        return None
    chat = dict_of(value.get("chat"))
    found = list_of(value.get("messages"))
    check_count(found)
    messages = [dict_of(message) for message in found]
    nodes = [node for at, message in enumerate(messages) for node in _nodes(message, at)]
    current = id_of(chat.get("current"))
    return SourceChat(
        source="ashiato",
        agent=NAME,
        original_id=id_of(chat.get("id")),
        title=text_of(chat.get("title")),
        nodes=nodes,
        current=f"{current}.answer"
        if any(n.id == f"{current}.answer" for n in nodes)
        else current,
        created_at=parse_time(chat.get("created_at")),
        updated_at=parse_time(chat.get("updated_at")),
        is_archived=chat.get("is_archived") is True,
        is_pinned=chat.get("is_pinned") is True,
    )


def _nodes(message: dict[str, Any], at: int) -> list[Node]:
    """Return the question, and its answer if there is one."""
    message_id = id_of(message.get("id")) or f"message-{at}"
    parent = id_of(message.get("parent"))
    question = Node(
        id=message_id,
        parent=f"{parent}.answer" if parent else None,
        role="user",
        text=_text_with_files(message),
        at=parse_time(message.get("created_at")),
    )
    run = dict_of(message.get("run"))
    answer = Node(id=f"{message_id}.answer", parent=message_id)
    if run:
        answer.role = "assistant"
        answer.text = text_of(run.get("answer"))
        answer.model = text_of(run.get("model"))
        answer.at = parse_time(run.get("ended_at")) or parse_time(run.get("started_at"))
        answer.notes = [_note(dict_of(step)) for step in list_of(run.get("steps"))]
        answer.error = "" if answer.text else text_of(run.get("detail"))
    return [question, answer]


def _text_with_files(message: dict[str, Any]) -> str:
    """Return the question with the names of its files, whose content isn't in an export."""
    files = [text_of(dict_of(file).get("name")) for file in list_of(message.get("files"))]
    marks = [f"[{name[:200]}]" for name in files if name]
    return "\n\n".join(filter(None, [" ".join(marks), text_of(message.get("text"))]))


def _note(step: dict[str, Any]) -> str:
    """Return a thought, or a tool's name, input and result."""
    texts = [text_of(step.get("thought"))]
    if step.get("kind") == "tool":
        arguments = step.get("action_input")
        name = text_of(step.get("action"))
        arguments_text = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        texts += [
            f"{name}: {arguments_text}" if arguments_text else name,
            text_of(step.get("observation")),
        ]
    return "\n\n".join(filter(None, texts))
