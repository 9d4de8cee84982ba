"""Token usage and cost of a run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.engine.attachments import refs_of, token_count
from agents.engine.guardrails.checks import TokenCounter
from agents.engine.state import Message
from agents.engine.turn.assembly import PlanResult


@dataclass(slots=True)
class RunUsage:
    """The total so far. An unknown cost is None, not zero."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def add(self, turn: dict[str, Any]) -> None:
        self.prompt_tokens += turn["prompt_tokens"]
        self.completion_tokens += turn["completion_tokens"]
        if turn["cost"] is not None:
            self.cost = (self.cost or 0) + turn["cost"]

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
    plan: PlanResult, sent: Sequence[Message], count: TokenCounter
) -> dict[str, Any]:
    """Return one turn's usage; estimated if the provider doesn't report it."""
    reported = plan.turn.usage or {}
    prompt, completion = reported.get("prompt_tokens"), reported.get("completion_tokens")
    estimated = prompt is None or completion is None
    if prompt is None or completion is None:
        texts = [{k: v for k, v in m.items() if k != "attachments"} for m in sent]
        prompt = count(json.dumps(texts, ensure_ascii=False))
        prompt += sum(token_count(refs_of(message)) for message in sent)
        completion = count(plan.thought + (plan.final_answer or ""))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cost": reported.get("cost"),
        "estimated": estimated,
    }
