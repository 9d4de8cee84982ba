"""What is known about a model before it is called: window, price, abilities and a label."""

import re
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.llm import model_info, parameters
from agents.metering.budgets.pricing import MILLION
from agents.models import LanguageModel

ABILITIES = {
    "tools": gettext_lazy("Tools"),
    "images": gettext_lazy("Images"),
    "audio": gettext_lazy("Audio"),
    "schema": gettext_lazy("Structured output"),
    "reasoning": gettext_lazy("Reasoning"),
}
# The one with a column of its own.
IMAGES = "images"
MAX_LABEL_CHARS = 64
NOT_IN_LABEL = re.compile(r"[^\w.:+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model of the price list; prices are USD per million tokens."""

    is_listed: bool
    window: int | None
    input_price: float | None
    output_price: float | None
    abilities: dict[str, bool | None]

    def to_json(self, label: str) -> dict[str, Any]:
        return {
            "isListed": self.is_listed,
            "window": self.window,
            "inputPrice": self.input_price,
            "outputPrice": self.output_price,
            "abilities": self.abilities,
            "label": label,
        }


def look_up(model: str) -> ModelFacts:
    """Return what LiteLLM's table says about a model with its provider's prefix."""
    name = parameters.full_name(model)
    price = model_info.price(name)
    window = model_info.known_window(name)
    is_listed = window is not None
    return ModelFacts(
        is_listed=is_listed,
        window=window,
        input_price=_per_million(price.input) if price else None,
        output_price=_per_million(price.output) if price else None,
        abilities={
            "tools": model_info.calls_tools(name) if is_listed else None,
            "images": model_info.sees_images(name) if is_listed else None,
            "audio": model_info.hears_audio(name) if is_listed else None,
            "schema": model_info.follows_schemas(name),
            "reasoning": model_info.reasons(name) if is_listed else None,
        },
    )


def abilities_of(row: LanguageModel) -> dict[str, bool | None]:
    """Return a model's abilities: as configured, as tested, or as listed."""
    abilities = dict(look_up(row.model).abilities)
    tested = row.last_test.get("parts", {})
    for name, tested_part in {"tools": "tools", "images": "vision", "schema": "schema"}.items():
        if abilities[name] is None:
            abilities[name] = tested.get(tested_part)
    abilities |= {name: value for name, value in row.abilities.items() if name in abilities}
    if row.image_input != LanguageModel.ImageInput.AUTO:
        abilities[IMAGES] = row.image_input == LanguageModel.ImageInput.YES
    return abilities


def prices_of(row: LanguageModel) -> tuple[float | None, float | None, bool]:
    """Return the prices per million tokens, and whether they are the price list's."""
    if row.input_price is not None and row.output_price is not None:
        return row.input_price, row.output_price, False
    facts = look_up(row.model)
    return facts.input_price, facts.output_price, True


def window_of(row: LanguageModel) -> int | None:
    return row.context_window or look_up(row.model).window


def propose_label(model: str) -> str:
    """Return a free label, made of the model's own name."""
    name = model.rpartition("/")[2]
    base = NOT_IN_LABEL.sub("-", name).strip("-.:+")[:MAX_LABEL_CHARS] or "model"
    base = base if base != "demo" else "demo-model"
    used_labels = set(
        LanguageModel.objects.filter(label__startswith=base[: MAX_LABEL_CHARS - 4]).values_list(
            "label", flat=True
        )
    )
    free = (f"{base[: MAX_LABEL_CHARS - 4]}-{number}" for number in range(2, 1000))
    return (
        base
        if base not in used_labels
        else next(name for name in free if name not in used_labels)
    )


def price_text(row: LanguageModel) -> str:
    """Return the prices as text: $2.50 / $10.00."""
    input_price, output_price, _is_listed = prices_of(row)
    if input_price is None or output_price is None:
        return _("unknown")
    return (
        _("free")
        if not input_price and not output_price
        else f"{_dollars(input_price)} / {_dollars(output_price)}"
    )


def _dollars(price: float) -> str:
    return f"${price:,.2f}" if price >= 0.1 or not price else f"${price:,.3f}"


def _per_million(price: float) -> float:
    return round(price * MILLION, 6)
