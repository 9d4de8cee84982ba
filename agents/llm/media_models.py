"""Models for sound and images: where they are, what they return, and what that costs."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaModel:
    """A model for sound or images, and where it is."""

    model: str
    url: str = ""
    key: str | None = field(default=None, repr=False)
    # Of providers that need more than a URL and a key, under LiteLLM's names.
    options: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = 120.0
    max_retries: int = 2
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaUsage:
    """What a request used. An unknown cost is None, not zero."""

    model: str
    cost: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reported: Mapping[str, Any] = field(default_factory=dict)  # what was too high

    def to_dict(self) -> dict[str, Any]:
        """Return the data of a usage event."""
        data = asdict(self)
        data["total_tokens"] = self.prompt_tokens + self.completion_tokens
        data["estimated"] = False
        if not self.reported:
            del data["reported"]
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedImage:
    """An image, and what the provider said about it."""

    data: bytes
    prompt: str = ""
    usage: MediaUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a model that sees says about an image."""

    text: str
    usage: MediaUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file in a form."""

    name: str
    mime_type: str
    data: bytes
