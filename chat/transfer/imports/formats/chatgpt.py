"""ChatGPT: `conversations.json`, or `conversations-000.json` and so on since 2026.

A chat has its messages in `mapping`. Child links may be missing, so only `parent` counts.
"""

import re
from typing import Any

from chat.transfer.imports.values import (
    MAX_TEXT_CHARS,
    Node,
    SourceChat,
    check_count,
    code_block,
    collect_text,
    cut,
    dict_of,
    id_of,
    list_of,
    parse_time,
    text_of,
)

NAME = "ChatGPT"
HIDDEN_TYPES = {"user_editable_context", "model_editable_context"}
SIDE_CHANNELS = {"analysis", "commentary"}
# Marks of citations in private-use characters, as in "\ue200cite\ue202turn0search0\ue201".
CITATION_MARK = re.compile("\ue200[^\ue200\ue201]*\ue201")
MAX_CITATIONS = 500
MAX_LABEL_CHARS = 2_000  # of a citation
ASSET_LABELS = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
}


def read(value: dict[str, Any]) -> SourceChat | None:
    mapping = value.get("mapping")
    if not isinstance(mapping, dict):
        return None
    check_count(mapping)
    model = text_of(value.get("default_model_slug"))
    return SourceChat(
        source="chatgpt",
        agent=NAME,
        original_id=id_of(value.get("conversation_id")) or id_of(value.get("id")),
        title=text_of(value.get("title")),
        nodes=[_node(id_of(key), dict_of(node), model) for key, node in mapping.items()],
        current=id_of(value.get("current_node")) or None,
        created_at=parse_time(value.get("create_time")),
        updated_at=parse_time(value.get("update_time")),
        is_archived=value.get("is_archived") is True,
        is_pinned=value.get("is_starred") is True,
    )


def _node(key: str, entry: dict[str, Any], model: str) -> Node:
    node = Node(id=key, parent=id_of(entry.get("parent")) or None)
    message = dict_of(entry.get("message"))
    content = dict_of(message.get("content"))
    metadata = dict_of(message.get("metadata"))
    role = text_of(dict_of(message.get("author")).get("role"))
    # A thought, or addressed to a tool rather than to the user.
    addressee = text_of(message.get("recipient")) or "all"
    is_aside = (
        addressee != "all"
        or text_of(message.get("channel")) in SIDE_CHANNELS
        or text_of(content.get("content_type")) in {"thoughts", "reasoning_recap"}
    )
    is_hidden = (
        (message.get("weight") == 0 and not is_aside)
        or metadata.get("is_visually_hidden_from_conversation") is True
        or text_of(content.get("content_type")) in HIDDEN_TYPES
    )
    if not message or role not in {"user", "assistant", "tool"} or is_hidden:
        return node
    node.created_at = parse_time(message.get("create_time"))
    text = _with_citations(_content_text(content), metadata)
    if role == "user":
        node.role = "user"
        node.text = text
        return node
    node.role = "assistant"
    if role == "assistant":
        node.model = text_of(metadata.get("model_slug")) or model
    if role == "tool" or is_aside:
        # A note is displayed as it is, so code needs no fence.
        note = text_of(content.get("text")) or text
        # What a tool was given or returned has the tool's name.
        recipient = text_of(message.get("recipient"))
        name = text_of(dict_of(message.get("author")).get("name"))
        tool = name or (recipient if recipient != "all" else "")
        node.notes = [f"{tool}: {note}" if tool and note else note]
        node.text = "[image]" if role == "tool" and "[image]" in text else ""
    else:
        node.text = text
    return node


def _content_text(content: dict[str, Any]) -> str:
    kind = text_of(content.get("content_type"))
    if kind in {"text", "multimodal_text"} and isinstance(content.get("parts"), list):
        return "\n".join(filter(None, map(_part_text, content["parts"])))
    if kind == "code":
        language = text_of(content.get("language"))
        code = text_of(content.get("text"))
        return code_block(code, "" if language == "unknown" else language) if code else ""
    if kind == "execution_output":
        output = text_of(content.get("text"))
        return code_block(output) if output else ""
    if kind == "thoughts":
        paragraphs = []
        for thought in map(dict_of, list_of(content.get("thoughts"))):
            texts = [text_of(thought.get("summary")), text_of(thought.get("content"))]
            paragraphs.append("\n".join(text for text in texts if text.strip()))
        return "\n\n".join(filter(None, paragraphs))
    # Unknown kinds stay readable as their text.
    return collect_text(content)


def _part_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    asset = dict_of(value)
    label = ASSET_LABELS.get(text_of(asset.get("content_type")))
    return label if label is not None else collect_text(asset)


def _with_citations(text: str, metadata: dict[str, Any]) -> str:
    """Replace citations by links, from the end, so that the other positions stay valid."""
    text = cut(text, MAX_TEXT_CHARS)
    for reference in map(dict_of, list_of(metadata.get("content_references"))[:MAX_CITATIONS]):
        mark = text_of(reference.get("matched_text"))
        alt = text_of(reference.get("alt"))
        if mark.strip() and "\ue200" in mark:
            # The label is from the file, too, and may contain the next mark.
            label = f" {cut(alt, MAX_LABEL_CHARS)}" if alt else ""
            text = cut(text.replace(mark, label, MAX_CITATIONS), MAX_TEXT_CHARS)
    links: list[tuple[int, int, str]] = []
    for citation in map(dict_of, list_of(metadata.get("citations"))[:MAX_CITATIONS]):
        start = citation.get("start_ix")
        end = citation.get("end_ix")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(text):
            links.append((start, end, _link(dict_of(citation.get("metadata")))))
    for start, end, link in sorted(links, key=lambda link: link[0], reverse=True):
        text = f"{text[:start]}{link}{text[end:]}"
    return CITATION_MARK.sub("", text)


def _link(source: dict[str, Any]) -> str:
    title = text_of(source.get("title")).strip()
    url = text_of(source.get("url"))
    if not url.startswith(("https://", "http://")):
        return f" ({title})" if title else ""
    label = re.sub(r"[\[\]\n]", " ", title) or url
    return f" ([{label}](<{url}>))"
