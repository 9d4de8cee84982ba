"""Chooses a model when none is configured: the first available, and where it was found."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

from agents.engine.sentences import Sentence as _
from agents.llm import parameters, providers

DEMO = "demo"
PROBE_SECONDS = 0.3
MAX_RESPONSE_BYTES = 1024 * 1024
NON_CHAT_MODELS = re.compile(r"embed|rerank|whisper|bge-", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model, how to reach it, and where it was found."""

    model: str
    source: str
    label: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def is_demo(self) -> bool:
        return self.model == DEMO


@dataclass(frozen=True, slots=True)
class LocalServer:
    label: str
    port: int
    kind: Literal["ollama", "openai"] = "openai"


class OllamaTag(BaseModel):
    name: str


class OllamaTags(BaseModel):
    """Ollama's list of models."""

    models: list[OllamaTag]


class OllamaDetails(BaseModel):
    """Ollama's capabilities of a model."""

    capabilities: list[str] = []


class OpenAIModel(BaseModel):
    id: str


class OpenAIModelList(BaseModel):
    """An OpenAI-compatible server's list of models."""

    object: Literal["list"]
    data: list[OpenAIModel]


DEFAULT_PROVIDERS = tuple(provider for provider in providers.PROVIDERS if provider.model)
LOCAL_SERVERS = (
    LocalServer("Ollama", 11434, "ollama"),
    LocalServer("LM Studio", 1234),
    LocalServer("llama-server", 8080),
    LocalServer("vLLM", 8000),
)


async def choose(
    explicit: str | None,
    base_url: str | None,
    api_key: str | None,
    environ: Mapping[str, str],
    probe: bool,
    own_port: int | None,
    servers: Sequence[LocalServer] = LOCAL_SERVERS,
) -> ModelChoice:
    """Return the configured model, else one with a key, else a local one."""
    if explicit == DEMO:
        return demo_choice("ASHIATO_MODEL")
    if explicit:
        return ModelChoice(
            model=explicit,
            source="ASHIATO_MODEL",
            label=explicit.rpartition("/")[2],
            base_url=base_url,
            api_key=api_key,
        )
    if not probe:
        return demo_choice(_("no model is configured"))
    if paid := find_provider(environ):
        return paid
    other_servers = [server for server in servers if server.port != own_port]
    local = await find_local(other_servers)
    return local or demo_choice(_("no API key or local server was found"))


def demo_choice(source: str) -> ModelChoice:
    return ModelChoice(model=DEMO, source=source, label=_("Demo model"))


def find_provider(environ: Mapping[str, str]) -> ModelChoice | None:
    """Return the first provider whose key is in the environment."""
    for provider in DEFAULT_PROVIDERS:
        name, key = providers.first_env(provider.keys, environ)
        if key:
            return ModelChoice(
                model=provider.model,
                source=_("%(name)s in the environment", name=name),
                label=f"{provider.label} {provider.model.rpartition('/')[2]}",
                base_url=providers.first_env(provider.addresses, environ)[1] or None,
                api_key=key,
            )
    return None


async def find_local(servers: Sequence[LocalServer]) -> ModelChoice | None:
    """Return the first local server that has a model; no key is sent to it."""
    choices = await asyncio.gather(*map(_probe, servers))
    return next((choice for choice in choices if choice), None)


async def _probe(server: LocalServer) -> ModelChoice | None:
    deadline = asyncio.get_running_loop().time() + PROBE_SECONDS
    try:
        async with asyncio.timeout_at(deadline):
            if server.kind == "ollama":
                tags = OllamaTags.model_validate_json(await _fetch(server.port, "/api/tags"))
                names = [model.name for model in tags.models]
            else:
                listing = await _fetch(server.port, "/v1/models")
                models = OpenAIModelList.model_validate_json(listing)
                names = [model.id for model in models.data]
    except (OSError, ValueError):
        return None
    names = [
        name
        for name in names
        if not NON_CHAT_MODELS.search(name) and not parameters.name_problem(f"openai/{name}")
    ]
    if not names:
        return None
    name = names[0]
    if server.kind == "ollama" and len(names) > 1:
        # The first that can call tools, if the server says so in time.
        with suppress(OSError, ValueError):
            async with asyncio.timeout_at(deadline):
                able = await asyncio.gather(*(_supports_tools(server, name) for name in names))
                name = next((n for n, can in zip(names, able, strict=True) if can), name)
    return ModelChoice(
        model=f"openai/{name}",
        source=f"{server.label} on 127.0.0.1:{server.port}",
        label=f"{server.label} {name}",
        base_url=f"http://127.0.0.1:{server.port}/v1",
    )


async def _supports_tools(server: LocalServer, name: str) -> bool:
    details = OllamaDetails.model_validate_json(
        await _fetch(server.port, "/api/show", {"model": name})
    )
    return "tools" in details.capabilities


async def _fetch(port: int, path: str, body: Mapping[str, str] | None = None) -> bytes:
    """Fetch JSON by HTTP/1.0, which ends the connection after the response."""
    request_body = json.dumps(body).encode() if body else b""
    request_head = [
        f"{'POST' if body else 'GET'} {path} HTTP/1.0",
        "Host: 127.0.0.1",
        "Accept: application/json",
        "Content-Type: application/json",
        f"Content-Length: {len(request_body)}",
    ]
    response = b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write("\r\n".join([*request_head, "", ""]).encode() + request_body)
        while piece := await reader.read(65536):
            response += piece
            if len(response) > MAX_RESPONSE_BYTES:
                raise ValueError("the answer is too large for a list of models")
    finally:
        writer.close()
    head, _, content = response.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] + b" ":
        raise ValueError(f"{path} on port {port} did not answer with 200")
    return content
