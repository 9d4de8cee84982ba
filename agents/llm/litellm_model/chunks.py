"""LiteLLM's chunks in OpenAI's format."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from agents.engine.turn import Chunk
from agents.llm import prompt_caching
from agents.llm.usage_limits import UsageLimits

logger = logging.getLogger(__name__)
DELTA_FIELDS = (
    "content",
    "thinking_blocks",
    "reasoning_details",
    "provider_specific_fields",
    "refusal",
)
TOOL_CALL_FIELDS = ("provider_specific_fields", "extra_content")
SIGNATURE_SEPARATOR = "__thought__"  # LiteLLM also puts Gemini's signature into the call id
REASONING_READ_ONLY = {"groq"}  # reasoning is in `reasoning`, and rejected in a request


async def convert_chunks(stream: Any) -> AsyncGenerator[Chunk, None]:
    """Convert LiteLLM's chunks field by field, because dumping them costs far more.

    If the provider never sent a finish reason, LiteLLM reports `stop`, which is an error here.
    """
    has_started = False
    reasons: list[str] = []
    create = stream.chunk_creator

    def create_chunk(chunk: Any) -> Any:
        """Collect finish reasons, which LiteLLM forgets if more chunks follow."""
        created = create(chunk=chunk)
        if reason := stream.received_finish_reason or stream.intermittent_finish_reason:
            reasons.append(reason)
        return created

    stream.chunk_creator = create_chunk
    is_read_only = stream.custom_llm_provider in REASONING_READ_ONLY
    reasoning_field = "reasoning" if is_read_only else "reasoning_content"
    async for chunk in stream:
        choices = [
            {
                "index": choice.index,
                "delta": _to_delta(choice.delta, reasoning_field),
                "finish_reason": reasons[-1] if choice.finish_reason and reasons else None,
            }
            for choice in chunk.choices
        ]
        has_started = has_started or any(choice["delta"] for choice in choices)
        usage = getattr(chunk, "usage", None)
        used = {"usage": usage.model_dump(exclude_none=True)} if usage else {}
        yield {"id": chunk.id, "model": chunk.model, "choices": choices, **used}
        # Chunks that have already arrived are read without waiting, and slowly: yield to others
        # in between.
        await asyncio.sleep(0)
    if has_started and not reasons:
        raise EOFError


def _to_delta(delta: Any, reasoning_field: str) -> dict[str, Any]:
    fields = {name: getattr(delta, name, None) for name in DELTA_FIELDS}
    fields[reasoning_field] = getattr(delta, "reasoning_content", None)
    calls: list[dict[str, Any]] = []
    for call in getattr(delta, "tool_calls", None) or ():
        converted = {
            "index": call.index,
            "id": call.id and call.id.partition(SIGNATURE_SEPARATOR)[0],
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for name in TOOL_CALL_FIELDS:
            if value := getattr(call, name, None):
                converted[name] = value
        calls.append(converted)
    fields["tool_calls"] = calls
    return {name: value for name, value in fields.items() if value}


def add_cost(chunk: Chunk, limits: UsageLimits, litellm: Any) -> Chunk:
    """Add the cost in dollars, if the price is known and not already included."""
    usage = chunk.get("usage")
    if not usage:
        return chunk
    model = limits.model
    usage = limits.clamp_cost(prompt_caching.listed_savings(model, limits.clamp(usage)))
    chunk = {**chunk, "usage": usage}
    if usage.get("cost") is not None:
        return chunk
    try:
        cost = sum(litellm.cost_per_token(model=model, usage_object=litellm.Usage(**usage)))
    except Exception as error:
        # It raises anything for an unknown name; a missing price must not fail the reply.
        logger.debug("No price is known for %r: %s", model, type(error).__name__)
        return chunk
    # LiteLLM returns 0 for some unknown names too.
    return {**chunk, "usage": limits.clamp_cost({**usage, "cost": cost})} if cost else chunk
