"""What a user chooses for a chat besides the agent: the model, its effort and temperature."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.catalog.language_models import model_choices, model_setups
from agents.db.sanitize import sanitize_text
from agents.llm import tuning
from agents.models import Agent
from chat.errors import MessageRejected

FIELDS = ("model", "effort", "temperature")
MAX_MODEL_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The choices for a run; empty ones are the agent's."""

    model: str = ""
    effort: str = ""
    temperature: float | None = None

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> "RunOptions":
        """Return saved choices."""
        return cls(**{name: stored[name] for name in FIELDS if name in stored})

    def dump(self) -> dict[str, Any]:
        """Return what was chosen, to be saved."""
        chosen = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in chosen.items() if value not in ("", None)}


def parse(values: Mapping[str, Any] | None) -> RunOptions | None:
    """Return the choices in a form or a frame, or None if there are none to make.

    Raises MessageRejected if one is invalid.
    """
    if values is None or not any(name in values for name in FIELDS):
        return None
    model = _text(values.get("model"))
    effort = _text(values.get("effort"))
    if effort and effort not in tuning.EFFORTS:
        raise MessageRejected(_("The page sent an invalid request. Reload it and try again."))
    temperature = None
    if (sent := values.get("temperature")) not in ("", None):
        try:
            temperature = float(sent)
        except (TypeError, ValueError):
            temperature = math.nan
        if isinstance(sent, bool) or not 0 <= temperature <= tuning.MAX_TEMPERATURE:
            raise MessageRejected(
                _("Enter a temperature between 0 and %(most)g.")
                % {"most": tuning.MAX_TEMPERATURE}
            )
        temperature = round(temperature, 2)
    return RunOptions(model=model, effort=effort, temperature=temperature)


def overrides(agent: Agent, options: RunOptions, user: User) -> dict[str, Any]:
    """Return the choices that this agent allows and the model accepts, for its run.

    Raises MessageRejected if the user can't choose the model any more.
    """
    chosen: dict[str, Any] = {}
    model = model_setups.model_name(agent)
    if options.model and agent.allows_model_choice and options.model != model:
        if model_choices.find_model(options.model, user) is None:
            raise MessageRejected(
                _("The model %(model)s is no longer available to you. Choose another model.")
                % {"model": options.model}
            )
        model = options.model
        chosen["model"] = model
    if agent.allows_parameter_choice and (options.effort or options.temperature is not None):
        accepted = model_choices.describe(model)
        # While a model reasons, it has no temperature.
        if options.effort and accepted.takes_effort:
            chosen["effort"] = options.effort
        elif options.temperature is not None and accepted.max_temperature:
            chosen["temperature"] = min(options.temperature, accepted.max_temperature)
    return chosen


def _text(value: Any) -> str:
    return sanitize_text(value)[:MAX_MODEL_CHARS] if isinstance(value, str) else ""
