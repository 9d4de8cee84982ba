"""Model names: their provider, their full form and what makes them invalid."""

import re
from functools import lru_cache
from typing import Any

from agents.engine.sentences import Sentence as _
from agents.engine.text import shorten
from agents.llm.providers import ModelProvider, find_provider

from .. import model_info
from .value_rules import REFERENCE_PATTERN

MAX_NAME_CHARS = 200
MODEL_NAME = re.compile(r"[A-Za-z0-9_-]+/[\w.:@~+/()=,-]*[\w)]", re.ASCII)
FILE_PATH = re.compile(r"\s*(?:~?/|\.{1,2}/|[A-Za-z]:[\\/]|\\\\)")
ARN = re.compile(r"arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:\d{12}:[\w/.:-]+", re.ASCII)
INVALID_NAME = _("Enter it as provider/model, without spaces, URLs or references.")
UNKNOWN_PROVIDER = _("Unknown provider: %(name)s.")
MISSING_PROVIDER = _("%(name)s doesn't include a provider. Enter it as provider/model.")


@lru_cache(maxsize=256)
def name_problem(model: str) -> str:
    """Return why a model name is invalid, or an empty string."""
    if (provider := provider_of(model)) is None:
        prefix = short_name(model.partition("/")[0]) if "/" in model else ""
        sentence = UNKNOWN_PROVIDER if prefix else MISSING_PROVIDER
        return sentence.fill(name=prefix or short_name(model))
    name_with_prefix = full_name(model)
    name = name_with_prefix.partition("/")[2]
    segments = name.split("/")
    is_plain = MODEL_NAME.fullmatch(name_with_prefix) is not None
    is_plain = is_plain and len(name_with_prefix) <= MAX_NAME_CHARS
    # A server that gets the name in the body may use a file path as the name.
    is_path = name.startswith("/") and provider.speaks_openai
    has_gap = "" in (segments[1:] if is_path else segments)
    is_elsewhere = REFERENCE_PATTERN.match(name) or (FILE_PATH.match(name) and not is_path)
    if not is_plain or has_gap or is_elsewhere or {".", ".."} & {*segments}:
        return INVALID_NAME
    if "arn:" in name and not ARN.fullmatch(name[name.index("arn:") :]):
        return INVALID_NAME
    return ""


def provider_prefix(model: str) -> str:
    return full_name(model).partition("/")[0]


def provider_label(prefix: str) -> str:
    provider = find_provider(f"{prefix}/")
    return provider.label if provider else prefix


def full_name(model: str) -> str:
    """Return the name with its provider prefix, if LiteLLM's table knows it."""
    if "/" in model:
        return model
    listed = model_info.provider(model)
    return f"{listed}/{model}" if listed else model


def provider_of(model: str) -> ModelProvider | None:
    return find_provider(full_name(model))


def short_name(name: Any) -> str:
    return shorten(str(name), 60)
