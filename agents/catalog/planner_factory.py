"""Builds planners from rows: an agent's models, their routes and timeouts."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.budgets import Payer, payer_of
from agents.budgets.metered_model import MeteredModel
from agents.budgets.pricing import row_price
from agents.db.compiled_queries import compiled_query
from agents.engine.errors import ModelError
from agents.engine.planner import LLM, Deadlines, Dialect, ReActPlanner, Sense
from agents.engine.privacy import Pseudonymizer
from agents.engine.resilience import Limits, RateLimiter
from agents.installation import configured
from agents.llm import discovery, model_info, parameters, tokens, tuning
from agents.llm.configured_model import ConfiguredModel, UnavailableModel
from agents.llm.demo import DemoModel
from agents.llm.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.providers import find_provider, first_env
from agents.llm.routing import choose_route
from agents.model_limits import SharedRateLimiter
from agents.models import Agent, LanguageModel, Run
from agents.models.secret import UnreadableSecret

DEMO = "demo"
CHOSEN = "set in the console"  # the source of a default model
STREAM_BATCH_SECONDS = 0.06

DEFAULT_INSTRUCTIONS = """\
You are {agent}, an assistant that thinks, uses tools and answers. Use a tool whenever it can
find or calculate what you need; never guess a number that a tool can provide. When you answer
from documents, cite passages by their numbers in brackets. Answer briefly, in Markdown, and in
the language of the question."""


class ModelNotConfigured(ModelError):
    """The model can't be used with its current settings."""

    advice = "Contact your administrator, or choose another agent."


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetup:
    """A model by the agent's name for it; `why` is what is wrong with it."""

    name: str
    row: LanguageModel | None = None
    why: ModelNotConfigured | None = None


def model_names(agent: Agent, among: Sequence[LanguageModel] | None = None) -> list[str]:
    """Return the agent's model and its fallbacks."""
    chain = model_chain(agent, model_name(agent, among), among=among)
    return [setup.name for setup in chain]


def model_chain(
    agent: Agent,
    model: str,
    asker: Callable[[], User | None] = lambda: None,
    among: Sequence[LanguageModel] | None = None,
) -> list[ModelSetup]:
    """Return this model, the agent's fallbacks, then the model's.

    `asker` returns the user, and is called only if needed; `among` are all models, for those
    who look up several.
    """
    rows = _model_rows() if among is None else among
    first = _find_row(model, rows)
    others = f"{agent.fallback_models} {first.fallbacks if first else ''}"
    found = {name: _find_row(name, rows) for name in [model, *others.split()]}
    named = [row for row in found.values() if row]
    closed = _forbidden_pks(asker(), named) if named else set()
    return [
        ModelSetup(name=name, row=row, why=_setup_error(name, row, closed))
        for name, row in found.items()
    ]


def ensure_usable(agent: Agent, model: str, user: User | None) -> None:
    """Raise ModelNotConfigured if neither the model nor a fallback can be used."""
    setups = model_chain(agent, model, lambda: user)
    if setups[0].why and all(setup.why for setup in setups):
        raise setups[0].why


def configuration_error(
    name: str, among: Sequence[LanguageModel] | None = None
) -> ModelNotConfigured | None:
    """Return what is wrong with a model's setup, regardless of the user."""
    row = _find_row(name, _model_rows() if among is None else among)
    if row is None and "/" not in name and name != DEMO and not model_info.is_listed(name):
        return ModelNotConfigured(name_problem(name))
    return _setup_error(name, row, set())


def usable_rows(
    user: User | None, among: Sequence[LanguageModel] | None = None
) -> list[LanguageModel]:
    """Return the models that are set up and that this user can use."""
    rows = [row for row in (_model_rows() if among is None else among) if row.enabled]
    closed = _forbidden_pks(user, rows)
    return [row for row in rows if _setup_error(row.label, row, closed) is None]


def model_rows() -> list[LanguageModel]:
    """Return all models, for those who look up several of them."""
    return _model_rows()


