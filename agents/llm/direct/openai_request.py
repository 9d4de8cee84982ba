"""Builds requests for servers with OpenAI's API, with their quirks."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2s
from typing import Any

from agents.engine.state import Message
from agents.engine.turn import portable_message
from agents.llm.providers import Quirks

STREAM_OPTIONS = {"include_usage": True}
BRIDGE = "OK."


def build_body(
    name: str,
    quirks: Quirks,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    supported = {
        quirks.renamed.get(name, name): value
        for name, value in parameters.items()
        if value is not None and name not in quirks.dropped
    }
    choice = supported.get("tool_choice")
    if isinstance(choice, str) and choice in quirks.tool_choices:
        supported["tool_choice"] = quirks.tool_choices[choice]
    adapted_tools: list[Any] = list(tools or ())
    if quirks.schemas_without:
        adapted_tools = _strip_keywords(adapted_tools, quirks.schemas_without)
    body = {
        "model": name,
        "messages": [
            _adapt_message(message, quirks) for message in adapt_order(messages, quirks)
        ],
        **({"tools": adapted_tools} if tools else {}),
        **supported,
        **quirks.added,
    }
    if "response_format" in body and not quirks.streams_forms:
        return body
    body["stream"] = True
    if quirks.takes_stream_options:
        body["stream_options"] = STREAM_OPTIONS
    return body


def headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def unstreamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request for the reply in one piece."""
    request = {name: value for name, value in body.items() if name != "stream_options"}
    return {**request, "stream": False} if "stream" in request else request


def adapt_order(messages: Sequence[Message], quirks: Quirks) -> list[Message]:
    """Put an assistant's message between a tool's result and a user's message, if needed."""
    if quirks.takes_user_after_tool:
        return list(messages)
    adapted = list[Message]()
    for message in messages:
        if message["role"] == "user" and adapted and adapted[-1]["role"] == "tool":
            adapted.append({"role": "assistant", "content": BRIDGE})
        adapted.append(message)
    return adapted


def _adapt_message(message: Message, quirks: Quirks) -> Message:
    adapted = message if quirks.takes_thoughts else portable_message(message)
    adapted = {name: value for name, value in adapted.items() if value is not None}
    if not quirks.takes_names:
        adapted.pop("name", None)
    if pattern := quirks.call_ids:
        # Ids that the server accepts, the same in a call and its result.
        if "tool_call_id" in adapted:
            adapted["tool_call_id"] = _adapt_id(adapted["tool_call_id"], pattern)
        if calls := adapted.get("tool_calls"):
            adapted["tool_calls"] = [
                {**call, "id": _adapt_id(call["id"], pattern)} for call in calls
            ]
    return adapted


def _adapt_id(id: str, pattern: str) -> str:
    return id if re.fullmatch(pattern, id) else blake2s(id.encode()).hexdigest()[:9]


def _strip_keywords(schema: Any, keywords: frozenset[str], *, are_names: bool = False) -> Any:
    """Remove these keywords from a schema; names in `properties` aren't keywords."""
    if isinstance(schema, list):
        return [_strip_keywords(item, keywords) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: _strip_keywords(value, keywords, are_names=name == "properties" and not are_names)
        for name, value in schema.items()
        if are_names or name not in keywords
    }
