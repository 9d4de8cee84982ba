"""Which models an agent asks, by their rows, and what is wrong with their setup."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.db.configuration_rows import configuration_query
from agents.engine.errors import ModelError
from agents.engine.sentences import Sentence as _
from agents.llm import model_info, parameters
from agents.llm.discovery import discovery
from agents.llm.discovery.model_list import ANY_MODEL
from agents.llm.parameters import DESTINATION_OPTIONS
from agents.llm.providers import find_provider, first_env
from agents.models import Agent, LanguageModel, ModelConnection
from agents.models.secret import UnreadableSecret

from .discovered_model import discovered_model

DEMO = "demo"
CHOSEN = _("set in the console")  # the source of a default model


class ModelNotConfigured(ModelError):
    message = _("The model can't be used with its current settings.")

    advice = _("Choose another agent, or contact your administrator.")


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
    fallbacks = f"{agent.fallback_models} {first.fallbacks if first else ''}"
    rows_by_name = {name: _find_row(name, rows) for name in [model, *fallbacks.split()]}
    known_rows = [row for row in rows_by_name.values() if row]
    forbidden_pks = _forbidden_pks(asker(), known_rows) if known_rows else set()
    return [
        ModelSetup(name=name, row=row, why=_setup_error(name, row, forbidden_pks))
        for name, row in rows_by_name.items()
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
    forbidden_pks = _forbidden_pks(user, rows)
    return [row for row in rows if _setup_error(row.label, row, forbidden_pks) is None]


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


@configuration_query
def _model_rows() -> QuerySet[LanguageModel]:
    rows = LanguageModel.objects.select_related("connection").defer("connection__listing")
    return rows.order_by("-enabled", "pk")


def model_name(agent: Agent, among: Sequence[LanguageModel] | None = None) -> str:
    return agent.model or default_model(among).model


def default_model(among: Sequence[LanguageModel] | None = None) -> discovery.ModelChoice:
    """Return the model of agents without one: an administrator's choice, or what was found."""
    rows = _model_rows() if among is None else among
    chosen = next((row for row in rows if row.is_default and row.enabled), None)
    if chosen is None:
        return discovered_model()
    return discovery.ModelChoice(model=chosen.label, source=CHOSEN, label=chosen.label)


def _find_row(name: str, rows: Sequence[LanguageModel]) -> LanguageModel | None:
    """Return the row with this label or LiteLLM name; the default model needs none."""
    by_label = next((row for row in rows if row.label == name), None)
    if by_label is not None:
        return by_label
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
    name: str, row: LanguageModel | None, forbidden_pks: set[int]
) -> ModelNotConfigured | None:
    if row is None:
        # Only a provider's name is checked; a bare one is when it is called.
        sentence = name_problem(name) if "/" in name else ""
        if not sentence or name == discovered_model().model:
            return None
        return ModelNotConfigured(sentence)
    if row.pk in forbidden_pks:
        return ModelNotConfigured(
            _("You don't have access to the model %(model)s.", model=row.label)
        )
    if not row.enabled:
        return ModelNotConfigured(_("The model %(model)s is disabled.", model=row.label))
    # What is missing to call it, as far as can be seen from here.
    connection = row.connection
    try:
        has_key = bool(connection.api_key.reveal() or connection.secrets.reveal())
        problem = next(parameters.find_problems(model_settings(row)), None)
    except UnreadableSecret:
        return ModelNotConfigured(
            _("The API key of the model %(model)s can't be decrypted.", model=row.label)
        )
    if problem:
        return ModelNotConfigured(
            _(
                "The model %(model)s can't be used: %(why)s",
                model=row.label,
                why=problem.sentence,
            )
        )
    provider = find_provider(parameters.full_name(row.model))
    if provider is None:
        return None
    # A key of the environment is only sent to an address from there.
    has_key |= not connection.base_url and bool(first_env(provider.keys, os.environ)[1])
    is_elsewhere = bool(provider.addresses) and not provider.base_url
    if is_elsewhere and not (
        connection.base_url or first_env(provider.addresses, os.environ)[1]
    ):
        return ModelNotConfigured(_("The model %(model)s has no URL.", model=row.label))
    if provider.needs_key and not has_key and (is_elsewhere or not connection.base_url):
        return ModelNotConfigured(_("The model %(model)s has no API key.", model=row.label))
    return None


def name_problem(name: str) -> str:
    """Return why a name isn't a model, or an empty string."""
    if "/" not in name and not model_info.is_listed(name):
        return _("The model %(model)s doesn't exist.", model=name)
    if sentence := parameters.name_problem(name):
        return _("The model %(model)s can't be used: %(why)s", model=name, why=sentence)
    return ""


def model_settings(row: LanguageModel, *, secrets: bool = True) -> parameters.ModelSettings:
    """Return the row's settings; raise UnreadableSecret if no key fits."""
    settings = connection_settings(row.connection, row.model, secrets=secrets)
    # Where a request goes is up to the connection, whose key it has.
    own = {n: v for n, v in _filled_values(row.options).items() if n not in DESTINATION_OPTIONS}
    return replace(
        settings,
        options={**settings.options, **own},
        parameters=_filled_values(row.parameters),
    )


def connection_settings(
    connection: ModelConnection, model: str = "", *, secrets: bool = True
) -> parameters.ModelSettings:
    """Return the settings of a connection, for any of its models."""
    return parameters.ModelSettings(
        model=model or f"{connection.prefix}/{ANY_MODEL}",
        base_url=connection.base_url,
        api_key=(connection.api_key.reveal() or None) if secrets else None,
        api_version=connection.api_version,
        region=connection.region,
        options=_filled_values(connection.options),
        secrets=_filled_values(connection.secrets.reveal()) if secrets else {},
    )


def _filled_values(values: Any) -> dict[str, Any]:
    """Return the values that are set; anything but an object is passed on to be rejected."""
    if not isinstance(values, Mapping):
        return {"": values} if values else {}
    return {name: value for name, value in values.items() if value not in ("", None)}
