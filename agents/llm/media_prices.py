"""What sound and images cost, from LiteLLM's table. An unknown price is None."""

from collections.abc import Mapping
from typing import Any

from . import model_info
from .media_models import MediaUsage

INPUT, OUTPUT = model_info.INPUT_COST, model_info.OUTPUT_COST


def image_usage(model: str, usage: Mapping[str, Any]) -> MediaUsage:
    """Return the usage of one generated image."""
    known = model_info.provider_entry(model)
    prompt, completion = _tokens(usage)
    cost = _number(known.get("output_cost_per_image"))
    if cost is None and completion:
        each = known.get("output_cost_per_image_token") or known.get(OUTPUT)
        cost = _sum((prompt, known.get(INPUT)), (completion, each))
    return _usage(model, cost, prompt, completion)


def transcription_usage(model: str, reply: Mapping[str, Any], seconds: float) -> MediaUsage:
    """Return the usage of a transcript; `seconds` is how long the recording is, if known."""
    known = model_info.provider_entry(model)
    about = reply.get("usage")
    about = about if isinstance(about, Mapping) else {}
    prompt, completion = _tokens(about)
    each = known.get("input_cost_per_second") or known.get("output_cost_per_second")
    length = _number(about.get("seconds")) or _number(reply.get("duration")) or seconds
    cost = _sum((prompt, known.get(INPUT)), (completion, known.get(OUTPUT)))
    if not completion or cost is None:
        cost = _sum((length, each)) if length else None
    return _usage(model, cost, prompt, completion)


def speech_usage(model: str, characters: int, seconds: float = 0.0) -> MediaUsage:
    """Return the usage of a text read aloud, which takes `seconds` to hear."""
    known = model_info.provider_entry(model)
    cost = _sum((characters, known.get("input_cost_per_character")))
    if cost is None and seconds:
        cost = _sum((seconds, known.get("output_cost_per_second")))
    return _usage(model, cost)


def chat_usage(model: str, usage: Mapping[str, Any]) -> MediaUsage:
    """Return the usage of a reply of a chat model."""
    prompt = _count(usage.get("prompt_tokens"))
    completion = _count(usage.get("completion_tokens"))
    price = model_info.price(model, prompt)
    cost = _number(usage.get("cost"))
    if cost is None and price is not None and completion:
        cost = price.of(usage)
    return _usage(model, cost, prompt, completion)


def _usage(model: str, cost: float | None, prompt: int = 0, completion: int = 0) -> MediaUsage:
    return MediaUsage(
        model=model, cost=cost, prompt_tokens=prompt, completion_tokens=completion
    )


def _sum(*amounts: tuple[float, Any]) -> float | None:
    """Return what the amounts cost together; None if no price is known."""
    known = [(count, price) for count, each in amounts if (price := _number(each)) is not None]
    return sum(count * price for count, price in known) if known else None


def _tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    return _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _number(value: Any) -> float | None:
    """Return a price or amount; free is not known to be free."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value > 0 else None
