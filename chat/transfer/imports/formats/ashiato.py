"""Our own export (docs/chat-schema.md).

Steps are imported as notes: what they did happened elsewhere, so they are no steps here.
"""

import json
from typing import Any

from chat.transfer.imports.values import (
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
    messages = list_of(value.get("messages"))
    check_count(messages)
    nodes: list[Node] = []
    for index, message in enumerate(map(dict_of, messages)):
        message_id = id_of(message.get("id")) or f"message-{index}"
        parent = id_of(message.get("parent"))
        # The content of files isn't in an export.
        files = [text_of(dict_of(file).get("name")) for file in list_of(message.get("files"))]
        labels = [f"[{name[:200]}]" for name in files if name]
        question = Node(
            id=message_id,
            parent=f"{parent}.answer" if parent else None,
            role="user",
            text="\n\n".join(filter(None, [" ".join(labels), text_of(message.get("text"))])),
            created_at=parse_time(message.get("created_at")),
        )
        run = dict_of(message.get("run"))
        answer = Node(id=f"{message_id}.answer", parent=message_id)
        if run:
            answer.role = "assistant"
            answer.text = text_of(run.get("answer"))
            answer.model = text_of(run.get("model"))
            answer.created_at = parse_time(run.get("ended_at")) or parse_time(
                run.get("started_at")
            )
            answer.notes = [_note(dict_of(step)) for step in list_of(run.get("steps"))]
            answer.error = "" if answer.text else text_of(run.get("detail"))
        nodes += [question, answer]
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
