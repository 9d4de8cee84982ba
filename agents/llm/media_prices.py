"""What sound and images cost, from LiteLLM's table. An unknown price is None."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from . import model_info, usage_limits
from .media_models import MediaUsage

INPUT = model_info.INPUT_COST
OUTPUT = model_info.OUTPUT_COST
MAX_AMOUNT = 10**15
# Some providers bill at least a minute. A recording of unknown length is a day long at most.
BILLED_SECONDS = 60
MAX_SECONDS = 86_400
TOKENS_PER_SECOND = 100  # of sound or its transcript, at most


def image_usage(model: str, usage: Mapping[str, Any], prompt_text: str = "") -> MediaUsage:
    """Return the usage of one generated image."""
    entry = model_info.provider_entry(model)
    excess: dict[str, Any] = {}
    max_prompt = usage_limits.max_prompt_tokens([{"content": prompt_text}], None)
    prompt, completion = _tokens(usage, excess, max_prompt, usage_limits.TOKENS_PER_PART)
    cost = _number(entry.get("output_cost_per_image"))
    if cost is None and completion:
        rate = entry.get("output_cost_per_image_token") or entry.get(OUTPUT)
        cost = _sum((prompt, entry.get(INPUT)), (completion, rate))
    return _usage(model, cost, prompt, completion, excess)


def transcription_usage(model: str, reply: Mapping[str, Any], seconds: float) -> MediaUsage:
    """Return the usage of a transcript; `seconds` is how long the recording is, if known."""
    entry = model_info.provider_entry(model)
    usage = reply.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    excess: dict[str, Any] = {}
    max_seconds = max(2 * seconds, seconds + BILLED_SECONDS) if seconds else MAX_SECONDS
    max_tokens = ceil(max_seconds) * TOKENS_PER_SECOND
    prompt, completion = _tokens(usage, excess, max_tokens, max_tokens)
    rate = entry.get("input_cost_per_second") or entry.get("output_cost_per_second")
    length = _number(usage.get("seconds")) or _number(reply.get("duration")) or seconds
    if length > max_seconds:
        excess["seconds"] = length
        length = max_seconds
    cost = _sum((prompt, entry.get(INPUT)), (completion, entry.get(OUTPUT)))
    if not completion or cost is None:
        cost = _sum((length, rate)) if length else None
    return _usage(model, cost, prompt, completion, excess)


def speech_usage(model: str, characters: int, seconds: float = 0.0) -> MediaUsage:
    """Return the usage of a text read aloud, which takes `seconds` to hear."""
    entry = model_info.provider_entry(model)
    cost = _sum((characters, entry.get("input_cost_per_character")))
    if cost is None and seconds:
        cost = _sum((seconds, entry.get("output_cost_per_second")))
    return _usage(model, cost)


def chat_usage(model: str, usage: Mapping[str, Any]) -> MediaUsage:
    """Return the usage of a reply of a chat model, as `UsageLimits` returns it."""
    prompt = _count(usage.get("prompt_tokens"))
    completion = _count(usage.get("completion_tokens"))
    price = model_info.price(model, prompt)
    cost = _number(usage.get("cost"))
    if cost is None and price is not None and completion:
        cost = price.of(usage)
    return _usage(model, cost, prompt, completion, usage.get("reported") or {})


def _usage(
    model: str,
    cost: float | None,
    prompt: int = 0,
    completion: int = 0,
    reported: Mapping[str, Any] | None = None,
) -> MediaUsage:
    return MediaUsage(
        model=model,
        cost=cost,
        prompt_tokens=prompt,
        completion_tokens=completion,
        reported=reported or {},
    )


def _sum(*amounts: tuple[float, Any]) -> float | None:
    """Return what the amounts cost together; None if no price is known."""
    costs = [count * price for count, rate in amounts if (price := _number(rate)) is not None]
    return sum(costs) if costs else None


def _tokens(
    usage: Mapping[str, Any], excess: dict[str, Any], max_prompt: int, max_completion: int
) -> tuple[int, int]:
    prompt = _count(usage.get("input_tokens"))
    completion = _count(usage.get("output_tokens"))
    return (
        usage_limits.clamp_count(excess, max_prompt, "input_tokens", prompt),
        usage_limits.clamp_count(excess, max_completion, "output_tokens", completion),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _number(value: Any) -> float | None:
    """Return a price or amount; free is not known to be free."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(min(value, MAX_AMOUNT)) if is_number and value > 0 else None
