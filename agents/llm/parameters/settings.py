"""How a model is reached, and why a setting isn't allowed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.engine.errors import ModelError


class SettingNotAllowed(ModelError):
    """This model has a setting that isn't allowed."""

    advice = "Contact your administrator, or choose another agent."


class UnknownProvider(SettingNotAllowed):
    """Unknown provider."""


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
        own = {"api_version": self.api_version, "aws_region_name": self.region}
        return {**{name: value for name, value in own.items() if value}, **self.options}
