"""OpenAI's chunks in the formats of Anthropic and Gemini, one part for each part.

So a scripted reply, and a fault in it, is the same for every API.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

DONE = b"data: [DONE]\n\n"
USED = (11, 7)  # tokens of every reply
ANTHROPIC_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
GEMINI_REASONS = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}


def translate(path: str, parts: Iterable[Any]) -> Iterator[Any]:
    """Yield the parts as the API at this path sends them."""
    path = path.partition("?")[0]
    if path.endswith("/v1/messages"):
        yield from AnthropicFormat().parts(parts)
    elif path.endswith(":streamGenerateContent"):
        yield from GeminiFormat().parts(parts)
    else:
        yield from parts


class Format:
    def parts(self, parts: Iterable[Any]) -> Iterator[Any]:
        for part in parts:
            if isinstance(part, Mapping) and part.get("object") == "chat.completion.chunk":
                if data := b"".join(map(self.data, self.events(part))):
                    yield data
            elif part == DONE:
                yield from map(self.data, self.end())
            elif isinstance(part, Mapping):
                yield self.data(part)
            else:
                yield part

    def data(self, event: Mapping[str, Any]) -> bytes:
        return b"data: %b\n\n" % json.dumps(event).encode()

    def events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def end(self) -> list[dict[str, Any]]:
        return []


class AnthropicFormat(Format):
    """Events with a type; text, thoughts and calls are blocks with a start and an end."""

    def __init__(self) -> None:
        self._block = -1
        self._kind = ""

    def data(self, event: Mapping[str, Any]) -> bytes:
        name = str(event.get("type", "error")).encode()
        return b"event: %b\n%b" % (name, super().data(event))

    def end(self) -> list[dict[str, Any]]:
        return [{"type": "message_stop"}]

    def events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if self._block < 0:
            usage = {"input_tokens": USED[0], "output_tokens": 1}
            message = {"id": "msg_1", "type": "message", "model": "wire", "usage": usage}
            yield {"type": "message_start", "message": {**message, "content": []}}
            self._block = 0
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if text := delta.get("reasoning_content"):
                yield from self._start("thinking", {"thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": text})
            if text := delta.get("content"):
                yield from self._start("text", {"text": ""})
                yield self._delta({"type": "text_delta", "text": text})
            for call in delta.get("tool_calls", ()):
                if id := call.get("id"):
                    self._kind = ""
                    fields = {"id": id, "name": call["function"]["name"], "input": {}}
                    yield from self._start("tool_use", fields)
                if text := call["function"].get("arguments"):
                    yield self._delta({"type": "input_json_delta", "partial_json": text})
            if reason := choice["finish_reason"]:
                stop = {"stop_reason": ANTHROPIC_REASONS.get(reason, reason)}
                usage = {"output_tokens": USED[1]}
                yield {"type": "message_delta", "delta": stop, "usage": usage}

    def _start(self, kind: str, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if kind == self._kind:
            return
        if self._block:
            yield {"type": "content_block_stop", "index": self._block - 1}
        block = {"type": kind, **fields}
        yield {"type": "content_block_start", "index": self._block, "content_block": block}
        self._block += 1
        self._kind = kind

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._block - 1, "delta": delta}


class GeminiFormat(Format):
    """Candidates with parts; calls come whole, and nothing marks the end."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    def events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            parts: list[dict[str, Any]] = []
            if text := delta.get("reasoning_content"):
                parts.append({"text": text, "thought": True})
            if text := delta.get("content"):
                parts.append({"text": text})
            for call in delta.get("tool_calls", ()):
                if id := call.get("id"):
                    self._calls.append({"id": id, "name": call["function"]["name"], "args": ""})
                self._calls[-1]["args"] += call["function"].get("arguments", "")
            candidate: dict[str, Any] = {"index": 0}
            if reason := choice["finish_reason"]:
                candidate["finishReason"] = GEMINI_REASONS.get(reason, reason.upper())
                for call in self._calls:
                    call["args"] = json.loads(call["args"])
                    parts.append({"functionCall": call})
            if parts:
                candidate["content"] = {"role": "model", "parts": parts}
            prompt, completion = USED
            used = {"promptTokenCount": prompt, "candidatesTokenCount": completion}
            yield {
                "candidates": [candidate],
                "usageMetadata": {**used, "totalTokenCount": prompt + completion},
                "modelVersion": "wire",
                "responseId": "reply-1",
            }