def model_row(name: str, among: Sequence[LanguageModel] | None = None) -> LanguageModel | None:
    """Return the row of a model; the default model needs none."""
    return _find_row(name, _model_rows() if among is None else among)


def model_labels() -> list[str]:
    """Return the labels of all enabled models."""
    return [row.label for row in _model_rows() if row.enabled]


def find_setup(name: str) -> ModelSetup:
    """Return a model by its label or LiteLLM name, regardless of the user."""
    row = _find_row(name, _model_rows())
    return ModelSetup(name=name, row=row, why=_setup_error(name, row, set()))


@compiled_query
def _model_rows() -> QuerySet[LanguageModel]:
    return LanguageModel.objects.order_by("-enabled", "pk")


def _find_row(name: str, rows: Sequence[LanguageModel]) -> LanguageModel | None:
    """Return the row with this label or LiteLLM name; the default model needs none."""
    by_label = (row for row in rows if row.label == name)
    if found := next(by_label, None):
        return found
    by_model = next((row for row in rows if row.model == name), None)
    return None if by_model is None or name == discovered_model().model else by_model


def _forbidden_pks(user: User | None, rows: Sequence[LanguageModel]) -> set[int]:
    """Return the rows this user can't use."""
    if user is None:
        return set()
    keys = {row.pk for row in rows}
    usable = LanguageModel.objects.usable_by(user).filter(pk__in=keys)
    return keys - set(usable.values_list("pk", flat=True))


def _setup_error(
    name: str, row: LanguageModel | None, closed: set[int]
) -> ModelNotConfigured | None:
    if row is None:
        return _name_error(name)
    if row.pk in closed:
        return ModelNotConfigured(f"You don't have access to the model {row.label}.")
    if not row.enabled:
        return ModelNotConfigured(f"The model {row.label} is disabled.")
    return _connection_error(row)


def name_problem(name: str) -> str:
    """Return why a name isn't a model, or an empty string."""
    if "/" not in name and not model_info.is_listed(name):
        return f"The model {name} doesn't exist."
    sentence = parameters.name_problem(name)
    return f"The model {name} can't be used: {sentence}" if sentence else ""


def _name_error(name: str) -> ModelNotConfigured | None:
    """Return what is wrong with a provider's name; a bare one is only checked when called."""
    if "/" not in name or not (sentence := name_problem(name)):
        return None
    return None if name == discovered_model().model else ModelNotConfigured(sentence)


def _connection_error(row: LanguageModel) -> ModelNotConfigured | None:
    """Return what is missing to call it, as far as can be seen from here."""
    try:
        has_key = bool(row.api_key.reveal() or row.secrets.reveal())
        problem = next(parameters.find_problems(model_settings(row)), None)
    except UnreadableSecret:
        return ModelNotConfigured(f"The API key of the model {row.label} can't be decrypted.")
    if problem:
        return ModelNotConfigured(f"The model {row.label} can't be used: {problem.sentence}")
    provider = find_provider(parameters.full_name(row.model))
    if provider is None:
        return None
    # A key of the environment is only sent to an address from there.
    has_key |= not row.base_url and bool(first_env(provider.keys, os.environ)[1])
    is_elsewhere = bool(provider.addresses) and not provider.base_url
    if is_elsewhere and not (row.base_url or first_env(provider.addresses, os.environ)[1]):
        return ModelNotConfigured(f"The model {row.label} has no URL.")
    if provider.needs_key and not has_key and (is_elsewhere or not row.base_url):
        return ModelNotConfigured(f"The model {row.label} has no API key.")
    return None


def agent_instructions(agent: Agent) -> str:
    return agent.instructions or DEFAULT_INSTRUCTIONS.format(agent=agent.name)


def build_planners(
    agent: Agent, model: str, run: Run | None = None, pseudonymizer: Pseudonymizer | None = None
) -> list[ReActPlanner]:
    """Build a planner for this model, and one for each fallback; the run's user pays."""
    asker = (lambda: run.user) if run else (lambda: None)
    payer = payer_of(run, agent)
    return [
        _build_planner(agent, setup, pseudonymizer, payer)
        for setup in model_chain(agent, model, asker)
    ]


