"""What a call may cost: prices are known, free or unknown, and unknown is not free."""

import json
from collections.abc import Collection, Mapping, Sequence
from math import ceil
from typing import Any

from django.db.models import Q

from agents.db.installation.setting import MICROS
from agents.llm import model_info, tokens, usage_limits
from agents.llm.model_info import Price
from agents.llm.providers import find_provider
from agents.models import LanguageModel

from .measures import MILLISECONDS, Estimate

DEMO = "demo"
MILLION = 1_000_000
MAX_DOLLARS = 1_000_000  # for one call, so that counters can't overflow
# Programs that people run themselves; nothing is billed per token.
OWN_SERVERS = frozenset({"ollama", "ollama_chat", "lm_studio", "llamafile", "hosted_vllm"})
FREE = Price(input=0.0, output=0.0, read=0.0, written=0.0)
# A call that asks for no maximum must not reserve all that a model could say.
DEFAULT_OUTPUT_TOKENS = 4_096
IMAGE_TOKENS = 1_600
MODEL_SECONDS = 30


def find_price(model: str, own: Price | None = None, prompt_tokens: int = 0) -> Price | None:
    """Return a model's price: its own, that of the table, or nothing on servers of one's own.

    None is an unknown price.
    """
    if own is not None:
        return own
    if model == DEMO:
        return FREE
    if listed := model_info.price(model, prompt_tokens):
        return listed
    provider = find_provider(model)
    return FREE if provider is not None and provider.prefix in OWN_SERVERS else None


def free_models(names: Collection[str]) -> set[str]:
    """Return those of these models, by our name or the provider's, that cost nothing."""
    if not {*names} - {DEMO}:
        return {*names}
    rows = LanguageModel.objects.filter(Q(label__in=names) | Q(model__in=names))
    prices = {name: find_price(name) for name in names}
    for row in rows:
        price = find_price(row.model, row_price(row))
        prices |= {row.label: price, row.model: price}
    return {
        name
        for name in names
        if (price := prices[name])
        and not (price.input or price.output or price.read or price.written)
    }


def configured_price(model: str) -> Price | None:
    """Return the price of a model that is set up by the environment, from a row under Models.

    A query, so only for calls that a limit applies to.
    """
    rows = LanguageModel.objects.filter(model=model).exclude(input_price=None)
    return next((row_price(row) for row in rows), None)


def row_price(row: LanguageModel) -> Price | None:
    """Return the price that an administrator entered: per million tokens."""
    if row.input_price is None or row.output_price is None:
        return None
    input_price = row.input_price
    read_price = input_price if row.cache_read_price is None else row.cache_read_price
    write_price = input_price if row.cache_write_price is None else row.cache_write_price
    return Price(
        input=input_price / MILLION,
        output=row.output_price / MILLION,
        read=read_price / MILLION,
        written=write_price / MILLION,
    )


def estimate_chat(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    parameters: Mapping[str, Any],
    own: Price | None = None,
) -> Estimate:
    """Return what a request uses at least, and at most: what its provider can report."""
    prompt_tokens = sum(map(_message_tokens, messages))
    prompt_tokens += tokens.count(json.dumps(tools, ensure_ascii=False)) if tools else 0
    max_prompt_tokens = max(prompt_tokens, usage_limits.max_prompt_tokens(messages, tools))
    return estimate_tokens(
        model, prompt_tokens, output_limit(model, parameters), own, max_prompt_tokens
    )


def estimate_tokens(
    model: str,
    prompt_tokens: int,
    output_tokens: int = 0,
    own: Price | None = None,
    max_prompt_tokens: int | None = None,
) -> Estimate:
    """Return what these tokens use and cost."""
    price = find_price(model, own, prompt_tokens)
    if max_prompt_tokens is None:
        max_prompt_tokens = prompt_tokens
    max_usage = {"prompt_tokens": max_prompt_tokens, "completion_tokens": output_tokens}
    return Estimate(
        tokens=max_prompt_tokens + output_tokens,
        cost=None if price is None else to_micros(price.most(max_usage)),
        seconds=MODEL_SECONDS * MILLISECONDS,
        least_tokens=prompt_tokens,
        least_cost=0 if price is None else to_micros(price.input * prompt_tokens),
    )


def output_limit(model: str, parameters: Mapping[str, Any]) -> int:
    """Return how many tokens an answer is expected to have at most."""
    if requested := usage_limits.requested_tokens(parameters):
        return requested
    return min(DEFAULT_OUTPUT_TOKENS, model_info.max_output(model) or DEFAULT_OUTPUT_TOKENS)


def to_micros(dollars: float) -> int:
    """Return dollars in millionths, rounded up so that many small calls aren't free."""
    if not 0 < dollars <= MAX_DOLLARS:  # NaN is neither
        return MAX_DOLLARS * MICROS if dollars > 0 else 0
    return ceil(round(dollars * MICROS, 3))  # 0.012345 is 12345.000000000002


def _message_tokens(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    calls = message.get("tool_calls")
    count = tokens.count(json.dumps(calls, ensure_ascii=False)) if calls else 0
    if isinstance(content, str):
        return count + tokens.count(content)
    for element in content if isinstance(content, list) else ():
        text = element.get("text") if isinstance(element, Mapping) else None
        count += tokens.count(text) if isinstance(text, str) else IMAGE_TOKENS
    return count
