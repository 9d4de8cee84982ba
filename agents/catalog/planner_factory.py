"""Rows → planners: which model an agent thinks with, by which road, with which deadlines."""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings

from agents.db.compiled_queries import prepared
from agents.engine.errors import ModelError
from agents.engine.planner.react_planner import LLM, ReActPlanner
from agents.engine.planner.stream_batches import Deadlines
from agents.engine.privacy.pseudonyms import Discretion
from agents.engine.resilience.rate_limiter import Gate, Limits
from agents.llm import discovery, model_info, parameters, tokens
from agents.llm.configured_model import ClosedModel, ConfiguredModel
from agents.llm.demo_model import DemoModel
from agents.llm.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from agents.llm.providers import first_set, provider_of
from agents.llm.routing import road
from agents.models import Agent, LanguageModel, Run
from agents.models.secret import Unreadable

DEMO = "demo"
PACE = 0.06
MILLION = 1_000_000

INSTRUCTIONS = """\
You are {agent}, an assistant that thinks, uses tools and answers. Use a tool wherever it can
find out or work out what you need; never guess a figure that a tool can give. When you answer
from documents, cite the passages by their numbers in brackets. Answer in the language of the
question, in Markdown, and briefly."""


class NotReady(ModelError):
    """The model cannot be used as it is set up."""

    advice = "Tell your administrator, or choose another agent."


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A model by the name that an agent has for it; `why` is what is wrong with it."""

    name: str
    row: LanguageModel | None = None
    why: NotReady | None = None


def models_of(agent: Agent) -> list[str]:
    """Its model, and those that it falls back to."""
    return [setup.name for setup in chain(agent, model_name(agent))]


def chain(agent: Agent, model: str, asker: Callable[[], Any] = lambda: None) -> list[Setup]:
    """This model, those that the agent falls back to, then those that the model does.

    `asker` gives the person who asks, and is called only where that matters.
    """
    rows = _rows()
    first = _row(model, rows)
    others = f"{agent.fallback_models} {first.fallbacks if first else ''}"
    found = {name: _row(name, rows) for name in [model, *others.split()]}
    named = [row for row in found.values() if row]
    closed = _closed_to(asker(), named) if named else set()
    return [
        Setup(name=name, row=row, why=_trouble(name, row, closed))
        for name, row in found.items()
    ]


def check(agent: Agent, model: str, user: Any) -> None:
    """Raises NotReady where neither this model nor one that it falls back to can be asked."""
    setups = chain(agent, model, lambda: user)
    if setups[0].why and all(setup.why for setup in setups):
        raise setups[0].why


def trouble(name: str) -> NotReady | None:
    """What is wrong with how a model is set up, for whoever may use it."""
    row = _row(name, _rows())
    if row is None and "/" not in name and name != DEMO and not model_info.is_listed(name):
        return NotReady(wrong_name(name))
    return _trouble(name, row, set())


def label(name: str) -> str:
    """What people see of a model: the label of its row, where it has one."""
    row = _row(name, _rows())
    return row.label if row else name


def labels() -> list[str]:
    """Of all that an administrator set up and switched on."""
    return [row.label for row in _rows() if row.enabled]


@prepared
def _rows():
    return LanguageModel.objects.order_by("-enabled", "pk")


def _row(name: str, rows: Sequence[LanguageModel]) -> LanguageModel | None:
    """The row of this label, or of this LiteLLM name; the installation's own needs none."""
    by_label = (row for row in rows if row.label == name)
    if found := next(by_label, None):
        return found
    by_model = next((row for row in rows if row.model == name), None)
    return None if by_model is None or name == default_model().model else by_model


def _closed_to(user: Any, rows: Sequence[LanguageModel]) -> set[int]:
    """Those of the rows that this person may not use."""
    if user is None:
        return set()
    keys = {row.pk for row in rows}
    usable = LanguageModel.objects.usable_by(user).filter(pk__in=keys)
    return keys - set(usable.values_list("pk", flat=True))


def _trouble(name: str, row: LanguageModel | None, closed: set[int]) -> NotReady | None:
    if row is None:
        return _unnamed(name)
    if row.pk in closed:
        return NotReady(f"You may not use the model {row.label}.")
    if not row.enabled:
        return NotReady(f"The model {row.label} is switched off.")
    return _unconnected(row)


def wrong_name(name: str) -> str:
    """Why no model can be meant by a name that is nobody's label; empty where one can."""
    if "/" not in name and not model_info.is_listed(name):
        return f"There is no model called {name}."
    sentence = parameters.wrong_name(name)
    return f"The model {name} can't be used: {sentence}" if sentence else ""


def _unnamed(name: str) -> NotReady | None:
    """What is wrong with a name of a provider's; a bare one is found out when it is asked."""
    if "/" not in name or not (sentence := wrong_name(name)):
        return None
    return None if name == default_model().model else NotReady(sentence)


def _unconnected(row: LanguageModel) -> NotReady | None:
    """What it lacks to be reached, as far as that can be seen from here."""
    try:
        has_key = bool(row.api_key.reveal() or row.secrets.reveal())
        problem = next(parameters.problems(settings_of(row)), None)
    except Unreadable:
        return NotReady(f"The key of the model {row.label} cannot be read any more.")
    if problem:
        return NotReady(f"The model {row.label} can't be used: {problem.sentence}")
    provider = provider_of(parameters.full_name(row.model))
    if provider is None:
        return None
    # A key of the environment goes only to an address that is from there as well.
    has_key |= not row.base_url and bool(first_set(provider.keys, os.environ)[1])
    is_elsewhere = bool(provider.addresses) and not provider.base_url
    if is_elsewhere and not (row.base_url or first_set(provider.addresses, os.environ)[1]):
        return NotReady(f"The model {row.label} has no address.")
    if provider.needs_key and not has_key and (is_elsewhere or not row.base_url):
        return NotReady(f"The model {row.label} has no key.")
    return None


