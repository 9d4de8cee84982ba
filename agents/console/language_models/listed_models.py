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
from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.llm import model_info
from agents.llm.discovery.model_list import ListedModel, ModelList, ModelsNotListed, list_models
from agents.llm.parameters import ModelSettings, provider_prefix
from agents.models import LanguageModel
from agents.models.types import AnyUser
from agents.web.presentation.formats.formatting import token_size

from . import model_facts
from .model_tester import audit_details, audit_subject

CACHE_SECONDS = 60.0
MAX_CACHED = 50
_cache: dict[bytes, tuple[float, ModelList]] = {}


def respond(user: AnyUser, row: LanguageModel, *, is_table: bool = False) -> JsonResponse:
    """Ask the row's server for its models, unless it was asked a moment ago.

    Where it can't be asked, the price list has the provider's models.
    """
    settings = model_setups.model_settings(row)
    if is_table:
        return models_response(settings.model, *_from_table(settings), is_good=True)
    # A digest, so that no key stays in memory for the sake of a list.
    connection = (provider_prefix(settings.model), settings.base_url, settings.api_key)
    cache_key = hashlib.sha256("\0".join(text or "" for text in connection).encode()).digest()
    expires_at, model_list = _cache.get(cache_key, (0.0, None))
    if model_list is None or expires_at <= time.monotonic():
        # Recorded first, because the key is sent to the typed URL.
        details = {**audit_details(row), "check": "models"}
        audit.record(user, audit.MODEL_TESTED, audit_subject(row), **details)
        try:
            model_list = async_to_sync(list_models)(settings)
        except ModelsNotListed as error:
            models, sentence = _from_table(settings)
            if not models:
                sentence = f"{translate(str(error))} {translate(error.advice)}"
            return models_response(settings.model, models, sentence, is_good=True)
        except AgentError as error:
            sentence = f"{translate(str(error))} {translate(error.advice)}"
            return models_response(settings.model, [], sentence, is_good=False)
        if len(_cache) >= MAX_CACHED:
            _cache.clear()
        _cache[cache_key] = time.monotonic() + CACHE_SECONDS, model_list
    return models_response(
        settings.model, model_list.models, describe(model_list), is_good=True
    )


def _from_table(settings: ModelSettings) -> tuple[list[ListedModel], str]:
    """Return the provider's models of the price list; a server of one's own isn't in it."""
    prefix = provider_prefix(settings.model)
    names = [] if settings.base_url else model_info.chat_models(prefix)
    if not names:
        return [], _("Enter the model's name.")
    count = {"count": len(names)}
    text = ngettext(
        "%(count)d model in the price list.", "%(count)d models in the price list.", len(names)
    )
    return [ListedModel(name=name) for name in names], text % count


def models_response(
    model: str, models: Sequence[ListedModel], sentence: str, *, is_good: bool
) -> JsonResponse:
    """Return the models with their windows and prices, as far as they are known."""
    prefix = provider_prefix(model)
    options = []
    for listed in models:
        facts = model_facts.look_up(f"{prefix}/{listed.name}")
        notes = [listed.note, token_size(facts.window) if facts.window else ""]
        if facts.input_price is not None and facts.output_price is not None:
            notes.append(f"${facts.input_price:g} / ${facts.output_price:g}")
        options.append({"name": listed.name, "note": " · ".join(filter(None, notes))})
    content: dict[str, Any] = {"models": options, "sentence": sentence, "isGood": is_good}
    return JsonResponse(content, headers={"Cache-Control": "no-store"})


def describe(model_list: ModelList) -> str:
    """Say how many models there are, and what is known about the key."""
    count = len(model_list.models)
    if count:
        text = ngettext("%(count)d model.", "%(count)d models.", count) % {"count": count}
    else:
        text = _("The server lists no models. Enter the model's name.")
    return f"{text} {_('The key was accepted.')}" if model_list.key == "accepted" else text