def _build_planner(
    agent: Agent, setup: ModelSetup, pseudonymizer: Pseudonymizer | None, payer: Payer
) -> ReActPlanner:
    llm, row = build_llm(setup, payer), setup.row
    return ReActPlanner(
        llm,
        setup.name,
        dialect=cast(Dialect, agent.dialect),
        instructions=agent_instructions(agent),
        parameters=_model_parameters(agent, setup),
        batch_seconds=0 if getattr(llm, "batch_seconds", 0) else STREAM_BATCH_SECONDS,
        deadlines=_deadlines(),
        window=_window(setup),
        count_tokens=tokens.count,
        rate_limiter=_rate_limiter(row) if row else None,
        pseudonymizer=pseudonymizer,
        senses=_senses(setup),
    )


def build_judge(
    name: str,
    max_tokens: int,
    pseudonymizer: Pseudonymizer | None = None,
    *,
    payer: Payer,
) -> ReActPlanner:
    """Build a planner that asks a model once, outside of any agent."""
    setup = find_setup(name)
    row, own = setup.row, setup.row.parameters if setup.row else {}
    parameters = {} if name == DEMO or setup.why else {**own, "max_tokens": max_tokens}
    return ReActPlanner(
        build_llm(setup, payer),
        name,
        parameters=tuning.tune(row.model if row else name, parameters, "", 0.0)
        if parameters
        else {},
        deadlines=_deadlines(),
        count_tokens=tokens.count,
        rate_limiter=_rate_limiter(row) if row else None,
        pseudonymizer=pseudonymizer,
    )


def context_window(agent: Agent, model: str = "") -> int:
    """Return the context window of the agent's model, or of another one, in tokens."""
    name = model or model_name(agent)
    return _window(ModelSetup(name=name, row=model_row(name), why=None))


def _window(setup: ModelSetup) -> int:
    row = setup.row
    return (row and row.context_window) or model_info.context_window(
        row.model if row else setup.name
    )


def sees_images(agent: Agent, model: str = "") -> bool:
    """Whether the agent's model, or another one, can be sent images."""
    name = model or model_name(agent)
    return "image" in _senses(ModelSetup(name=name, row=model_row(name), why=None))


def _senses(setup: ModelSetup) -> set[Sense]:
    """Return what the model can be sent besides text: by its row, or by LiteLLM's table."""
    row, name = setup.row, setup.row.model if setup.row else setup.name
    sees = model_info.sees_images(name)
    if row and row.image_input != LanguageModel.ImageInput.AUTO:
        sees = row.image_input == LanguageModel.ImageInput.YES
    hears = (row.abilities if row else {}).get("audio", model_info.hears_audio(name))
    senses: dict[Sense, bool] = {"image": sees, "audio": hears}
    return {sense for sense, has_it in senses.items() if has_it}


def _model_parameters(agent: Agent, setup: ModelSetup) -> dict[str, Any]:
    if setup.name == DEMO or setup.why:
        return {}
    own = setup.row.parameters if setup.row else {}
    most = min(agent.max_output_tokens, own.get("max_tokens", agent.max_output_tokens))
    name = setup.row.model if setup.row else setup.name
    reasons = setup.row.abilities.get("reasoning") if setup.row else None
    wanted = {**own, "max_tokens": most}
    return tuning.tune(name, wanted, agent.effort, agent.temperature, reasons)


def _rate_limiter(row: LanguageModel) -> RateLimiter | None:
    """Return the limiter shared by all runs of all processes, with the row's limits."""
    limits = Limits(
        concurrency=row.concurrency,
        requests=row.requests_per_minute,
        tokens=row.tokens_per_minute,
    )
    return SharedRateLimiter(row.label, limits) if limits else None


def _deadlines() -> Deadlines:
    return Deadlines(
        slow=configured.MODEL_SLOW.value,
        first=configured.MODEL_FIRST.value,
        between=configured.MODEL_BETWEEN.value,
        whole=configured.MODEL_WHOLE.value,
    )


