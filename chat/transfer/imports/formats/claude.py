"""Claude: `conversations.json`, chats with their messages in `chat_messages`."""

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

NAME = "Claude"
ROOT = "00000000-0000-4000-8000-000000000000"


def read(value: dict[str, Any]) -> SourceChat | None:
    messages = value.get("chat_messages")
    if not isinstance(messages, list):
        return None
    check_count(messages)
    nodes: list[Node] = []
    for index, message in enumerate(map(dict_of, messages)):
        # Older exports have no parents: each message follows the one before it.
        previous = nodes[-1].id if nodes else None
        parent = id_of(message.get("parent_message_uuid")) or previous
        node = Node(
            id=id_of(message.get("uuid")) or f"message-{index}",
            parent=None if parent == ROOT else parent,
            created_at=parse_time(message.get("created_at")),
        )
        sender = text_of(message.get("sender"))
        if sender in {"human", "assistant"}:  # other nodes stay without a role
            node.role = "user" if sender == "human" else "assistant"
            texts: list[str] = []
            for block in map(dict_of, list_of(message.get("content"))):
                if block.get("type") == "text":
                    texts.append(text_of(block.get("text")))
                else:
                    node.notes.append(collect_text(block))
            files = [*list_of(message.get("attachments")), *list_of(message.get("files"))]
            text = "\n\n".join(filter(None, texts)) or text_of(message.get("text"))
            node.text = with_files(text, files, "file_name")
        nodes.append(node)
    return SourceChat(
        source="claude",
        agent=NAME,
        original_id=id_of(value.get("uuid")),
        title=text_of(value.get("name")),
        nodes=nodes,
        current=id_of(value.get("current_leaf_message_uuid")) or None,
        created_at=parse_time(value.get("created_at")),
        updated_at=parse_time(value.get("updated_at")),
        is_pinned=value.get("is_starred") is True,
    )
