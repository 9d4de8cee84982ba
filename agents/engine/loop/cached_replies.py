"""A model's reply as it is cached: the streamed text and the decision, before guardrails."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from agents.engine.concurrency.joined_calls import JoinedCalls
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner, SlowNotice
from agents.engine.planner.reply_readers import TextDelta
from agents.engine.result_cache import CachedReply
from agents.engine.turn.assembly import PlanResult, ToolCall, Turn

Pieces = AsyncGenerator[TextDelta | SlowNotice | PlanResult, None]

IN_FLIGHT: JoinedCalls[CachedReply] = JoinedCalls()
FREE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0.0}


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
    plan = dict(value["plan"])
    turn = {**plan.pop("turn"), "usage": FREE}
    turn["tool_calls"] = _calls(turn["tool_calls"])
    yield PlanResult(**{**plan, "calls": _calls(plan["calls"])}, turn=Turn(**turn))


def is_complete(plan: PlanResult | None) -> bool:
    """Whether a reply was neither cut off nor refused."""
    return plan is not None and not plan.turn.is_cut and not plan.turn.is_refusal


def _calls(values: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(**value) for value in values)
