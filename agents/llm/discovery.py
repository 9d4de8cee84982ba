"""Which model to use when nobody said: the first that is there, and where it was found."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

from agents.llm import parameters, providers

DEMO = "demo"
PROBE_SECONDS = 0.3
LARGEST_ANSWER = 1024 * 1024
NO_CHAT = re.compile(r"embed|rerank|whisper|bge-", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model, how to reach it, and in words where it was found."""

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


class Tag(BaseModel):
    name: str


class Tags(BaseModel):
    """What Ollama says it has."""

    models: list[Tag]


class Shown(BaseModel):
    """What Ollama says that one model can do."""

    capabilities: list[str] = []


class Listed(BaseModel):
    id: str


class Models(BaseModel):
    """What an OpenAI-compatible server says it has."""

    object: Literal["list"]
    data: list[Listed]


PROVIDERS = tuple(provider for provider in providers.PROVIDERS if provider.model)
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
) -> Choice:
    """The model that was asked for, else one that is paid for, else one that runs here."""
    if explicit == DEMO:
        return demo("ASHIATO_MODEL")
    if explicit:
        return Choice(
            model=explicit,
            source="ASHIATO_MODEL",
            label=explicit.rpartition("/")[2],
            base_url=base_url,
            api_key=api_key,
        )
    if not probe:
        return demo("no model is configured")
    if paid := with_key(environ):
        return paid
    others = [server for server in servers if server.port != own_port]
    return await running(others) or demo("no key and no local server was found")


def demo(source: str) -> Choice:
    return Choice(model=DEMO, source=source, label="Demo model")


def with_key(environ: Mapping[str, str]) -> Choice | None:
    """The first provider whose key is in the environment."""
    for provider in PROVIDERS:
        name, key = providers.first_set(provider.keys, environ)
        if key:
            return Choice(
                model=provider.model,
                source=f"{name} in the environment",
                label=f"{provider.label} {provider.model.rpartition('/')[2]}",
                base_url=providers.first_set(provider.addresses, environ)[1] or None,
                api_key=key,
            )
    return None


async def running(servers: Sequence[LocalServer]) -> Choice | None:
    """The first of the servers on this machine that has a model; it is sent no key."""
    answers = await asyncio.gather(*map(_probe, servers))
    return next((answer for answer in answers if answer), None)


async def _probe(server: LocalServer) -> Choice | None:
    deadline = asyncio.get_running_loop().time() + PROBE_SECONDS
    try:
        async with asyncio.timeout_at(deadline):
            names = [name for name in await _names(server) if _can_be_asked(name)]
    except (OSError, ValueError):
        return None
    if not names:
        return None
    name = await _best(server, names, deadline)
    return Choice(
        model=f"openai/{name}",
        source=f"{server.label} on 127.0.0.1:{server.port}",
        label=f"{server.label} {name}",
        base_url=f"http://127.0.0.1:{server.port}/v1",
    )


def _can_be_asked(name: str) -> bool:
    return not NO_CHAT.search(name) and not parameters.wrong_name(f"openai/{name}")


async def _names(server: LocalServer) -> list[str]:
    if server.kind == "ollama":
        tags = Tags.model_validate_json(await _ask(server.port, "/api/tags"))
        return [model.name for model in tags.models]
    models = Models.model_validate_json(await _ask(server.port, "/v1/models"))
    return [model.id for model in models.data]


async def _best(server: LocalServer, names: Sequence[str], deadline: float) -> str:
    """The first that can call tools, where the server can say so in time, else the first."""
    if server.kind == "ollama" and len(names) > 1:
        with suppress(OSError, ValueError):
            async with asyncio.timeout_at(deadline):
                able = await asyncio.gather(*(_can_call(server, name) for name in names))
                return next((n for n, can in zip(names, able, strict=True) if can), names[0])
    return names[0]


async def _can_call(server: LocalServer, name: str) -> bool:
    shown = Shown.model_validate_json(await _ask(server.port, "/api/show", {"model": name}))
    return "tools" in shown.capabilities


async def _ask(port: int, path: str, body: Mapping[str, str] | None = None) -> bytes:
    """The JSON at this address; HTTP/1.0, so that it comes whole and ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(_request(path, body))
        answer = await _until_end(reader)
    finally:
        writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] + b" ":
        raise ValueError(f"{path} on port {port} did not answer with 200")
    return content


def _request(path: str, body: Mapping[str, str] | None) -> bytes:
    content = json.dumps(body).encode() if body else b""
    lines = [
        f"{'POST' if body else 'GET'} {path} HTTP/1.0",
        "Host: 127.0.0.1",
        "Accept: application/json",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def _until_end(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    while piece := await reader.read(65536):
        answer += piece
        if len(answer) > LARGEST_ANSWER:
            raise ValueError("the answer is too large for a list of models")
    return answer
