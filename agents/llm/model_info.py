"""How much a model can read and what it costs, from LiteLLM's table, without importing it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TABLE = "model_prices_and_context_window_backup.json"
UNKNOWN = 32_000
INPUT, OUTPUT = "input_cost_per_token", "output_cost_per_token"
READ, WRITTEN = "cache_read_input_token_cost", "cache_creation_input_token_cost"
# Rates of long prompts; those of other tiers of service end in one more word.
LONG = re.compile(rf"^{INPUT}_above_(\d+)(k?)_tokens$")
FROM_THE_LIMIT_ON = {"xai"}  # others charge more only past it


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars a token, of a prompt of one size at one time."""

    input: float
    output: float
    read: float  # from the provider's cache
    written: float  # into it

    def of(self, usage: Mapping[str, Any]) -> float:
        """What this usage costs; cached tokens are among those of the prompt."""
        details = usage.get("prompt_tokens_details")
        details = details if isinstance(details, Mapping) else {}
        read = _count(details.get("cached_tokens")) or _count(usage.get(DEEPSEEK_READ))
        written = _count(details.get("cache_write_tokens"))
        fresh = max(0, _count(usage.get("prompt_tokens")) - read - written)
        said = _count(usage.get("completion_tokens"))
        return (
            fresh * self.input + read * self.read + written * self.written + said * self.output
        )


DEEPSEEK_READ = "prompt_cache_hit_tokens"


def window(model: str) -> int:
    """Tokens that fit into a request; a careful guess for a model that nobody has listed."""
    known = _listed(model, model.partition("/")[2], model.rpartition("/")[2])
    size = known.get("max_input_tokens") or known.get("max_tokens")
    return size if isinstance(size, int) else UNKNOWN


def price(model: str, prompt_tokens: int = 0, moment: datetime | None = None) -> Price | None:
    """The price of this very provider's model, where it has one."""
    known = _of_provider(model)
    if not known.get(INPUT) and not known.get(OUTPUT):
        return None
    rates = {name: known[name] for name in (INPUT, OUTPUT, READ, WRITTEN) if name in known}
    rates |= _long(known, prompt_tokens)
    rates |= _off_peak(known, moment or datetime.now(UTC))
    base = rates.get(INPUT, 0.0)
    return Price(
        input=base,
        output=rates.get(OUTPUT, 0.0),
        read=rates.get(READ, base),
        written=rates.get(WRITTEN, base),
    )


def is_listed(model: str) -> bool:
    return model in _table()


def provider(model: str) -> str:
    """Whose a model is that is listed by its name alone; empty where nobody's is known."""
    return str(_table().get(model, {}).get("litellm_provider") or "")


def is_on_another_wire(model: str) -> bool:
    """Whether its provider has this model under `/responses` only."""
    return _of_provider(model).get("mode") == "responses"


def _of_provider(model: str) -> Mapping[str, Any]:
    prefix, _, name = model.partition("/")
    known = _listed(model, name)
    return known if known.get("litellm_provider") == prefix else {}


def _listed(*names: str) -> Mapping[str, Any]:
    table = _table()
    return next((table[name] for name in names if name in table), {})


def _long(known: Mapping[str, Any], prompt_tokens: int) -> dict[str, float]:
    """The rates above the highest limit that the prompt has reached."""
    inclusive = known.get("litellm_provider") in FROM_THE_LIMIT_ON
    limits = sorted(
        (int(found[1]) * (1000 if found[2] else 1), f"{found[1]}{found[2]}")
        for found in map(LONG.match, known)
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
        name: f"{name}_above_{reached[-1]}_tokens" for name in (INPUT, OUTPUT, READ, WRITTEN)
    }
    return {name: known[long] for name, long in names.items() if long in known}


def _off_peak(known: Mapping[str, Any], moment: datetime) -> dict[str, float]:
    """The rates of quiet hours, which some providers have, while they last."""
    quiet = known.get("off_peak_pricing") or {}
    is_quiet = any(
        moment.isoweekday() in rule["weekdays"] and _is_within(rule["hours_utc"], moment)
        for rule in quiet.get("windows", ())
    )
    return {name: quiet[name] for name in (INPUT, OUTPUT, READ) if is_quiet and name in quiet}


def _is_within(hours: str | list[str], moment: datetime) -> bool:
    """Whether it is in one of these spans of a day; one that ends where it begins is all."""
    now = f"{moment:%H:%M}"
    spans = [span.split("-") for span in ([hours] if isinstance(hours, str) else hours)]
    return any(
        begin <= now < end if begin < end else now >= begin or now < end for begin, end in spans
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


@cache
def _table() -> dict[str, dict[str, Any]]:
    litellm = find_spec("litellm")
    if litellm is None or not litellm.submodule_search_locations:
        return {}
    path = Path(litellm.submodule_search_locations[0]) / TABLE
    table: dict[str, dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else {}
    return table
