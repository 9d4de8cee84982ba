"""Which models a server offers, and whether it accepts a key: free of charge.

Used by the console's form of a model. Every server lists its models in its own way; some list
none, and some list them to anybody, so that the list says nothing about the key.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from agents.engine.errors import AgentError, ModelError
from agents.engine.sentences import Sentence as _

from ..parameters import ModelSettings, provider_label, provider_prefix
from ..providers import find_provider, first_env
from ..routing import resolve_endpoint
from ..wire import http
from ..wire.provider_errors import explain

DEADLINE_SECONDS = 10.0
MAX_MODELS = 2_000
AZURE_VERSION = "2024-10-21"
ANY_MODEL = "any"  # in place of a name that isn't entered yet
NON_CHAT_MODELS = re.compile(
    r"embed|rerank|whisper|bge-|(^|[-/])tts|dall-e|moderation|transcribe|realtime|sora|gpt-image",
    re.I,
)
# Their lists are public, so that they say nothing about a key.
PUBLIC_LISTS = frozenset({"nvidia_nim", "deepinfra"})
# What chats, embeds, or makes images.
GEMINI_METHODS = frozenset({"generateContent", "embedContent", "predict"})
KeyCheck = Literal["accepted", "unchecked"]


class ModelsNotListed(ModelError):
    message = _("This server doesn't list its models.")

    advice = _("Enter the model's name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model by the server's name, with a few words about it."""

    name: str
    note: str = ""
    is_chat: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """What a server offers; `key` is what its answer says about the key.

    `others` are models that don't chat: for embeddings, sound or images.
    """

    models: tuple[ListedModel, ...]
    key: KeyCheck
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """Where a list is, and with which headers it is asked for."""

    prefix: str
    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        if not self.key:
            return {}
        match self.prefix:
            case "anthropic":
                return {"x-api-key": self.key}
            case "gemini":
                return {"x-goog-api-key": self.key}
            case "azure":
                return {"api-key": self.key}
            case _:
                return {"Authorization": f"Bearer {self.key}"}


async def list_models(
    settings: ModelSettings, environ: Mapping[str, str] = os.environ
) -> ModelList:
    """Ask the server of these settings for its models; raises AgentError if it can't.

    The name in the settings only decides the provider.
    """
    server = _resolve_server(settings, environ)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            models = await _fetch_models(server)
            is_checked = server.key and server.prefix not in PUBLIC_LISTS
            if is_checked and server.prefix == "openrouter":
                await _fetch(server, f"{server.url}/key")  # its list is public
    except AgentError:
        raise
    except Exception as error:
        if getattr(error, "status_code", None) in (404, 405, 501):
            raise ModelsNotListed from None
        failure = http.TimeoutException() if isinstance(error, TimeoutError) else error
        is_named = settings.model.partition("/")[2] != ANY_MODEL
        name = settings.model if is_named else provider_label(server.prefix)
        # Not `from error`: a server's message may contain the key.
        raise explain(failure, model=name, secrets=[server.key]) from None
    unique = {model.name: model for model in models if model.name}
    chat_models = {
        name: model
        for name, model in unique.items()
        if model.is_chat and not NON_CHAT_MODELS.search(name)
    }
    return ModelList(
        models=tuple(chat_models.values())[:MAX_MODELS],
        key="accepted" if is_checked else "unchecked",
        others=tuple(name for name in unique if name not in chat_models)[:MAX_MODELS],
    )


def _resolve_server(settings: ModelSettings, environ: Mapping[str, str]) -> _Server:
    prefix = provider_prefix(settings.model)
    provider = find_provider(settings.model)
    if provider is None:
        raise ModelsNotListed
    if provider.is_direct:
        endpoint = resolve_endpoint(
            settings.model, environ, base_url=settings.base_url, api_key=settings.api_key
        )
        return _Server(prefix=prefix, url=endpoint.url, key=endpoint.key)
    url = settings.base_url or first_env(provider.addresses, environ)[1]
    if not url or prefix in NO_LISTS:
        raise ModelsNotListed
    # A key of the environment is only sent to an address from there, or the provider's own.
    key = settings.api_key or (
        None if settings.base_url else first_env(provider.keys, environ)[1] or None
    )
    return _Server(prefix=prefix, url=url.rstrip("/"), key=key)


