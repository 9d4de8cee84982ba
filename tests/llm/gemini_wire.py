"""Gemini's `streamGenerateContent`, as events."""

from typing import Any

from tests.wire import Reply, WireServer

MODEL = "gemini/gemini-3-pro-preview"
USED = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}


def address(server: WireServer) -> str:
    return server.url.replace("/v1", "/v1beta")


def reply(*chunks: list[dict[str, Any]], stop: str | None = "STOP") -> Reply:
    """Return chunks of parts; the finish reason is in the last one, or on its own."""
    events = [chunk(*parts) for parts in chunks] or [{"candidates": [{"index": 0}]}]
    if stop:
        events[-1]["candidates"][0]["finishReason"] = stop
    return Reply(parts=tuple(events))


def chunk(*parts: dict[str, Any]) -> dict[str, Any]:
    candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [candidate], "usageMetadata": USED, "modelVersion": "gemini-3-pro"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"text": words, **more}


def thought(words: str) -> dict[str, Any]:
    return {"text": words, "thought": True}


def call(name: str, *, signature: str = "", **args: Any) -> dict[str, Any]:
    signed = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {"name": name, "args": args}, **signed}


def error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": "UNAVAILABLE"}}
