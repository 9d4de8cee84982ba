"""The models that can be chosen for an agent, with price, context window and abilities."""

from typing import Any

from django.utils.translation import gettext as _

from agents.catalog.language_models import model_choices, model_setups
from agents.catalog.language_models.model_choices import ModelChoice
from agents.db.sentences import translate
from agents.llm import model_info


def list_options() -> list[dict[str, Any]]:
    """Return the configured models and the demo model, as the page's combobox reads them."""
    rows = model_setups.model_rows()
    options = []
    for row in rows:
        if not row.enabled:
            continue
        option = _option(model_choices.describe(row.label, [row]), row.model)
        option["model"] = row.model
        if error := model_setups.configuration_error(row.label):
            option["problem"] = translate(str(error))
        options.append(option)
    default = model_setups.default_model()
    if default.model != model_setups.DEMO and default.model not in {
        option["name"] for option in options
    }:
        options.insert(0, _option(model_choices.describe(default.model, rows)))
    return [*options, {"name": model_setups.DEMO, "about": _("Rule-based, needs no key")}]


def _option(choice: ModelChoice, model: str = "") -> dict[str, Any]:
    facts = [choice.provider]
    if choice.input_price is not None and choice.output_price is not None:
        prices = {"input": f"${choice.input_price:g}", "output": f"${choice.output_price:g}"}
        facts.append(_("%(input)s / %(output)s per million tokens") % prices)
    if choice.window:
        facts.append(_("%(count)s-token context") % {"count": f"{choice.window:,}"})
    abilities = {
        _("tools"): model_info.calls_tools(model or choice.name),
        _("images"): choice.sees_images,
        _("audio"): choice.hears_audio,
        _("reasoning effort"): choice.takes_effort,
        _("temperature"): bool(choice.max_temperature),
    }
    return {
        "name": choice.name,
        "about": " · ".join(filter(None, facts)),
        "abilities": [name for name, has_it in abilities.items() if has_it],
    }
