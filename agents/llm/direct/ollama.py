"""Ollama's own API: `/api/chat`, one JSON object per line.

Its OpenAI-compatible endpoint ignores settings such as `num_ctx`, so that long requests would
be cut without a word. That endpoint is used only for an address that ends in `/v1`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.engine.state import Message

from ..wire.json_codec import decode
from ..wire.provider_errors import StreamGarbled
from .conversion import call_arguments

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
        "frequency_penalty",
        "min_p",
        "num_ctx",
        "num_predict",
        "presence_penalty",
        "repeat_penalty",
        "seed",
        "stop",
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
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
    tool_names: dict[str, str] = {}  # by the id of the call, which servers may use again
    converted = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            tool_names[call["id"]] = call["function"]["name"]
        converted.append(_message(message, tool_names))
    body: dict[str, Any] = {"model": name, "messages": converted, "stream": True}
    body |= {name: set_parameters[name] for name in TOP_LEVEL if name in set_parameters}
    if "think" not in body and isinstance(
        effort := set_parameters.get("reasoning_effort"), str
    ):
        body["think"] = False if effort == "none" else effort
    if tools and set_parameters.get("tool_choice") != "none":
        body["tools"] = list(tools)
    if response_format := set_parameters.get("response_format"):
        schema = response_format.get("json_schema")
        body["format"] = schema.get("schema") if isinstance(schema, Mapping) else "json"
    if options:
        body["options"] = options
    return body


def _message(message: Message, tool_names: Mapping[str, str]) -> dict[str, Any]:
    content = message.get("content")
    converted: dict[str, Any] = {"role": message["role"], "content": content or ""}
    if isinstance(content, list):
        # Ollama takes images apart from the text. It fetches nothing, so an address is left
        # as text.
        texts: list[str] = []
        images: list[str] = []
        for item in content:
            if item.get("type") == "text":
                texts.append(item["text"])
            elif item.get("type") == "image_url":
                url = item["image_url"]["url"]
                head, _, data = url.partition(";base64,")
                (images if head.startswith("data:") else texts).append(data or url)
        converted["content"] = "\n".join(texts)
        if images:
            converted["images"] = images
    if thought := message.get("reasoning_content"):
        converted["thinking"] = thought
    if calls := message.get("tool_calls"):
        converted["tool_calls"] = []
        for call in calls:
            function = {"name": call["function"]["name"], "arguments": call_arguments(call)}
            converted["tool_calls"].append({"function": function})
    if message["role"] == "tool":
        converted["tool_name"] = tool_names.get(message.get("tool_call_id", ""), "")
    return converted


class LineReader:
    """Splits a response into lines; the same interface as `sse.EventReader`."""

    def __init__(self) -> None:
        self._open_line = b""
        self.has_ended = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that this piece completes; an empty piece ends the stream."""
        self.has_ended = not piece
        *lines, self._open_line = (self._open_line + piece).split(b"\n")
        if self.has_ended:
            lines.append(self._open_line)
            self._open_line = b""
        if len(self._open_line) > MAX_LINE_BYTES:
            raise StreamGarbled("a line without an end")
        return [line for line in lines if line.strip()]


def decode_lines(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the lines as events of OpenAI's API."""
    for reply in map(decode, lines):
        if not isinstance(reply, Mapping):
            raise StreamGarbled("an event that is not a chunk")
        if error := reply.get("error"):
            yield {"error": error}
            continue
        message = reply.get("message") or {}
        fields = {
            "content": message.get("content"),
            "reasoning_content": message.get("thinking"),
            "tool_calls": message.get("tool_calls"),
        }
        delta = {name: value for name, value in fields.items() if value}
        reason = (reply.get("done_reason") or "stop") if reply.get("done") else None
        event = {
            "id": reply.get("created_at"),
            "model": reply.get("model"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        if reply.get("done") and isinstance(reply.get("eval_count"), int):
            completion_tokens = reply["eval_count"]
            # Without `prompt_eval_count` the whole prompt was in the cache.
            prompt_tokens = reply.get("prompt_eval_count") or 0
            event["usage"] = {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            }
        yield event
