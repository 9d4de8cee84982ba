"""Context windows and prices, from LiteLLM's table, without importing it."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TABLE_FILE = "model_prices_and_context_window_backup.json"
DEFAULT_WINDOW = 32_000
INPUT_COST = "input_cost_per_token"
OUTPUT_COST = "output_cost_per_token"
CACHE_READ_COST = "cache_read_input_token_cost"
CACHE_WRITE_COST = "cache_creation_input_token_cost"
REASONING_COST = "output_cost_per_reasoning_token"
AUDIO_COST = "input_cost_per_audio_token"
DEEPSEEK_CACHE_HITS = "prompt_cache_hit_tokens"
RATES = (
    INPUT_COST,
    OUTPUT_COST,
    REASONING_COST,
    CACHE_READ_COST,
    CACHE_WRITE_COST,
    AUDIO_COST,
)
# Rates of long prompts; those of other service tiers have one more suffix.
LONG_PROMPT_COST = re.compile(rf"^{INPUT_COST}_above_(\d+)(k?)_tokens$")
INCLUSIVE_LIMIT_PROVIDERS = {"xai"}  # others charge more only above it
# The table has other names for some providers than the prefixes of their models.
TABLE_PREFIXES = {"bedrock_converse": "bedrock", "amazon_nova": "amazon-nova"}
CHAT_MODES = frozenset({"chat", "responses"})
PRICE_OF_SIZE = re.compile(r"\d-x-\d|max-x-max")  # of images, not a model's name
VERTEX = "vertex_ai"  # one name for each publisher: vertex_ai-anthropic_models


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per token, for one prompt size and time."""

    input: float
    output: float
    read: float  # from the provider's cache
    written: float  # into it
    reasoning: float | None = None  # if it differs from the output's
    audio: float | None = None  # if it differs from the input's

    def of(self, usage: Mapping[str, Any]) -> float:
        """Return the cost of this usage.

        Cached tokens are included in the prompt's, and reasoning in those of the completion.
        """
        details = usage.get("prompt_tokens_details")
        details = details if isinstance(details, Mapping) else {}
        cache_reads = _count(details.get("cached_tokens"))
        cache_reads = cache_reads or _count(usage.get(DEEPSEEK_CACHE_HITS))
        cache_writes = _count(details.get("cache_write_tokens"))
        cache_writes = cache_writes or _count(details.get("cache_creation_tokens"))
        prompt = _count(usage.get("prompt_tokens"))
        cache_reads = min(cache_reads, prompt)
        cache_writes = min(cache_writes, prompt - cache_reads)
        fresh = prompt - cache_reads - cache_writes
        audio = 0 if self.audio is None else min(_count(details.get("audio_tokens")), fresh)
        cost = (fresh - audio) * self.input + audio * (self.audio or 0.0)
        cost += cache_reads * self.read + cache_writes * self.written
        completion = _count(usage.get("completion_tokens"))
        if self.reasoning is None:
            return cost + completion * self.output
        details = usage.get("completion_tokens_details")
        details = details if isinstance(details, Mapping) else {}
        reasoning = min(completion, _count(details.get("reasoning_tokens")))
        return cost + ((completion - reasoning) * self.output + reasoning * self.reasoning)

    def most(self, usage: Mapping[str, Any]) -> float:
        """Return the cost of these tokens if each had the highest of its prices."""
        prompt = _count(usage.get("prompt_tokens"))
        completion = _count(usage.get("completion_tokens"))
        input_rate = max(self.input, self.read, self.written, self.audio or 0.0)
        return prompt * input_rate + completion * max(self.output, self.reasoning or 0.0)


def context_window(model: str) -> int:
    """Return the tokens that fit into a request; a conservative default for unlisted models."""
    entry = _model_entry(model)
    size = entry.get("max_input_tokens") or entry.get("max_tokens")
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
    entry = _model_entry(model)
    return bool(entry.get("supports_response_schema")) if entry else None


