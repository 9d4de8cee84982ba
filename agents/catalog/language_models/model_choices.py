"""Models that a user can choose for a chat, and what each of them accepts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User

from agents.llm import model_info, parameters, tuning
from agents.metering.budgets.pricing import MILLION
from agents.models import LanguageModel, ModelConnection

from . import model_setups


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model by the name that agents use for it; prices are USD per million tokens."""

    name: str
    provider: str = ""
    input_price: float | None = None
    output_price: float | None = None
    window: int | None = None
    sees_images: bool = False
    hears_audio: bool = False
    calls_tools: bool | None = None  # None: unknown
    follows_schemas: bool | None = None
    takes_effort: bool = False
    max_temperature: float = 0.0  # 0: it accepts none

    @property
    def is_tunable(self) -> bool:
        return self.takes_effort or bool(self.max_temperature)


def list_models(
    user: User | None, among: Sequence[LanguageModel] | None = None
) -> list[ModelChoice]:
    """Return the default model and the configured ones that this user can use."""
    among = model_setups.model_rows() if among is None else among
    default = model_setups.default_model(among).model
    rows = [_from_row(row) for row in model_setups.usable_rows(user, among)]
    first = [] if default == model_setups.DEMO else [describe(default, among)]
    return [*first, *(choice for choice in rows if choice.name != default)]


def find_model(name: str, user: User | None) -> ModelChoice | None:
    """Return the model if this user can choose it."""
    return next((choice for choice in list_models(user) if choice.name == name), None)


def describe(name: str, among: Sequence[LanguageModel] | None = None) -> ModelChoice:
    """Return what is known about a model, no matter who can choose it."""
    row = model_setups.model_row(name, among)
    if row is not None:
        return _from_row(row)
    return ModelChoice(name=name) if name == model_setups.DEMO else _from_name(name, name)


def _from_row(row: LanguageModel) -> ModelChoice:
    choice = _from_name(row.label, row.model, row.parameters)
    row_values: dict[str, Any] = {"window": row.context_window or choice.window}
    if row.connection.provider != ModelConnection.Provider.OTHER:
        row_values["provider"] = row.connection.get_provider_display()
    if row.input_price is not None and row.output_price is not None:
        row_values |= {"input_price": row.input_price, "output_price": row.output_price}
    if row.image_input != LanguageModel.ImageInput.AUTO:
        row_values["sees_images"] = row.image_input == LanguageModel.ImageInput.YES
    abilities = row.abilities
    return replace(
        choice,
        **row_values,
        calls_tools=abilities.get("tools", choice.calls_tools),
        follows_schemas=abilities.get("schema", choice.follows_schemas),
        hears_audio=abilities.get("audio", choice.hears_audio),
        takes_effort=abilities.get("reasoning", choice.takes_effort),
    )


def _from_name(
    name: str, model: str, row_parameters: Mapping[str, Any] | None = None
) -> ModelChoice:
    price = model_info.price(parameters.full_name(model))
    row_parameters = row_parameters or {}
    return ModelChoice(
        name=name,
        provider=parameters.provider_label(parameters.provider_prefix(model)),
        input_price=price.input * MILLION if price else None,
        output_price=price.output * MILLION if price else None,
        window=model_info.known_window(model),
        sees_images=model_info.sees_images(model),
        hears_audio=model_info.hears_audio(model),
        calls_tools=model_info.calls_tools(model),
        follows_schemas=model_info.follows_schemas(model),
        takes_effort=tuning.takes_effort(model, row_parameters),
        max_temperature=tuning.max_temperature(model, row_parameters),
    )
