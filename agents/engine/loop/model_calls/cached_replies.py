"""Saved replies of a model: the streamed text and the decision, before guardrails."""

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from agents.engine.concurrency.joined_calls import Flight, JoinedCalls
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.planner.reply_readers import TextDelta
from agents.engine.result_cache import CachedReply, CacheMark, ReplyStore
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn

from ..capability import Capability, Events, ModelHandler
from .model_call import ModelCall, Pieces
from .usage import turn_usage

IN_FLIGHT: JoinedCalls[CachedReply] = JoinedCalls()
FREE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0.0}


class ReplyCache(Capability):
    """Streams a saved reply if the same request was answered before, and saves new ones."""

    def __init__(self, store: ReplyStore) -> None:
        self.store = store

    def model_call(self, call: ModelCall, next: ModelHandler) -> Events:
        # Aliases of personal data stand for other values in another run.
        if call.planner.pseudonymizer is not None or call.phase == "output":
            return next(call)
        return self._find_or_ask(call, next)

    async def _find_or_ask(self, call: ModelCall, next: ModelHandler) -> Events:
        planner = call.planner
        request = call.request
        key = await self.store.key(request_facts(planner, request))
        joined = await IN_FLIGHT.wait(key) if key else None
        if joined is not None and joined.result is not None:
            source = _replay(call, joined.result, is_joined=True)
            async with aclosing(source) as events:
                async for event in events:
                    yield event
            return
        async with IN_FLIGHT.lead(key) if key else nullcontext(Flight[CachedReply]()) as flight:
            cached = await self.store.find(key) if key else None
            flight.result = cached
            began = time.monotonic()
            call.deltas = []
            async with aclosing(_replay(call, cached) if cached else next(call)) as events:
                async for event in events:
                    yield event
            plan = call.unmasked
            if cached or not key or call.finding or call.planner is not planner:
                return
            if plan is None or not is_complete(plan):
                return
            seconds = time.monotonic() - began
            used = turn_usage(plan, request.messages, planner.count_tokens)
            value = to_value(call.deltas or (), plan)
            await self.store.save(key, value, used, seconds)
            mark = CacheMark(at=datetime.now(UTC), key=key, seconds=seconds, usage=used)
            flight.result = CachedReply(reply=value, mark=mark)


def _replay(call: ModelCall, cached: CachedReply, *, is_joined: bool = False) -> Events:
    call.cached = cached.mark.joined() if is_joined else cached.mark
    return call.stream_screened(call.request, replay(cached.reply))


def request_facts(planner: ReActPlanner, request: ModelRequest) -> dict[str, Any]:
    """Return everything that a reply depends on; attachments are digests in messages."""
    return {
        "model": planner.model,
        "provider": planner.provider_info,
        "address": getattr(planner.llm, "base_url", None) or "",
        "dialect": planner.dialect,
        "messages": request.messages,
        "tools": request.tools,
        "parameters": dict(request.parameters),
    }


def to_value(deltas: Sequence[TextDelta], plan: PlanResult) -> dict[str, Any]:
    """Return a reply as JSON data."""
    texts = [
        [kind, "".join(delta.text for delta in group)]
        for kind, group in groupby(deltas, key=lambda delta: delta.kind)
    ]
    return {"texts": texts, "plan": asdict(plan)}


async def replay(value: Mapping[str, Any]) -> Pieces:
    """Yield a saved reply like a new one; it has used no tokens."""
    for kind, text in value["texts"]:
        yield TextDelta(kind, text)
    fields = dict(value["plan"])
    turn = {**fields.pop("turn"), "usage": FREE}
    turn["tool_calls"] = _calls(turn["tool_calls"])
    yield PlanResult(**{**fields, "calls": _calls(fields["calls"])}, turn=Turn(**turn))


def is_complete(plan: PlanResult) -> bool:
    """Whether a reply was neither cut off nor refused."""
    return not plan.turn.is_cut and not plan.turn.is_refusal


def _calls(values: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(**value) for value in values)