def model_name(agent: Agent, among: Sequence[LanguageModel] | None = None) -> str:
    return agent.model or default_model(among).model


def build_llm(setup: ModelSetup, payer: Payer | None = None) -> LLM:
    """Return the model's client: by its row, or the default. Its requests pass the gate.

    Without a payer, they are counted for that of the task.
    """
    if setup.why:
        return UnavailableModel(setup.why)
    if setup.row:
        return llm_from_row(setup.row, payer)
    return MeteredModel(llm_by_name(setup.name), setup.name, setup.name, payer=payer)


def llm_from_row(row: LanguageModel, payer: Payer | None = None) -> LLM:
    """Return the client of a row, which needn't be saved.

    Invalid settings are rejected here, before they reach a library.
    """
    settings, provider = model_settings(row), find_provider(row.model)
    try:
        parameters.check(settings)
    except parameters.SettingNotAllowed as error:
        return UnavailableModel(error)
    own = provider.base_url if provider and settings.api_key else None  # its own key
    llm = _llm_by_route(
        row.model,
        settings.api_key,
        row.base_url or own,
        settings.litellm_options,
        settings.secrets,
        caches_prompts=row.prompt_caching,
    )
    price = row_price(row)
    configured_model = ConfiguredModel(llm, row.model, price)
    return MeteredModel(configured_model, row.label, row.model, price=price, payer=payer)


def model_settings(row: LanguageModel, *, secrets: bool = True) -> parameters.ModelSettings:
    """Return the row's settings; raise UnreadableSecret if no key fits."""
    return parameters.ModelSettings(
        model=row.model,
        base_url=row.base_url,
        api_key=(row.api_key.reveal() or None) if secrets else None,
        api_version=row.api_version,
        region=row.region,
        options=_filled_values(row.options),
        secrets=_filled_values(row.secrets.reveal()) if secrets else {},
        parameters=_filled_values(row.parameters),
    )


def _filled_values(values: Any) -> dict[str, Any]:
    """Return the values that are set; anything but an object is passed on to be rejected."""
    if not isinstance(values, Mapping):
        return {"": values} if values else {}
    return {name: value for name, value in values.items() if value not in ("", None)}


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
    about: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    *,
    caches_prompts: bool = True,
) -> LLM:
    forced = settings.ENVIRONMENT.model_road
    way = choose_route(model, os.environ, base_url=url, api_key=key, forced=forced)
    if way == "direct":
        pace = STREAM_BATCH_SECONDS
        return DirectModel(key, url, about, batch_seconds=pace, caches_prompts=caches_prompts)
    return LiteLLMModel(key, url, about, secrets=secrets, caches_prompts=caches_prompts)


def model_price(name: str) -> model_info.Price | None:
    """Return what a model costs per token, if that is known."""
    row = model_row(name)
    return (row_price(row) if row else None) or model_info.price(row.model if row else name)


_choosing = threading.Lock()


def default_model(among: Sequence[LanguageModel] | None = None) -> discovery.ModelChoice:
    """Return the model of agents without one: an administrator's choice, or what was found."""
    rows = _model_rows() if among is None else among
    chosen = next((row for row in rows if row.is_default and row.enabled), None)
    if chosen is None:
        return discovered_model()
    return discovery.ModelChoice(model=chosen.label, source=CHOSEN, label=chosen.label)


def discovered_model() -> discovery.ModelChoice:
    """Return this installation's model, discovered once."""
    with _choosing:
        return _discover_default()


@lru_cache(maxsize=1)
def _discover_default() -> discovery.ModelChoice:
    """Discover in a thread, because the caller may be in an event loop."""
    environment = settings.ENVIRONMENT
    key = environment.model_key
    choosing = discovery.choose(
        environment.model or None,
        environment.model_url or None,
        key.get_secret_value() if key else None,
        os.environ,
        probe=environment.model_discovery,
        own_port=environment.port,
    )
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, choosing).result()
