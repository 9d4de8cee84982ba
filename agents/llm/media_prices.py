"""What sound and images cost, from LiteLLM's table. An unknown price is None."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from . import model_info, usage_limits
from .media_models import MediaUsage

INPUT, OUTPUT = model_info.INPUT_COST, model_info.OUTPUT_COST
MAX_AMOUNT = 10**15
# Some providers bill at least a minute. A recording of unknown length is a day long at most.
BILLED_SECONDS, MAX_SECONDS = 60, 86_400
TOKENS_PER_SECOND = 100  # of sound or its transcript, at most


def image_usage(model: str, usage: Mapping[str, Any], prompt_text: str = "") -> MediaUsage:
    """Return the usage of one generated image."""
    known = model_info.provider_entry(model)
    excess: dict[str, Any] = {}
    most_sent = usage_limits.max_prompt_tokens([{"content": prompt_text}], None)
    prompt, completion = _tokens(usage, excess, most_sent, usage_limits.TOKENS_PER_PART)
    cost = _number(known.get("output_cost_per_image"))
    if cost is None and completion:
        each = known.get("output_cost_per_image_token") or known.get(OUTPUT)
        cost = _sum((prompt, known.get(INPUT)), (completion, each))
    return _usage(model, cost, prompt, completion, excess)


def transcription_usage(model: str, reply: Mapping[str, Any], seconds: float) -> MediaUsage:
    """Return the usage of a transcript; `seconds` is how long the recording is, if known."""
    known = model_info.provider_entry(model)
    about = reply.get("usage")
    about = about if isinstance(about, Mapping) else {}
    excess: dict[str, Any] = {}
    most_seconds = max(2 * seconds, seconds + BILLED_SECONDS) if seconds else MAX_SECONDS
    most_tokens = ceil(most_seconds) * TOKENS_PER_SECOND
    prompt, completion = _tokens(about, excess, most_tokens, most_tokens)
    each = known.get("input_cost_per_second") or known.get("output_cost_per_second")
    length = _number(about.get("seconds")) or _number(reply.get("duration")) or seconds
    if length > most_seconds:
        excess["seconds"] = length
        length = most_seconds
    cost = _sum((prompt, known.get(INPUT)), (completion, known.get(OUTPUT)))
    if not completion or cost is None:
        cost = _sum((length, each)) if length else None
    return _usage(model, cost, prompt, completion, excess)


def speech_usage(model: str, characters: int, seconds: float = 0.0) -> MediaUsage:
    """Return the usage of a text read aloud, which takes `seconds` to hear."""
    known = model_info.provider_entry(model)
    cost = _sum((characters, known.get("input_cost_per_character")))
    if cost is None and seconds:
        cost = _sum((seconds, known.get("output_cost_per_second")))
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
    known = [(count, price) for count, each in amounts if (price := _number(each)) is not None]
    return sum(count * price for count, price in known) if known else None


def _tokens(
    usage: Mapping[str, Any], excess: dict[str, Any], most_sent: int, most_received: int
) -> tuple[int, int]:
    limits = {"input_tokens": most_sent, "output_tokens": most_received}
    sent, received = (
        usage_limits.clamp_count(excess, limit, name, _count(usage.get(name)))
        for name, limit in limits.items()
    )
    return sent, received


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _number(value: Any) -> float | None:
    """Return a price or amount; free is not known to be free."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(min(value, MAX_AMOUNT)) if is_number and value > 0 else None
