"""Token usage and cost of a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.engine.attachments import refs_of, token_count
from agents.engine.guardrails.checks import TokenCounter
from agents.engine.state import Message
from agents.engine.turn.assembly import PlanResult


@dataclass(slots=True)
class RunUsage:
    """The total so far, and of the last call. An unknown cost is None, not zero."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    last_tokens: int = 0
    last_cost: float = 0

    def add(self, usage: dict[str, Any]) -> None:
        self.prompt_tokens += usage["prompt_tokens"]
        self.completion_tokens += usage["completion_tokens"]
        if usage["cost"] is not None:
            self.cost = (self.cost or 0) + usage["cost"]
        self.last_tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        self.last_cost = usage["cost"] or 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def to_dict(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
            "cost": self.cost,
        }


def turn_usage(
    plan: PlanResult, messages: Sequence[Message], count: TokenCounter
) -> dict[str, Any]:
    """Return one turn's usage; estimated if the provider doesn't report it."""
    reported = plan.turn.usage or {}
    prompt = reported.get("prompt_tokens")
    completion = reported.get("completion_tokens")
    estimated = prompt is None or completion is None
    if prompt is None or completion is None:
        texts = [{k: v for k, v in m.items() if k != "attachments"} for m in messages]
        prompt = count(json.dumps(texts, ensure_ascii=False))
        prompt += sum(token_count(refs_of(message)) for message in messages)
        completion = count(plan.thought + (plan.final_answer or ""))
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cost": reported.get("cost"),
        "estimated": estimated,
    }
    if plan.turn.model:
        usage["response_model"] = plan.turn.model
    # The cached and reasoning tokens, as far as the provider reports any.
    for name, sources in _TOKEN_DETAILS.items():
        for group, field in sources:
            source = reported.get(group) if group else reported
            tokens = source.get(field) if isinstance(source, Mapping) else None
            if isinstance(tokens, int) and tokens > 0:
                usage.setdefault(name, tokens)
    for name in ("cache_savings", "reported"):
        if value := reported.get(name):
            usage[name] = value
    return usage


# What providers call the part of the tokens that has its own price. Where a count comes under
# several names, they mean the same tokens.
_TOKEN_DETAILS = {
    "cache_read_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("", "cache_read_input_tokens"),
        ("", "prompt_cache_hit_tokens"),
    ),
    "cache_write_tokens": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_tokens"),
        ("", "cache_creation_input_tokens"),
    ),
    "reasoning_tokens": (("completion_tokens_details", "reasoning_tokens"),),
}
