"""Effort and temperature: which models accept them, and as which parameters."""

from collections.abc import Mapping
from typing import Any

from . import model_info
from .parameters import full_name, provider_prefix
from .providers import find_provider

EFFORTS = ("low", "medium", "high")
# Tokens for reasoning besides the answer: LiteLLM's budgets, which some providers require to be
# less than the maximum output.
REASONING_TOKENS = {"low": 1024, "medium": 2048, "high": 4096}
MAX_TEMPERATURE = 2.0
# Claude refuses more, through any provider.
MAX_TEMPERATURE_CLAUDE = 1.0
REASONING_PARAMETERS = frozenset({"reasoning_effort", "thinking"})
# Not accepted while a model reasons.
SAMPLING_PARAMETERS = frozenset({"temperature", "top_p", "top_k", "min_p"})


def takes_effort(
    model: str, parameters: Mapping[str, Any], reasons: bool | None = None
) -> bool:
    """Whether the model reasons; `parameters` are the configured ones.

    `reasons` is what an administrator says, who knows models that aren't listed.
    """
    if REASONING_PARAMETERS & parameters.keys():
        return True
    return model_info.reasons(model) if reasons is None else reasons


def max_temperature(model: str, parameters: Mapping[str, Any]) -> float:
    """Return the highest temperature; 0 if the model accepts none."""
    provider = find_provider(full_name(model))
    name = full_name(model).partition("/")[2]
    refused = provider.quirks_for(name).dropped if provider else frozenset[str]()
    is_reasoning = bool(REASONING_PARAMETERS & parameters.keys())
    if is_reasoning or "temperature" in refused or not model_info.samples(model):
        return 0.0
    is_claude = provider_prefix(model) == "anthropic" or "claude" in name
    return MAX_TEMPERATURE_CLAUDE if is_claude else MAX_TEMPERATURE


def tune(
    model: str,
    parameters: Mapping[str, Any],
    effort: str,
    temperature: float | None,
    reasons: bool | None = None,
) -> dict[str, Any]:
    """Return the parameters with these choices, as far as the model accepts them."""
    if effort and takes_effort(model, parameters, reasons):
        replaced = REASONING_PARAMETERS | SAMPLING_PARAMETERS
        tuned = {name: value for name, value in parameters.items() if name not in replaced}
        if "max_tokens" in tuned:
            tuned["max_tokens"] += REASONING_TOKENS[effort]
        return {**tuned, "reasoning_effort": effort}
    limit = max_temperature(model, parameters)
    if temperature is not None and limit:
        return {**parameters, "temperature": min(temperature, limit)}
    return dict(parameters)
