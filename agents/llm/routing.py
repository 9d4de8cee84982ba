"""Two routes to a model: directly to the server, if its API is known here, or by LiteLLM."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from agents.engine.errors import ModelError
from agents.engine.sentences import Sentence as _
from agents.llm.providers import ModelProvider, OwnApi, find_provider, first_env

from . import model_info

Route = Literal["direct", "litellm"]
OPENAI_HOST = "api.openai.com"
LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1", "host.docker.internal"}
ROUTE_ADVICE = _("Set ASHIATO_MODEL_ROUTE to auto, or choose another model.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model's URL, and its name there."""

    provider: ModelProvider
    name: str
    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def own_api(self) -> OwnApi | None:
        """Which API is called, if it isn't OpenAI's; Ollama has that one at /v1."""
        is_compatible = self.provider.speaks_openai and self.url.endswith("/v1")
        return None if is_compatible else self.provider.own_api

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
    if endpoint.provider.prefix == "openai" and not endpoint.is_openai:
        return "direct"
    # Some models are only offered by an API that needs LiteLLM.
    pattern = endpoint.provider.elsewhere
    is_elsewhere = pattern is not None and pattern.match(endpoint.name)
    return "litellm" if model_info.is_responses_only(model) or is_elsewhere else "direct"


def resolve_endpoint(
    model: str,
    environ: Mapping[str, str],
    *,
    base_url: str | None = None,
    api_key: str | None = None,
) -> Endpoint:
    """Return the endpoint; a key of the environment is only sent to an address from there."""
    provider = find_provider(model)
    if provider is None or not provider.is_direct:
        raise ModelError(
            _("%(model)s can't be called directly.", model=repr(model)), advice=ROUTE_ADVICE
        )
    custom_url = base_url or first_env(provider.addresses, environ)[1]
    url = (custom_url or provider.base_url or "").rstrip("/")
    if not url:
        names = " or ".join(provider.addresses)
        raise ModelError(
            _("The model %(model)s has no URL.", model=repr(model)),
            advice=_("Set the environment variable %(names)s.", names=names),
        )
    key = api_key or (None if base_url else first_env(provider.keys, environ)[1]) or None
    if provider.needs_key and not key and not custom_url:
        raise ModelError(
            _("The model %(model)s has no API key.", model=repr(model)),
            advice=_("Set the environment variable %(names)s.", names=provider.keys[0]),
        )
    name = model.partition("/")[2]
    match provider.own_api:
        case "ollama":
            url = url.removesuffix("/chat").removesuffix("/api")
        case "anthropic":
            url = url.removesuffix("/messages").removesuffix("/v1")
        case "gemini" if not urlsplit(url).path:
            url += "/v1beta"
    if not url.endswith(provider.path):
        url += provider.path
    return Endpoint(provider=provider, name=name, url=url, key=key)


def account_id(
    base_url: str | None, api_key: str | None, secrets: Mapping[str, str] | None = None
) -> str:
    """Return a short digest of an own address and its credentials, or an empty string."""
    credentials = [base_url or "", api_key or "", *sorted((secrets or {}).values())]
    if not any(credentials):
        return ""
    return hashlib.sha256("\n".join(credentials).encode()).hexdigest()[:8]


def is_self_hosted(model: str, environ: Mapping[str, str], base_url: str | None = None) -> bool:
    """Whether one's own server answers, which may read a long prompt for minutes."""
    provider = find_provider(model)
    if provider is None:
        return False
    url = base_url or first_env(provider.addresses, environ)[1] or ""
    return provider.is_self_hosted or (urlsplit(url).hostname or "") in LOOPBACK_HOSTS
