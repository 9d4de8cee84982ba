"""Ollama's `/api/chat`, one line of JSON at a time."""

from typing import Any

from tests.wire import LINES, Reply, WireServer

MODEL = "ollama_chat/wire"


def address(server: WireServer) -> str:
    return server.url.removesuffix("/v1")


def reply(*messages: dict[str, Any], stop: str = "stop") -> Reply:
    end = {"done": True, "done_reason": stop, "prompt_eval_count": 11, "eval_count": 7}
    lines = [line(**message) for message in messages]
    return Reply(parts=(*lines, {**line(), **end}), headers=LINES)


def line(**message: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "", **message}
    return {"model": "wire", "created_at": "2026-01-01", "message": message, "done": False}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}
