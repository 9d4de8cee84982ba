"""Context windows and prices, from LiteLLM's table, without importing it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TABLE_FILE = "model_prices_and_context_window_backup.json"
DEFAULT_WINDOW = 32_000
INPUT_COST, OUTPUT_COST = "input_cost_per_token", "output_cost_per_token"
CACHE_READ_COST, CACHE_WRITE_COST = (
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
REASONING_COST = "output_cost_per_reasoning_token"
# Rates of long prompts; those of other service tiers have one more suffix.
LONG_PROMPT_COST = re.compile(rf"^{INPUT_COST}_above_(\d+)(k?)_tokens$")
INCLUSIVE_LIMIT_PROVIDERS = {"xai"}  # others charge more only above it
# The table has other names for some providers than the prefixes of their models.
TABLE_PREFIXES = {"bedrock_converse": "bedrock", "amazon_nova": "amazon-nova"}
VERTEX = "vertex_ai"  # one name for each publisher: vertex_ai-anthropic_models


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per token, for one prompt size and time."""

    input: float
    output: float
    read: float  # from the provider's cache
    written: float  # into it
    reasoning: float | None = None  # if it differs from the output's

    def of(self, usage: Mapping[str, Any]) -> float:
        """Return the cost of this usage; cached tokens are included in the prompt's."""
        details = usage.get("prompt_tokens_details")
        details = details if isinstance(details, Mapping) else {}
        read = _count(details.get("cached_tokens")) or _count(usage.get(DEEPSEEK_CACHE_HITS))
        written = _count(details.get("cache_write_tokens")) or _count(
            details.get("cache_creation_tokens")
        )
        sent = _count(usage.get("prompt_tokens"))
        read = min(read, sent)
        written = min(written, sent - read)
        fresh = sent - read - written
        return (
            fresh * self.input
            + read * self.read
            + written * self.written
            + self._output_cost(usage)
        )

    def most(self, usage: Mapping[str, Any]) -> float:
        """Return the cost of these tokens if each had the highest of its prices."""
        sent = _count(usage.get("prompt_tokens"))
        received = _count(usage.get("completion_tokens"))
        input_rate = max(self.input, self.read, self.written)
        return sent * input_rate + received * max(self.output, self.reasoning or 0.0)

    def _output_cost(self, usage: Mapping[str, Any]) -> float:
        """Return the cost of the answer; reasoning is included in its tokens."""
        received = _count(usage.get("completion_tokens"))
        if self.reasoning is None:
            return received * self.output
        details = usage.get("completion_tokens_details")
        details = details if isinstance(details, Mapping) else {}
        thought = min(received, _count(details.get("reasoning_tokens")))
        return (received - thought) * self.output + thought * self.reasoning


DEEPSEEK_CACHE_HITS = "prompt_cache_hit_tokens"


def context_window(model: str) -> int:
    """Return the tokens that fit into a request; a conservative default for unlisted models."""
    known = _model_entry(model)
    size = known.get("max_input_tokens") or known.get("max_tokens")
    return size if isinstance(size, int) else DEFAULT_WINDOW


def max_output(model: str) -> int | None:
    """Return how many tokens an answer of the model can have, if it is listed."""
    size = _model_entry(model).get("max_output_tokens")
    return size if isinstance(size, int) and size > 0 else None


def sees_images(model: str) -> bool:
    """Whether the model accepts images; False for unlisted models."""
    return bool(_model_entry(model).get("supports_vision"))


def calls_tools(model: str) -> bool:
    """Whether the model can call tools; False for unlisted models."""
    return bool(_model_entry(model).get("supports_function_calling"))


def hears_audio(model: str) -> bool:
    """Whether the model accepts audio; False for unlisted models."""
    return bool(_model_entry(model).get("supports_audio_input"))


def follows_schemas(model: str) -> bool | None:
    """Whether the model follows a JSON Schema; None for unlisted models."""
    known = _model_entry(model)
    return bool(known.get("supports_response_schema")) if known else None


def chat_models(prefix: str) -> list[str]:
    """Return the names of a provider's chat models in the table, without its prefix."""
    providers = {prefix, f"{prefix}_converse"}  # Bedrock has two APIs
    names = {
        name.removeprefix(f"{prefix}/"): None
        for name, known in _load_table().items()
        if known.get("litellm_provider") in providers
        and known.get("mode") in {"chat", "responses"}
        and not known.get("deprecation_date")
    }
    return list(names)


def reasons(model: str) -> bool:
    """Whether the model reasons before it answers; False for unlisted models."""
    return bool(_model_entry(model).get("supports_reasoning"))


def samples(model: str) -> bool:
    """Whether the model accepts sampling parameters; True for unlisted models."""
    return _model_entry(model).get("supports_sampling_params") is not False


