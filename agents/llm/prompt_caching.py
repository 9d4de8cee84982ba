"""Lets providers reuse the unchanged beginning of a prompt, and says what that saves.

Which models need marks, and from how many tokens on, is data: `prompt_caching.toml`.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from . import model_info
from .model_info import Price
from .parameters import full_name

CHARS_PER_TOKEN = 4
MARK = {"type": "ephemeral"}
KEY_CHARS = 24

Messages = list[dict[str, Any]]
Tools = list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CachingRule:
    """How a provider caches prompts of some models."""

    pattern: str
    marks: bool = False
    key: bool = False  # takes a key that sends equal prefixes to the same cache
    minimum: int = 0
    seconds: int = 0


@cache
def rules() -> tuple[CachingRule, ...]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tuple(CachingRule(**row) for row in tomllib.loads(text)["model"])


@cache
def rule_for(model: str) -> CachingRule | None:
    """Return how this model's provider caches prompts, if it is known to."""
    name = full_name(model)
    return next((rule for rule in rules() if re.search(rule.pattern, name)), None)


def mark(model: str, messages: Messages, tools: Tools) -> tuple[Messages, Tools]:
    """Mark the ends of the parts that the next request repeats: tools, system, last message."""
    rule = rule_for(model)
    if rule is None or not rule.marks or not messages or not _is_long(rule, messages, tools):
        return messages, tools
    marked = list(messages)
    system_index = next(
        (index for index, m in enumerate(marked) if m["role"] == "system"), None
    )
    for index in {len(marked) - 1, *([] if system_index is None else [system_index])}:
        message = marked[index]
        content = message.get("content")
        if isinstance(content, list) and content:
            content = [*content[:-1], {**content[-1], "cache_control": MARK}]
            marked[index] = {**message, "content": content}
        elif content:
            marked[index] = {**message, "cache_control": MARK}
    return marked, [*tools[:-1], {**tools[-1], "cache_control": MARK}] if tools else tools


def cache_key(model: str, messages: Messages, tools: Tools) -> dict[str, str]:
    """Return the parameter that groups requests with the same beginning, if there is one."""
    rule = rule_for(model)
    if rule is None or not rule.key or not _is_long(rule, messages, tools):
        return {}
    system_messages = [message for message in messages[:1] if message["role"] == "system"]
    text = json.dumps([system_messages, tools], ensure_ascii=False)
    key = sha256(text.encode(errors="replace")).hexdigest()[:KEY_CHARS]
    return {"prompt_cache_key": f"ashiato-{key}"}


def with_savings(usage: Mapping[str, Any], price: Price | None) -> Mapping[str, Any]:
    """Add what the provider's cache has saved in dollars; negative if it only cost."""
    if price is None:
        return usage
    cache_reads, cache_writes = cached_tokens(usage)
    if not cache_reads and not cache_writes:
        return usage
    savings = cache_reads * (price.input - price.read)
    savings -= cache_writes * (price.written - price.input)
    return {**usage, "cache_savings": savings}


def listed_savings(model: str, usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the savings by the price list."""
    size = usage.get("prompt_tokens")
    price = model_info.price(model, size) if isinstance(size, int) else None
    return with_savings(usage, price)


def cached_tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many tokens were read from the provider's cache and written into it."""
    details = usage.get("prompt_tokens_details")
    inner = details if isinstance(details, Mapping) else {}
    cache_reads = _first(
        inner.get("cached_tokens"),
        usage.get("cache_read_input_tokens"),
        usage.get("prompt_cache_hit_tokens"),
    )
    cache_writes = _first(
        inner.get("cache_write_tokens"),
        inner.get("cache_creation_tokens"),
        usage.get("cache_creation_input_tokens"),
    )
    return cache_reads, cache_writes


def _first(*counts: Any) -> int:
    return next((count for count in counts if isinstance(count, int) and count > 0), 0)


def _is_long(rule: CachingRule, messages: Sequence[Mapping[str, Any]], tools: Tools) -> bool:
    """Whether the prompt may reach the minimum, roughly: marks on a shorter one do no harm."""
    chars = 0
    for message in messages:
        content = message.get("content")
        chars += len(content) if isinstance(content, str) else len(str(content or ""))
        if chars >= rule.minimum * CHARS_PER_TOKEN // 2:
            return True
    return chars + len(str(tools or "")) >= rule.minimum * CHARS_PER_TOKEN // 2
