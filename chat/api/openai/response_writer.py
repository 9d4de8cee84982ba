"""A response as it grows: its items, the events that say how they change, and its end.

The same events always make the same items and numbers, so a stream can be resumed.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agents.engine.events import Event, EventType
from agents.engine.loop import StopReason
from agents.models import Run

from .answer import AnswerReader, Piece, Text, Thought

MAX_OUTPUT_CHARS = 20_000
STATUS_EVENTS = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
    "failed": "response.failed",
}

StreamEvent = dict[str, Any]


def response_id(run: int, after: int) -> str:
    """Return the id of the part of a run that one request got."""
    return f"resp_{run}_{after}"


class ResponseWriter:
    """The items of one response; `echo` is what it repeats of the request."""

    def __init__(
        self, run: Run, after: int, reader: AnswerReader, echo: Mapping[str, Any]
    ) -> None:
        self.run = run
        self.after = after
        self.reader = reader
        self.echo = echo
        self.output: list[dict[str, Any]] = []
        self.status = "in_progress"
        self.error: dict[str, str] | None = None
        self.incomplete: dict[str, str] | None = None
        self.ended_at: datetime | None = None
        self._sequence = -1
        self._open: int | None = None  # index of the text item that grows
        self._calls: dict[int, int] = {}  # items of tool calls and requests, by step

    def begin(self) -> Iterator[StreamEvent]:
        """Yield the events that open the response."""
        yield self._event("response.created", response=self.resource())
        yield self._event("response.in_progress", response=self.resource())

    def add(self, piece: Piece) -> Iterator[StreamEvent]:
        """Yield the events of a piece of the answer."""
        match piece:
            case Text(text):
                yield from self._grow("message", text)
            case Thought(text):
                yield from self._grow("reasoning", text)
            case Event(type=EventType.TOOL_CALL, data=data):
                yield from self._close_text()
                yield from self._begin_call(piece.agent, data)
            case Event(type=EventType.TOOL_RESPONSE, data=data):
                yield from self._end_call(data)
            case Event(type=EventType.APPROVAL_REQUESTED, data=data):
                yield from self._close_text()
                yield from self._begin_request(piece.agent, data)
            case Event(type=EventType.APPROVAL_RESOLVED, data=data):
                yield from self._end_request(data)

    def end(self, *, has_error_event: bool = True) -> Iterator[StreamEvent]:
        """Yield the events that close the response, by how the answer has ended."""
        ending = self.reader.ending
        finish = ending.finish if ending is not None else "error"
        detail = ending.detail if ending is not None else ""
        code = ending.code if ending is not None else ""
        if finish == "content_filter":
            yield from self._close_text()
            yield from self._refuse(detail)
        is_cut = finish in {"length", "content_filter"}
        yield from self._close_text("incomplete" if is_cut else "completed", is_final=True)
        for index in self._calls.values():
            item = self.output[index]
            if item["status"] == "in_progress":  # it goes on after this response
                item["status"] = "waiting" if "why" in item else "incomplete"
                yield self._item_event("done", index)
        for number, call in enumerate(self.reader.calls):
            yield from self._call_function(number, call)
        if is_cut:
            reason = "max_output_tokens" if finish == "length" else finish
            self.status = "incomplete"
            self.incomplete = {"reason": reason}
        elif code == StopReason.CANCELLED:
            self.status = "cancelled"
        elif finish == "error":
            self.status = "failed"
            self.error = {"code": code or "server_error", "message": detail}
            if has_error_event:
                payload: dict[str, Any] = {"type": "server_error", "param": None, "headers": {}}
                yield self._event("error", error=payload | self.error)
        else:
            self.status = "completed"
        yield self._event(STATUS_EVENTS[self.status], response=self.resource())

    def resource(self) -> dict[str, Any]:
        """Return the response as it is now."""
        used = self.reader.usage
        usage = {
            "input_tokens": used.input,
            "output_tokens": used.output,
            "total_tokens": used.input + used.output,
            "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens_details": {"reasoning_tokens": used.reasoning},
        }
        is_over = self.status != "in_progress"
        ended_at = self.ended_at or self.run.ended_at or self.run.started_at
        return {
            **self.echo,
            "id": response_id(self.run.pk, self.after),
            "object": "response",
            "created_at": int(self.run.started_at.timestamp()),
            "completed_at": int(ended_at.timestamp()) if self.status == "completed" else None,
            "status": self.status,
            "incomplete_details": self.incomplete,
            "output": list(self.output),
            "error": self.error,
            "usage": usage if is_over else None,
        }

    # Texts

    def _grow(self, kind: str, text: str) -> Iterator[StreamEvent]:
        if self._open is None or self.output[self._open]["type"] != kind:
            yield from self._close_text()
            text = text.lstrip("\n") if kind == "message" else text
            item: dict[str, Any] = {
                "type": kind,
                "id": self._id("msg" if kind == "message" else "rs"),
            }
            item |= {"status": "in_progress", "content": []}
            role: dict[str, Any] = {"role": "assistant"}
            item |= role if kind == "message" else {"summary": []}
            yield from self._begin(item)
            self._open = len(self.output) - 1
            part = _part(kind)
            item["content"] = [part]
            yield self._part_event("added", self._open, dict(part))
        index = self._open
        self.output[index]["content"][0]["text"] += text
        place = {"item_id": self.output[index]["id"], "output_index": index}
        name = "response.output_text" if kind == "message" else "response.reasoning"
        logprobs: dict[str, Any] = {"logprobs": []} if kind == "message" else {}
        yield self._event(f"{name}.delta", **place, content_index=0, delta=text, **logprobs)

    def _close_text(
        self, status: str = "completed", *, is_final: bool = False
    ) -> Iterator[StreamEvent]:
        """Close the text that grows; an answer that isn't the last was a comment."""
        if self._open is None:
            return
        index = self._open
        self._open = None
        item = self.output[index]
        part = item["content"][0]
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        if item["type"] == "message":
            item["phase"] = "final_answer" if is_final else "commentary"
            yield self._event(
                "response.output_text.done", **place, text=part["text"], logprobs=[]
            )
        else:
            yield self._event("response.reasoning.done", **place, text=part["text"])
        yield self._part_event("done", index, part)
        item["status"] = status
        yield self._item_event("done", index)

    def _refuse(self, detail: str) -> Iterator[StreamEvent]:
        part = {"type": "refusal", "refusal": detail}
        item: dict[str, Any] = {"type": "message", "id": self._id("msg"), "role": "assistant"}
        item |= {"status": "in_progress", "content": []}
        yield from self._begin(item)
        index = len(self.output) - 1
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        yield self._part_event("added", index, {"type": "refusal", "refusal": ""})
        yield self._event("response.refusal.delta", **place, delta=detail)
        yield self._event("response.refusal.done", **place, refusal=detail)
        item["content"] = [part]
        yield self._part_event("done", index, part)
        item["status"] = "incomplete"
        yield self._item_event("done", index)

    # Calls and requests

    def _begin_call(self, agent: str, data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if data["step"] in self._calls:  # its approval has the item
            return
        function = data["function"]
        item = {
            "type": "ashiato:tool_call",
            "id": f"tc_{self.run.pk}_{data['step']}",
            "status": "in_progress",
            "agent": agent,
            "name": function["name"],
            "arguments": function["arguments"],
            "output": None,
        }
        self._calls[data["step"]] = len(self.output)
        yield from self._begin(item)

    def _end_call(self, data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        index = self._calls.get(data["step"])
        if index is None or self.output[index]["type"] != "ashiato:tool_call":
            return
        item = self.output[index]
        item["status"] = "failed" if data["is_error"] else "completed"
        item["output"] = data["content"][:MAX_OUTPUT_CHARS]
        yield self._item_event("done", index)

    def _begin_request(self, agent: str, data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        function = data["function"]
        item = {
            "type": "ashiato:approval_request",
            "id": request_id(self.run.pk, data["step"], data["digest"]),
            "status": "in_progress",
            "agent": agent,
            "why": data["why"],
            "name": function["name"],
            "arguments": function["arguments"],
            "approved": None,
        }
        self._calls[data["step"]] = len(self.output)
        yield from self._begin(item)

    def _end_request(self, data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        index = self._calls.get(data["step"])
        if index is None or self.output[index]["type"] != "ashiato:approval_request":
            return
        del self._calls[data["step"]]  # the call itself comes now
        item = self.output[index]
        item["status"] = "completed"
        item["approved"] = data["is_approved"]
        yield self._item_event("done", index)

    def _call_function(self, number: int, call: Any) -> Iterator[StreamEvent]:
        item: dict[str, Any] = {
            "type": "function_call",
            "id": f"fc_{call.id.removeprefix('call_')}",
            "call_id": call.id,
            "name": call.name,
            "arguments": "",
            "status": "in_progress",
        }
        yield from self._begin(item)
        index = len(self.output) - 1
        place = {"item_id": item["id"], "output_index": index}
        yield self._event(
            "response.function_call_arguments.delta", **place, delta=call.arguments
        )
        item["arguments"] = call.arguments
        yield self._event(
            "response.function_call_arguments.done", **place, arguments=call.arguments
        )
        item["status"] = "completed"
        yield self._item_event("done", index)

    # Events

    def _begin(self, item: dict[str, Any]) -> Iterator[StreamEvent]:
        self.output.append(item)
        yield self._item_event("added", len(self.output) - 1)

    def _item_event(self, change: str, index: int) -> StreamEvent:
        item = dict(self.output[index])
        return self._event(f"response.output_item.{change}", output_index=index, item=item)

    def _part_event(self, change: str, index: int, part: Mapping[str, Any]) -> StreamEvent:
        return self._event(
            f"response.content_part.{change}",
            item_id=self.output[index]["id"],
            output_index=index,
            content_index=0,
            part=dict(part),
        )

    def _event(self, type: str, /, **fields: Any) -> StreamEvent:
        self._sequence += 1
        return {"type": type, "sequence_number": self._sequence} | fields

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self.run.pk}_{self.after}_{len(self.output)}"


def request_id(run: int, step: int, digest: str) -> str:
    """Return the id of a request, bound to what it displays."""
    return f"apr_{run}_{step}_{digest}"


def _part(kind: str) -> dict[str, Any]:
    if kind == "message":
        return {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    return {"type": "reasoning_text", "text": ""}


def encode_events(event: StreamEvent) -> bytes:
    """Return an event as a server-sent event."""
    data = json.dumps(event, ensure_ascii=False)
    return f"event: {event['type']}\ndata: {data}\n\n".encode()