def known_window(model: str) -> int | None:
    """Return the tokens that fit into a request, if the model is listed."""
    return context_window(model) if _model_entry(model) else None


def _model_entry(model: str) -> Mapping[str, Any]:
    """Return what is known about a model, no matter who offers it."""
    return _find_entry(model, model.partition("/")[2], model.rpartition("/")[2])


def price(model: str, prompt_tokens: int = 0, moment: datetime | None = None) -> Price | None:
    """Return the price of this provider's model, if it has one."""
    known = provider_entry(model)
    if not known.get(INPUT_COST) and not known.get(OUTPUT_COST):
        return None
    rates = {
        name: known[name]
        for name in (
            *(INPUT_COST, OUTPUT_COST, REASONING_COST),
            *(CACHE_READ_COST, CACHE_WRITE_COST),
        )
        if known.get(name) is not None
    }
    rates |= _long_prompt_rates(known, prompt_tokens)
    rates |= _off_peak_rates(known, moment or datetime.now(UTC))
    if any(_is_negative(rate) for rate in rates.values()):
        return None  # a mistake in the list would pay the user
    base = rates.get(INPUT_COST) or 0.0
    return Price(
        input=base,
        output=rates.get(OUTPUT_COST) or 0.0,
        read=_rate(rates.get(CACHE_READ_COST), base),
        written=_rate(rates.get(CACHE_WRITE_COST), base),
        reasoning=rates.get(REASONING_COST) or None,
    )


def _rate(rate: float | None, base: float) -> float:
    return base if rate is None else rate


def _is_negative(rate: Any) -> bool:
    return isinstance(rate, int | float) and rate < 0


def is_listed(model: str) -> bool:
    return model in _load_table()


def provider(model: str) -> str:
    """Return the prefix of a model listed by name alone, or an empty string."""
    return _prefix(_load_table().get(model, {}))


def is_responses_only(model: str) -> bool:
    """Whether the provider only offers this model under `/responses`."""
    return provider_entry(model).get("mode") == "responses"


def provider_entry(model: str) -> Mapping[str, Any]:
    """Return what is known about this provider's model; a name alone belongs to one."""
    prefix, _, name = model.partition("/")
    known = _find_entry(model, name)
    return known if not name or _prefix(known) == prefix else {}


def _prefix(known: Mapping[str, Any]) -> str:
    listed = str(known.get("litellm_provider") or "")
    return VERTEX if listed.startswith(f"{VERTEX}-") else TABLE_PREFIXES.get(listed, listed)


def _find_entry(*names: str) -> Mapping[str, Any]:
    table = _load_table()
    return next((table[name] for name in names if name in table), {})


def _long_prompt_rates(known: Mapping[str, Any], prompt_tokens: int) -> dict[str, float]:
    """Return the rates above the highest limit that the prompt has reached."""
    inclusive = known.get("litellm_provider") in INCLUSIVE_LIMIT_PROVIDERS
    limits = sorted(
        (int(found[1]) * (1000 if found[2] else 1), f"{found[1]}{found[2]}")
        for found in map(LONG_PROMPT_COST.match, known)
        if found
    )
    reached = [
        text
        for limit, text in limits
        if prompt_tokens > limit or (inclusive and prompt_tokens == limit)
    ]
    if not reached:
        return {}
    names = {
        name: f"{name}_above_{reached[-1]}_tokens"
        for name in (INPUT_COST, OUTPUT_COST, CACHE_READ_COST, CACHE_WRITE_COST)
    }
    return {name: known[long] for name, long in names.items() if long in known}


def _off_peak_rates(known: Mapping[str, Any], moment: datetime) -> dict[str, float]:
    """Return off-peak rates, which some providers have, while they apply."""
    quiet = known.get("off_peak_pricing") or {}
    is_quiet = any(
        moment.isoweekday() in rule["weekdays"] and _is_within(rule["hours_utc"], moment)
        for rule in quiet.get("windows", ())
    )
    return {
        name: quiet[name]
        for name in (INPUT_COST, OUTPUT_COST, CACHE_READ_COST)
        if is_quiet and name in quiet
    }


def _is_within(hours: str | list[str], moment: datetime) -> bool:
    """Whether the time is in one of these spans; one with equal ends is the whole day."""
    now = f"{moment:%H:%M}"
    spans = [span.split("-") for span in ([hours] if isinstance(hours, str) else hours)]
    return any(
        begin <= now < end if begin < end else now >= begin or now < end for begin, end in spans
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


@cache
def _load_table() -> dict[str, dict[str, Any]]:
    litellm = find_spec("litellm")
    if litellm is None or not litellm.submodule_search_locations:
        return {}
    path = Path(litellm.submodule_search_locations[0]) / TABLE_FILE
    table: dict[str, dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else {}
    return table
