"""The models that can be chosen for an agent, with price, context window and abilities."""

from typing import Any

from django.utils.translation import gettext as _

from agents.catalog import model_choices, model_setups
from agents.catalog.model_choices import ModelChoice
from agents.llm import model_info
from agents.models import LanguageModel
from agents.runs.engine_messages import translate


def list_options() -> list[dict[str, Any]]:
    """Return the configured models and the demo model, as the page's combobox reads them."""
    rows = model_setups.model_rows()
    options = [_from_row(row) for row in rows if row.enabled]
    default = model_setups.default_model()
    if default.model != model_setups.DEMO and default.model not in {
        option["name"] for option in options
    }:
        options.insert(0, _describe(model_choices.describe(default.model, rows)))
    return [*options, {"name": model_setups.DEMO, "about": _("Rule-based, needs no key")}]


def _from_row(row: LanguageModel) -> dict[str, Any]:
    error = model_setups.configuration_error(row.label)
    problem = {"problem": translate(str(error))} if error else {}
    about = _describe(model_choices.describe(row.label, [row]), row.model)
    return about | {"model": row.model, **problem}


def _describe(choice: ModelChoice, model: str = "") -> dict[str, Any]:
    parts = [choice.provider, _price(choice), _window(choice)]
    return {
        "name": choice.name,
        "about": " · ".join(part for part in parts if part),
        "abilities": _abilities(choice, model or choice.name),
    }


def _price(choice: ModelChoice) -> str:
    if choice.input_price is None or choice.output_price is None:
        return ""
    prices = {"input": f"${choice.input_price:g}", "output": f"${choice.output_price:g}"}
    return _("%(input)s / %(output)s per million tokens") % prices


def _window(choice: ModelChoice) -> str:
    if not choice.window:
        return ""
    return _("%(count)s tokens context") % {"count": f"{choice.window:,}"}


def _abilities(choice: ModelChoice, model: str) -> list[str]:
    found = {
        _("tools"): model_info.calls_tools(model),
        _("images"): choice.sees_images,
        _("audio"): choice.hears_audio,
        _("effort"): choice.takes_effort,
        _("temperature"): bool(choice.max_temperature),
    }
    return [name for name, has_it in found.items() if has_it]
