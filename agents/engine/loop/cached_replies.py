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
from agents.engine.result_cache import CachedReply, CacheMark, ReplyCache
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn

from .model_call import Events, ModelCall, Pieces, RequestBuilder
from .usage import turn_usage

IN_FLIGHT: JoinedCalls[CachedReply] = JoinedCalls()
FREE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0.0}


def cached_events(
    call: ModelCall, request: ModelRequest, build_request: RequestBuilder
) -> Events:
    """Stream a saved reply if the planner has a cache and the request is in it."""
    cache = call.planner.reply_cache
    # Aliases of personal data stand for other values in another run.
    if cache is None or call.planner.pseudonymizer is not None:
        return call.events(request, build_request)
    return _find_or_ask(call, cache, request, build_request)


async def _find_or_ask(
    call: ModelCall, cache: ReplyCache, request: ModelRequest, build_request: RequestBuilder
) -> Events:
    planner = call.planner
    key = await cache.key(request_facts(planner, request))
    joined = await IN_FLIGHT.wait(key) if key else None
    if joined is not None and joined.result is not None:
        source = _replay(call, request, joined.result, is_joined=True)
        async with aclosing(source) as events:
            async for event in events:
                yield event
        return
    async with IN_FLIGHT.lead(key) if key else nullcontext(Flight[CachedReply]()) as flight:
        cached = await cache.find(key) if key else None
        flight.result = cached
        began = time.monotonic()
        call.deltas = []
        source = (
            _replay(call, request, cached) if cached else call.events(request, build_request)
        )
        async with aclosing(source) as events:
            async for event in events:
                yield event
        is_whole = call.finding is None and is_complete(call.unmasked)
        if cached or not key or not is_whole or call.planner is not planner:
            return
        seconds = time.monotonic() - began
        flight.result = await _save(call, cache, key, request, seconds)


async def _replay(
    call: ModelCall, request: ModelRequest, cached: CachedReply, *, is_joined: bool = False
) -> Events:
    call.request = request
    call.cached = cached.mark.joined() if is_joined else cached.mark
    async with aclosing(call.stream_screened(request, replay(cached.reply))) as events:
        async for event in events:
            yield event


async def _save(
    call: ModelCall, cache: ReplyCache, key: str, request: ModelRequest, seconds: float
) -> CachedReply | None:
    if call.unmasked is None:
        return None
    used = turn_usage(call.unmasked, request.messages, call.planner.count_tokens)
    value = to_value(call.deltas or (), call.unmasked)
    await cache.save(key, value, used, seconds)
    mark = CacheMark(at=datetime.now(UTC), key=key, seconds=seconds, usage=used)
    return CachedReply(reply=value, mark=mark)


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


def is_complete(plan: PlanResult | None) -> bool:
    """Whether a reply was neither cut off nor refused."""
    return plan is not None and not plan.turn.is_cut and not plan.turn.is_refusal


def _calls(values: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(**value) for value in values)
