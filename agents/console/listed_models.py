"""The models that a server offers, for the form of a model."""

import hashlib
import time
from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from django.http import JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import audit
from agents.catalog import planner_factory
from agents.engine.errors import AgentError
from agents.llm.model_list import ListedModel, ModelList, ModelsNotListed, list_models
from agents.llm.parameters import ModelSettings, provider_prefix
from agents.models import LanguageModel
from agents.models.types import AnyUser
from agents.runs.engine_messages import translate

from .model_tester import audit_details, audit_subject

CACHE_SECONDS = 60.0
MAX_CACHED = 50
_cache: dict[bytes, tuple[float, ModelList]] = {}


def respond(user: AnyUser, row: LanguageModel) -> JsonResponse:
    """Ask the row's server for its models, unless it was asked a moment ago."""
    settings = planner_factory.model_settings(row)
    if (listed := _find_cached(settings)) is None:
        # Recorded first, because the key is sent to the typed URL.
        about = {**audit_details(row), "check": "models"}
        audit.record(user, audit.MODEL_TESTED, audit_subject(row), **about)
        try:
            listed = async_to_sync(list_models)(settings)
        except ModelsNotListed as error:
            return reply([], f"{translate(str(error))} {translate(error.advice)}", is_good=True)
        except AgentError as error:
            sentence = f"{translate(str(error))} {translate(error.advice)}"
            return reply([], sentence, is_good=False)
        _remember(settings, listed)
    return reply(listed.models, describe(listed), is_good=True)


def reply(models: Sequence[ListedModel], sentence: str, *, is_good: bool) -> JsonResponse:
    listed = [{"name": model.name, "note": model.note} for model in models]
    content: dict[str, Any] = {"models": listed, "sentence": sentence, "isGood": is_good}
    return JsonResponse(content, headers={"Cache-Control": "no-store"})


def describe(listed: ModelList) -> str:
    """Say how many models there are, and what is known about the key."""
    count = len(listed.models)
    if count:
        text = ngettext("%(count)d model.", "%(count)d models.", count) % {"count": count}
    else:
        text = _("The server lists no models. Enter the model's name.")
    return f"{text} {_('The key was accepted.')}" if listed.key == "accepted" else text


def _find_cached(settings: ModelSettings) -> ModelList | None:
    found = _cache.get(_cache_key(settings))
    return found[1] if found and found[0] > time.monotonic() else None


def _remember(settings: ModelSettings, listed: ModelList) -> None:
    if len(_cache) >= MAX_CACHED:
        _cache.clear()
    _cache[_cache_key(settings)] = time.monotonic() + CACHE_SECONDS, listed


def _cache_key(settings: ModelSettings) -> bytes:
    """Return a digest, so that no key stays in memory for the sake of a list."""
    parts = (provider_prefix(settings.model), settings.base_url or "", settings.api_key or "")
    return hashlib.sha256("\0".join(parts).encode()).digest()
