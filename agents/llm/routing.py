"""Two routes to a model: directly to a server with OpenAI's API, or by LiteLLM."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from agents.engine.errors import ModelError
from agents.llm.providers import ModelProvider, find_provider, first_env

from . import model_info

Route = Literal["direct", "litellm"]
OPENAI_HOST = "api.openai.com"
LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1", "host.docker.internal"}
ROUTE_ADVICE = "Set ASHIATO_MODEL_ROUTE to auto, or choose another model."


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model's URL, and its name there."""

    provider: ModelProvider
    name: str
    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def has_own_api(self) -> bool:
        """Whether the server's own API is called; an address with /v1 asks for OpenAI's."""
        return self.provider.own_api and not self.url.endswith("/v1")

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI itself, not another server with its API."""
        host = urlsplit(self.url).hostname or ""
        return self.provider.prefix == "openai" and host.endswith(OPENAI_HOST)


def choose_route(
    model: str,
    environ: Mapping[str, str],
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    forced: Literal["auto", "direct", "litellm"] = "auto",
) -> Route:
    """Return the direct route if everything it needs is available."""
    if forced != "auto":
        return forced
    try:
        endpoint = resolve_endpoint(model, environ, base_url=base_url, api_key=api_key)
    except ModelError:
        return "litellm"
    return "litellm" if _needs_litellm(model, endpoint) else "direct"


def resolve_endpoint(
    model: str,
    environ: Mapping[str, str],
    *,
    base_url: str | None = None,
    api_key: str | None = None,
) -> Endpoint:
    """Return the endpoint; a key of the environment is only sent to an address from there."""
    provider = find_provider(model)
    if provider is None or not provider.speaks_openai:
        raise ModelError(f"{model!r} can't be called directly.", advice=ROUTE_ADVICE)
    custom_url = base_url or first_env(provider.addresses, environ)[1]
    url = (custom_url or provider.base_url or "").rstrip("/")
    if not url:
        names = " or ".join(provider.addresses)
        raise ModelError(
            f"The model {model!r} has no URL.", advice=f"Set the environment variable {names}."
        )
    key = api_key or (None if base_url else first_env(provider.keys, environ)[1]) or None
    if provider.needs_key and not key and not custom_url:
        raise ModelError(
            f"The model {model!r} has no API key.",
            advice=f"Set the environment variable {provider.keys[0]}.",
        )
    name = model.partition("/")[2]
    if provider.own_api:
        url = url.removesuffix("/chat").removesuffix("/api")
    return Endpoint(provider=provider, name=name, url=_with_path(url, provider.path), key=key)


def account_id(
    base_url: str | None, api_key: str | None, secrets: Mapping[str, str] | None = None
) -> str:
    """Return a short digest of an own address and its credentials, or an empty string."""
    parts = [base_url or "", api_key or "", *sorted((secrets or {}).values())]
    if not any(parts):
        return ""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def is_self_hosted(model: str, environ: Mapping[str, str], base_url: str | None = None) -> bool:
    """Whether one's own server answers, which may read a long prompt for minutes."""
    provider = find_provider(model)
    if provider is None:
        return False
    url = base_url or first_env(provider.addresses, environ)[1] or ""
    return provider.is_self_hosted or (urlsplit(url).hostname or "") in LOOPBACK_HOSTS


def _needs_litellm(model: str, endpoint: Endpoint) -> bool:
    """Whether the provider only offers this model by an API that needs LiteLLM."""
    if endpoint.provider.prefix == "openai" and not endpoint.is_openai:
        return False
    pattern = endpoint.provider.elsewhere
    return model_info.is_responses_only(model) or bool(pattern and pattern.match(endpoint.name))


def _with_path(url: str, path: str) -> str:
    return url if url.endswith(path) else url + path