NO_LISTS = frozenset({"bedrock", "sagemaker", "sagemaker_chat", "vertex_ai", "azure_ai"})


async def _fetch_models(server: _Server) -> list[ListedModel]:
    match server.prefix:
        case "anthropic":
            url = f"{server.url}/v1/models?limit=1000"
            listing = await _fetch(server, url, {"anthropic-version": "2023-06-01"})
            return _read(listing, "data", "id", "display_name")
        case "gemini":
            listing = await _fetch(server, f"{server.url}/models?pageSize=1000")
            items = listing.get("models") if isinstance(listing, Mapping) else None
            models = []
            for item in _mappings(items or ()):
                name = str(item.get("name", "")).removeprefix("models/")
                methods = item.get("supportedGenerationMethods") or ()
                if name and not GEMINI_METHODS.isdisjoint(methods):
                    note = _note(item.get("displayName"), name)
                    is_chat = "generateContent" in methods
                    models.append(ListedModel(name=name, note=note, is_chat=is_chat))
            return models
        case "azure":
            # Azure lists what can be deployed, not what is; but it checks the key.
            await _fetch(server, f"{server.url}/openai/models?api-version={AZURE_VERSION}")
            return []
        case "ollama" | "ollama_chat":
            listing = await _fetch(server, f"{server.url.removesuffix('/v1')}/api/tags")
            items = listing.get("models") if isinstance(listing, Mapping) else None
            if not isinstance(items, list):
                raise ModelsNotListed
            models = []
            for item in _mappings(items):
                if isinstance(tag := item.get("name"), str):
                    details = item.get("details")
                    size = details.get("parameter_size") if isinstance(details, Mapping) else ""
                    models.append(ListedModel(name=tag, note=str(size or "")))
            return models
        case "lm_studio":
            host = urlsplit(server.url)
            return await _fetch_first(server, f"{host.scheme}://{host.netloc}/api/v0/models")
        case "litellm_proxy":
            return await _fetch_first(
                server, f"{server.url.removesuffix('/v1')}/model/info", "model_name"
            )
    return _read(await _fetch(server, f"{server.url}/models"), "data", "id", "name")


async def _fetch_first(server: _Server, url: str, name: str = "id") -> list[ListedModel]:
    """Read a server's own list, which says more, or else the one of OpenAI's API."""
    try:
        models = _read(await _fetch(server, url), "data", name, "type")
    except ModelsNotListed:
        models = []
    except http.HTTPStatusError as error:
        if error.status_code == 401:
            raise
        models = []
    return models or _read(await _fetch(server, f"{server.url}/models"), "data", "id", "name")


async def _fetch(server: _Server, url: str, headers: Mapping[str, str] | None = None) -> Any:
    return await http.get_json(url, {**server.headers, **(headers or {})})


def _read(listing: Any, group: str, name: str, note: str) -> list[ListedModel]:
    """Read a list of objects; some servers send the list without anything around it."""
    items = listing.get(group) if isinstance(listing, Mapping) else listing
    if not isinstance(items, list):
        raise ModelsNotListed
    return [
        ListedModel(
            name=text,
            note=_note(item.get(note), text),
            is_chat=item.get("type") != "embeddings",
        )
        for item in _mappings(items)
        if isinstance(text := item.get(name), str)
    ]


def _mappings(items: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    return (item for item in items if isinstance(item, Mapping))


def _note(text: Any, name: str) -> str:
    return text if isinstance(text, str) and text != name else ""