def instructions(agent: Agent) -> str:
    return agent.instructions or INSTRUCTIONS.format(agent=agent.name)


def of(
    agent: Agent, model: str, run: Run | None = None, discretion: Discretion | None = None
) -> list[ReActPlanner]:
    """One for this model, and one for each that is asked where it cannot be used."""
    asker = (lambda: run.user) if run else (lambda: None)
    return [_planner(agent, setup, discretion) for setup in chain(agent, model, asker)]


def _planner(agent: Agent, setup: Setup, discretion: Discretion | None) -> ReActPlanner:
    asked, row = connected(setup), setup.row
    return ReActPlanner(
        asked,
        setup.name,
        dialect=agent.dialect,
        instructions=instructions(agent),
        parameters=_parameters(agent, setup),
        pace=0 if getattr(asked, "pace", 0) else PACE,
        deadlines=_deadlines(),
        window=(row and row.context_window)
        or model_info.window(row.model if row else setup.name),
        count_tokens=tokens.count,
        gate=row and _gate(row),
        discretion=discretion,
    )


def _parameters(agent: Agent, setup: Setup) -> dict[str, Any]:
    if setup.name == DEMO or setup.why:
        return {}
    own = setup.row.parameters if setup.row else {}
    most = min(agent.max_output_tokens, own.get("max_tokens", agent.max_output_tokens))
    return {**own, "max_tokens": most}


_gates: dict[str, Gate] = {}


def _gate(row: LanguageModel) -> Gate | None:
    """One for all runs of this process; its limits are those of the row as it is now."""
    limits = Limits(
        concurrency=row.concurrency,
        requests=row.requests_per_minute,
        tokens=row.tokens_per_minute,
    )
    if not limits:
        return None
    gate = _gates.setdefault(row.label, Gate(limits))
    gate.limits = limits
    return gate


def _deadlines() -> Deadlines:
    environment = settings.ENVIRONMENT
    return Deadlines(
        slow=environment.model_slow_seconds,
        first=environment.model_first_seconds,
        between=environment.model_between_seconds,
        whole=environment.model_whole_seconds,
    )


def model_name(agent: Agent) -> str:
    return agent.model or default_model().model


def connected(setup: Setup) -> LLM:
    """The model as it is asked: by its row, or as this installation knows it."""
    if setup.why:
        return ClosedModel(setup.why)
    return by_row(setup.row) if setup.row else llm(setup.name)


def by_row(row: LanguageModel) -> LLM:
    """As an administrator set it up; the row need not be kept.

    What isn't allowed is refused here, so that nothing of it gets as far as a library.
    """
    told, provider = settings_of(row), provider_of(row.model)
    try:
        parameters.check(told)
    except parameters.NotAllowed as error:
        return ClosedModel(error)
    own = provider.base_url if provider and told.api_key else None  # it is for its provider
    asked = _by_road(row.model, told.api_key, row.base_url or own, told.merged, told.secrets)
    return ConfiguredModel(asked, row.model, _price(row))


def settings_of(row: LanguageModel, *, secrets: bool = True) -> parameters.Settings:
    """How the row says that its model is reached; raises Unreadable where no key fits."""
    return parameters.Settings(
        model=row.model,
        base_url=row.base_url,
        api_key=(row.api_key.reveal() or None) if secrets else None,
        api_version=row.api_version,
        region=row.region,
        options=_set(row.options),
        secrets=_set(row.secrets.reveal()) if secrets else {},
        parameters=_set(row.parameters),
    )


def _set(values: Any) -> dict[str, Any]:
    """What is filled in; a row that holds no object at all is refused by what it holds."""
    if not isinstance(values, Mapping):
        return {"": values} if values else {}
    return {name: value for name, value in values.items() if value not in ("", None)}


def llm(model: str) -> LLM:
    if model == DEMO:
        return DemoModel(settings.ENVIRONMENT.demo_delay)
    choice = default_model()
    key, url = (choice.api_key, choice.base_url) if model == choice.model else (None, None)
    return _by_road(model, key, url)


def _by_road(
    model: str,
    key: str | None,
    url: str | None,
    about: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> LLM:
    forced = settings.ENVIRONMENT.model_road
    way = road(model, os.environ, base_url=url, api_key=key, forced=forced)
    if way == "direct":
        return DirectModel(key, url, about, pace=PACE)
    return LiteLLMModel(key, url, about, secrets=secrets)


def _price(row: LanguageModel) -> model_info.Price | None:
    if row.input_price is None or row.output_price is None:
        return None
    read, written = row.input_price / MILLION, row.output_price / MILLION
    return model_info.Price(input=read, output=written, read=read, written=read)


_choosing = threading.Lock()


def default_model() -> discovery.Choice:
    """The model of this installation, found once."""
    with _choosing:
        return _default_model()


@lru_cache(maxsize=1)
def _default_model() -> discovery.Choice:
    """Found in a thread of its own, because the caller may be an event loop or not."""
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
