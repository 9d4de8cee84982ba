"""What a provider can report for a request: no more than was sent and asked for.

A server's numbers decide what users have spent, and a wrong one would use up their limits.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.engine.turn import reported_usage

from . import model_info

# Chat templates, and what vendors add to requests with tools.
TOKENS_PER_REQUEST = 1_000
TOKENS_PER_MESSAGE = 20
# At least two of these make a token; some tokenizers use one for each digit or mark.
COMMON_BYTES = b"abcdefghijklmnopqrstuvwxyz \n"
# Of an image; other files are larger the more bytes they have.
TOKENS_PER_PART = 20_000
CHARS_PER_FILE_TOKEN = 10
MAX_COMPLETION_TOKENS = 131_072  # of models that aren't listed, if no maximum was asked for
OUTPUT_PARAMETERS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
MAX_NOTED = 10**15
# Names are the provider's, and are saved and displayed with the step.
MAX_NOTED_NAMES = 10
MAX_NAME_CHARS = 60
# Added by us; a provider's values of these names mean something else.
OWN_NAMES = ("reported", "cache_savings")


def max_prompt_tokens(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None
) -> int:
    """Return how many tokens a prompt can have at most, whatever the tokenizer."""
    tokens = TOKENS_PER_REQUEST
    tokens += _max_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
    for message in messages:
        fields = {name: value for name, value in message.items() if name != "content"}
        tokens += TOKENS_PER_MESSAGE + _max_tokens(json.dumps(fields, default=str))
        content = message.get("content")
        for item in content if isinstance(content, list) else [content or ""]:
            text = item.get("text") if isinstance(item, Mapping) else item
            if isinstance(text, str):
                tokens += _max_tokens(text)
            else:
                is_image = isinstance(item, Mapping) and item.get("type") == "image_url"
                size = 0 if is_image else len(str(item)) // CHARS_PER_FILE_TOKEN
                tokens += TOKENS_PER_PART + size
    return tokens


def _max_tokens(text: str) -> int:
    """Return the tokens of a text in the least suitable tokenizer: two for a wide character."""
    encoded = text.encode(errors="replace")
    rare = len(encoded.translate(None, COMMON_BYTES))
    return (len(encoded) - rare) // 2 + rare - (len(encoded) - len(text)) // 2


def requested_tokens(parameters: Mapping[str, Any]) -> int | None:
    """Return the longest answer that a request asks for, if it says so."""
    counts = (parameters.get(name) for name in OUTPUT_PARAMETERS)
    return next((count for count in counts if isinstance(count, int) and count > 0), None)


def clamp_count(excess: dict[str, Any], limit: int, name: str, count: Any) -> Any:
    """Return the count, or the limit if it is higher, which is noted under its name."""
    if not isinstance(count, int) or count <= limit:
        return count
    if len(excess) < MAX_NOTED_NAMES:
        excess[name[:MAX_NAME_CHARS]] = min(count, MAX_NOTED)
    return limit


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """The request whose usage is reported."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None
    parameters: Mapping[str, Any]

    def clamp(self, usage: Mapping[str, Any]) -> dict[str, Any]:
        """Return plausible numbers only; `reported` has those that were too high."""
        excess: dict[str, Any] = {}
        at_most = partial(clamp_count, excess)
        clamped = {name: value for name, value in usage.items() if name not in OWN_NAMES}
        prompt = clamped.get("prompt_tokens")
        contents = [message.get("content") for message in self.messages]
        # At least: two characters can be one token. Counting exactly takes longer.
        max_prompt = sum(len(text) for text in contents if isinstance(text, str)) // 2
        if not isinstance(prompt, int) or prompt > max_prompt:
            max_prompt = max_prompt_tokens(self.messages, self.tools)
            prompt = at_most(max_prompt, "prompt_tokens", prompt)
        max_completion = (
            requested_tokens(self.parameters)
            or model_info.max_output(self.model)
            or MAX_COMPLETION_TOKENS
        )
        completion = at_most(
            max_completion, "completion_tokens", clamped.get("completion_tokens")
        )
        # What is cached is a part of the prompt, and reasoning of the completion.
        max_cached = prompt if isinstance(prompt, int) else max_prompt
        max_reasoning = completion if isinstance(completion, int) else max_completion
        for name, value in clamped.items():
            limit = max_reasoning if name.startswith("completion") else max_cached
            if isinstance(value, Mapping):
                clamped[name] = {key: at_most(limit, key, n) for key, n in value.items()}
            elif "cache" in name:
                clamped[name] = at_most(limit, name, value)
        clamped |= {"prompt_tokens": prompt, "completion_tokens": completion}
        plausible = reported_usage(clamped)
        return {**plausible, "reported": excess} if excess else plausible

    def clamp_cost(self, usage: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the usage with no more cost than its tokens have by the price list."""
        cost = usage.get("cost")
        prompt = usage.get("prompt_tokens")
        if not isinstance(cost, int | float) or not isinstance(prompt, int):
            return usage
        price = model_info.price(self.model, prompt)
        if price is None or cost <= (max_cost := price.most(usage)):
            return usage
        reported = {**usage.get("reported", {}), "cost": cost}
        return {**usage, "cost": max_cost, "reported": reported}