def provider_models(prefix: str, modes: Collection[str] = CHAT_MODES) -> list[str]:
    """Return the names of a provider's models in the table, without its prefix."""
    providers = {prefix, f"{prefix}_converse"}  # Bedrock has two APIs
    names = {
        name.removeprefix(f"{prefix}/"): None
        for name, entry in _load_table().items()
        if entry.get("litellm_provider") in providers
        and entry.get("mode") in modes
        and not entry.get("deprecation_date")
        and not PRICE_OF_SIZE.search(name)
    }
    return list(names)


def mode(model: str) -> str:
    """Return what kind of model it is: chat, embedding, …; empty for unlisted models."""
    return str(_model_entry(model).get("mode") or "")


def reasons(model: str) -> bool:
    """Whether the model reasons before it answers; False for unlisted models."""
    return bool(_model_entry(model).get("supports_reasoning"))


def thinks_adaptively(model: str) -> bool:
    """Whether a Claude model decides how much to think; unlisted ones are new and do."""
    if entry := _model_entry(model):
        return bool(entry.get("supports_adaptive_thinking"))
    return model.rpartition("/")[2].startswith("claude-")


def takes_budget(model: str) -> bool:
    """Whether a Claude model that thinks adaptively also accepts a budget of tokens."""
    return bool(_model_entry(model).get("supports_legacy_thinking"))


def takes_minimal_effort(model: str) -> bool:
    """Whether a Gemini model accepts minimal effort; True for unlisted models."""
    return _model_entry(model).get("supports_minimal_reasoning_effort") is not False


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
    entry = provider_entry(model)
    if not entry.get(INPUT_COST) and not entry.get(OUTPUT_COST):
        return None
    rates = {name: entry[name] for name in RATES if entry.get(name) is not None}
    rates |= _long_prompt_rates(entry, prompt_tokens)
    rates |= _off_peak_rates(entry, moment or datetime.now(UTC))
    if any(isinstance(rate, int | float) and rate < 0 for rate in rates.values()):
        return None  # a mistake in the list would pay the user
    base = rates.get(INPUT_COST) or 0.0
    return Price(
        input=base,
        output=rates.get(OUTPUT_COST) or 0.0,
        read=_rate(rates.get(CACHE_READ_COST), base),
        written=_rate(rates.get(CACHE_WRITE_COST), base),
        reasoning=rates.get(REASONING_COST) or None,
        audio=rates.get(AUDIO_COST) or None,
    )


def _rate(rate: float | None, base: float) -> float:
    return base if rate is None else rate


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
    entry = _find_entry(model, name)
    return entry if not name or _prefix(entry) == prefix else {}


def _prefix(entry: Mapping[str, Any]) -> str:
    listed = str(entry.get("litellm_provider") or "")
    return VERTEX if listed.startswith(f"{VERTEX}-") else TABLE_PREFIXES.get(listed, listed)


def _find_entry(*names: str) -> Mapping[str, Any]:
    table = _load_table()
    return next((table[name] for name in names if name in table), {})


def _long_prompt_rates(entry: Mapping[str, Any], prompt_tokens: int) -> dict[str, float]:
    """Return the rates above the highest limit that the prompt has reached."""
    inclusive = entry.get("litellm_provider") in INCLUSIVE_LIMIT_PROVIDERS
    limits = sorted(
        (int(match[1]) * (1000 if match[2] else 1), f"{match[1]}{match[2]}")
        for match in map(LONG_PROMPT_COST.match, entry)
        if match
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
    return {name: entry[long] for name, long in names.items() if long in entry}


def _off_peak_rates(entry: Mapping[str, Any], moment: datetime) -> dict[str, float]:
    """Return off-peak rates, which some providers have, while they apply."""
    off_peak = entry.get("off_peak_pricing") or {}
    time = f"{moment:%H:%M}"
    for rule in off_peak.get("windows", ()):
        if moment.isoweekday() not in rule["weekdays"]:
            continue
        hours = rule["hours_utc"]
        for span in [hours] if isinstance(hours, str) else hours:
            begin, end = span.split("-")
            # A span with equal ends is the whole day.
            if begin <= time < end if begin < end else time >= begin or time < end:
                names = (INPUT_COST, OUTPUT_COST, CACHE_READ_COST)
                return {name: off_peak[name] for name in names if name in off_peak}
    return {}


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
