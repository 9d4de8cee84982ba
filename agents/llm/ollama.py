"""Ollama's own API: `/api/chat`, one JSON object per line.

Its OpenAI-compatible endpoint ignores settings such as `num_ctx`, so that long requests would
be cut without a word. That endpoint is used only for an address that ends in `/v1`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.engine.state import Message

from .json_codec import decode
from .provider_errors import StreamGarbled

CHAT_PATH = "/api/chat"
MAX_LINE_BYTES = 16 * 1024 * 1024
# Request fields; all other parameters are options of the model.
TOP_LEVEL = ("think", "keep_alive")
RENAMED_OPTIONS = {
    "max_tokens": "num_predict",
    "max_completion_tokens": "num_predict",
    "repetition_penalty": "repeat_penalty",
}
OPTIONS = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop"),
        *("presence_penalty", "frequency_penalty", "num_ctx"),
        *("num_predict", "repeat_penalty"),
    }
)


def build_body(
    name: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    set_parameters = {name: value for name, value in parameters.items() if value is not None}
    renamed = {RENAMED_OPTIONS.get(name, name): value for name, value in set_parameters.items()}
    options = {name: value for name, value in renamed.items() if name in OPTIONS}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    body: dict[str, Any] = {"model": name, "messages": _messages(messages), "stream": True}
    body |= {name: set_parameters[name] for name in TOP_LEVEL if name in set_parameters}
    if "think" not in body and isinstance(
        effort := set_parameters.get("reasoning_effort"), str
    ):
        body["think"] = False if effort == "none" else effort
    if tools and set_parameters.get("tool_choice") != "none":
        body["tools"] = list(tools)
    if form := set_parameters.get("response_format"):
        body["format"] = _format(form)
    return {**body, **({"options": options} if options else {})}


def _format(form: Mapping[str, Any]) -> Any:
    schema = form.get("json_schema")
    return schema.get("schema") if isinstance(schema, Mapping) else "json"


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    tool_names: dict[str, str] = {}  # names by the id of the call
    converted = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            tool_names[call["id"]] = call["function"]["name"]
        converted.append(_message(message, tool_names))
    return converted


def _message(message: Message, tool_names: Mapping[str, str]) -> dict[str, Any]:
    text, images = _content(message.get("content"))
    converted: dict[str, Any] = {"role": message["role"], "content": text}
    if images:
        converted["images"] = images
    if thought := message.get("reasoning_content"):
        converted["thinking"] = thought
    if calls := message.get("tool_calls"):
        converted["tool_calls"] = [_call(call["function"]) for call in calls]
    if message["role"] == "tool":
        converted["tool_name"] = tool_names.get(message.get("tool_call_id", ""), "")
    return converted


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {}
    return {"function": {"name": function["name"], "arguments": arguments}}


def _content(content: Any) -> tuple[str, list[str]]:
    """Return the text and the images, which Ollama takes apart from it."""
    if not isinstance(content, list):
        return content or "", []
    texts: list[str] = []
    images: list[str] = []
    for part in content:
        if part.get("type") == "text":
            texts.append(part["text"])
        elif part.get("type") == "image_url":
            url = part["image_url"]["url"]
            head, _, data = url.partition(";base64,")
            # Ollama fetches nothing, so an address is left as text.
            (images if head.startswith("data:") else texts).append(data or url)
    return "\n".join(texts), images


class LineReader:
    """Splits a response into lines; the same interface as `sse.EventReader`."""

    def __init__(self) -> None:
        self._rest = b""
        self.has_ended = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that this piece completes; an empty piece ends the stream."""
        self.has_ended = not piece
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if self.has_ended:
            lines, self._rest = [*lines, self._rest], b""
        if len(self._rest) > MAX_LINE_BYTES:
            raise StreamGarbled("a line without an end")
        return [line for line in lines if line.strip()]


def decode_lines(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the lines as events of OpenAI's API."""
    for line in lines:
        yield _event(decode(line))


def _event(reply: Any) -> dict[str, Any]:
    if not isinstance(reply, Mapping):
        raise StreamGarbled("an event that is not a chunk")
    if error := reply.get("error"):
        return {"error": error}
    message = reply.get("message") or {}
    fields = {
        "content": message.get("content"),
        "reasoning_content": message.get("thinking"),
        "tool_calls": message.get("tool_calls"),
    }
    delta = {name: value for name, value in fields.items() if value}
    reason = (reply.get("done_reason") or "stop") if reply.get("done") else None
    return {
        "id": reply.get("created_at"),
        "model": reply.get("model"),
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        **_usage(reply),
    }


def _usage(reply: Mapping[str, Any]) -> dict[str, Any]:
    # Without `prompt_eval_count` the whole prompt was in the cache.
    if not reply.get("done") or not isinstance(
        completion_tokens := reply.get("eval_count"), int
    ):
        return {}
    prompt_tokens = reply.get("prompt_eval_count") or 0
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return {"usage": {**counts, "total_tokens": prompt_tokens + completion_tokens}}
