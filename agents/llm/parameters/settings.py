"""How a model is reached, and why a setting isn't allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.engine.errors import ModelError
from agents.engine.sentences import Sentence as _


class SettingNotAllowed(ModelError):
    message = _("This model has a setting that isn't allowed.")

    advice = _("Choose another agent, or contact your administrator.")


class UnknownProvider(SettingNotAllowed):
    message = _("Unknown provider.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model is reached, and additional request parameters."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str = ""
    region: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def litellm_options(self) -> dict[str, Any]:
        """The options and dedicated fields, under LiteLLM's names."""
        fields = {"api_version": self.api_version, "aws_region_name": self.region}
        return {**{name: value for name, value in fields.items() if value}, **self.options}
