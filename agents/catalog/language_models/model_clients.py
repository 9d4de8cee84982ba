"""Builds the clients of models; each request passes the gate of the budgets."""

import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.db.installation.contact import contact_link
from agents.engine.planner import LLM
from agents.llm import model_info, parameters
from agents.llm.configured_model import ConfiguredModel, UnavailableModel
from agents.llm.demo import DemoModel
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.providers import find_provider
from agents.llm.routing import choose_route
from agents.metering.budgets import Payer
from agents.metering.budgets.metered.metered_model import MeteredModel
from agents.metering.budgets.pricing import row_price
from agents.models import LanguageModel

from .discovered_model import discovered_model
from .model_setups import DEMO, ModelSetup, model_row, model_settings

STREAM_BATCH_SECONDS = 0.06


def build_llm(setup: ModelSetup, payer: Payer | None = None) -> LLM:
    """Return the model's client: by its row, or the default. Its requests pass the gate.

    Without a payer, they are counted for that of the task.
    """
    if setup.why:
        return UnavailableModel(setup.why)
    if setup.row:
        return llm_from_row(setup.row, payer)
    llm = llm_by_name(setup.name)
    if isinstance(llm, DemoModel) and payer is not None:
        llm.administrator = _administrator_of(payer.user)
    return MeteredModel(llm, setup.name, setup.name, payer=payer)


def _administrator_of(user: int | None) -> str | None:
    """Return where a user asks for a real model; None if they can connect one themselves."""
    person = None if user is None else User.objects.filter(pk=user).first()
    if person is None or (person.is_staff and person.has_perm("agents.add_modelconnection")):
        return None
    link = contact_link(_("Please connect a model"))
    return link.url if link else ""


def llm_from_row(row: LanguageModel, payer: Payer | None = None) -> LLM:
    """Return the client of a row, which needn't be saved.

    Invalid settings are rejected here, before they reach a library.
    """
    row_settings = model_settings(row)
    provider = find_provider(row.model)
    try:
        parameters.check(row_settings)
    except parameters.SettingNotAllowed as error:
        return UnavailableModel(error)
    provider_url = (
        provider.base_url if provider and row_settings.api_key else None
    )  # its own key
    llm = _llm_by_route(
        row.model,
        row_settings.api_key,
        row_settings.base_url or provider_url,
        row_settings.litellm_options,
        row_settings.secrets,
        caches_prompts=row.prompt_caching,
    )
    price = row_price(row)
    configured_model = ConfiguredModel(llm, row.model, price)
    return MeteredModel(configured_model, row.label, row.model, price=price, payer=payer)


def llm_by_name(model: str) -> LLM:
    if model == DEMO:
        return DemoModel(settings.ENVIRONMENT.demo_delay)
    choice = discovered_model()
    key, url = (choice.api_key, choice.base_url) if model == choice.model else (None, None)
    return _llm_by_route(model, key, url)


def _llm_by_route(
    model: str,
    key: str | None,
    url: str | None,
    options: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    *,
    caches_prompts: bool = True,
) -> LLM:
    forced = settings.ENVIRONMENT.model_route
    route = choose_route(model, os.environ, base_url=url, api_key=key, forced=forced)
    if route == "direct":
        batch_seconds = STREAM_BATCH_SECONDS
        return DirectModel(
            key, url, options, batch_seconds=batch_seconds, caches_prompts=caches_prompts
        )
    return LiteLLMModel(key, url, options, secrets=secrets, caches_prompts=caches_prompts)


def model_price(name: str) -> model_info.Price | None:
    """Return what a model costs per token, if that is known."""
    row = model_row(name)
    return (row_price(row) if row else None) or model_info.price(row.model if row else name)
