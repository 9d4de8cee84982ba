"""Sound and images: transcription, speech, image generation, description.

Servers with OpenAI's API are called directly, other providers by LiteLLM. Each call has a
deadline and is retried where that can help. The key only goes to the address it belongs to, as
with chat models.
"""

import asyncio
import base64
import binascii
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import aiohttp

from agents.engine.errors import AgentError, ModelError, ModelTimeout
from agents.engine.resilience import RetryPolicy
from agents.engine.sentences import Sentence as _
from agents.file_types import detect_type

from . import media_prices
from .litellm_model import media as litellm_media
from .media_models import Description, GeneratedImage, MediaModel, MediaUsage, Upload
from .providers import find_provider
from .routing import Endpoint, resolve_endpoint
from .usage_limits import UsageLimits
from .wire import http
from .wire.json_codec import decode, encode
from .wire.provider_errors import NO_RESPONSE, RETRY_ADVICE, StreamGarbled, explain

CONNECT_SECONDS = 10.0
MAX_JSON_BYTES = 40 * 1024 * 1024
NO_IMAGE = _("%(model)s returned no image.")
NOT_MP3 = _("%(model)s returned speech that is not MP3.")
SPEECH_ADVICE = _("Choose another speech model.")
IMAGE_ADVICE = _("Check that it is a model that generates images.")

T = TypeVar("T")


async def transcribe(
    service: MediaModel, sound: Upload, *, language: str = "", prompt: str = ""
) -> dict[str, Any]:
    """Return the reply to a recording: its text, and segments where the model has them."""
    response_format = transcript_format(service.model)
    form = {"response_format": response_format, "language": language, "prompt": prompt}
    if response_format == "diarized_json":
        form |= {"chunking_strategy": "auto", "prompt": ""}  # it rejects prompts
    try:
        return await _retry(service, lambda: _send_form(service, sound, form))
    except ModelError as error:
        if response_format == "json" or "response_format" not in str(error):
            raise
        # Servers that only know plain JSON still return the text.
        form = {"response_format": "json", "language": language}
        return await _retry(service, lambda: _send_form(service, sound, form))


def transcript_format(model: str) -> str:
    """Return the most detailed format that a model of this name offers."""
    name = model.rpartition("/")[2].lower()
    if "diarize" in name:
        return "diarized_json"
    return "json" if name.startswith("gpt-") else "verbose_json"


def needs_litellm(service: MediaModel) -> bool:
    """Whether the provider has an API of its own."""
    provider = find_provider(service.model)
    return provider is None or not provider.speaks_openai


async def _send_form(
    service: MediaModel, sound: Upload, fields: Mapping[str, str]
) -> dict[str, Any]:
    if needs_litellm(service):
        return await litellm_media.transcribe(service, sound, fields)
    endpoint = _endpoint(service)
    form = {"model": endpoint.name, **fields}
    body, content_type = encode_form({k: v for k, v in form.items() if v}, sound)
    path = "/audio/transcriptions"
    reply = await _read_json(service, path, body, content_type)
    if not isinstance(reply.get("text"), str) and not isinstance(reply.get("segments"), list):
        raise StreamGarbled("a reply without text")
    return reply


def encode_form(fields: Mapping[str, str], file: Upload) -> tuple[bytes, str]:
    """Return a multipart form with one file, and its content type."""
    boundary = secrets.token_hex(16)
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    head += (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
        f"Content-Type: {file.mime_type}\r\n\r\n"
    )
    body = b"".join([head.encode(), file.data, f"\r\n--{boundary}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={boundary}"


async def speak(service: MediaModel, text: str, *, voice: str) -> AsyncIterator[bytes]:
    """Yield an MP3 of the text as it arrives; other APIs return it whole."""
    if needs_litellm(service):
        audio = await _retry(service, lambda: litellm_media.speak(service, text, voice))
        if detect_type(audio) != "audio/mpeg":
            raise ModelError(NOT_MP3.fill(model=repr(service.model)), advice=SPEECH_ADVICE)
        yield audio
        return
    body = encode(
        {
            "model": _endpoint(service).name,
            "input": text,
            "voice": voice,
            "response_format": "mp3",
        }
    )
    opened = _open(service, "/audio/speech", body, "application/json")
    with_errors = _explained(service)
    async with with_errors, asyncio.timeout(service.seconds), opened as response:
        while piece := await response.read():
            yield piece


async def generate_image(service: MediaModel, prompt: str, *, size: str) -> GeneratedImage:
    """Return an image of the prompt."""

    async def request() -> dict[str, Any]:
        if needs_litellm(service):
            return await litellm_media.generate_image(service, prompt, size)
        name = _endpoint(service).name
        body = {"model": name, "prompt": prompt, "n": 1, "size": size}
        if not name.startswith("gpt-image"):
            body["response_format"] = "b64_json"  # not a link that we would have to fetch
        return await _read_json(service, "/images/generations", encode(body))

    reply = await _retry(service, request)
    try:
        image = reply["data"][0]
        data = base64.b64decode(image["b64_json"], validate=True)
    except (KeyError, IndexError, TypeError, ValueError, binascii.Error):
        raise ModelError(
            NO_IMAGE.fill(model=repr(service.model)), advice=IMAGE_ADVICE
        ) from None
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    used = media_prices.image_usage(service.model, usage, prompt)
    return GeneratedImage(
        data=data,
        prompt=str(image.get("revised_prompt") or ""),
        usage=with_reported_cost(used, reply),
    )


def with_reported_cost(usage: MediaUsage, reply: Mapping[str, Any]) -> MediaUsage:
    """Return the usage with the cost that LiteLLM knows, if the table has none."""
    cost = reply.get("response_cost")
    is_missing = usage.cost is None and isinstance(cost, int | float) and cost > 0
    return replace(usage, cost=float(cost)) if is_missing and cost else usage


async def describe_image(
    service: MediaModel, image: bytes, mime_type: str, *, question: str, max_tokens: int = 800
) -> Description:
    """Return what a model that sees says about an image."""
    url = f"data:{mime_type};base64,{base64.b64encode(image).decode()}"
    content = [
        {"type": "text", "text": question},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    messages = [{"role": "user", "content": content}]

    async def request() -> dict[str, Any]:
        if needs_litellm(service):
            return await litellm_media.complete(service, messages, max_tokens)
        name = _endpoint(service).name
        body = {"model": name, "messages": messages, "max_tokens": max_tokens}
        return await _read_json(service, "/chat/completions", encode(body))

    reply = await _retry(service, request)
    try:
        text = reply["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = None
    if not isinstance(text, str) or not text.strip():
        raise ModelError(
            _("%(model)s returned no description.", model=repr(service.model)),
            advice=RETRY_ADVICE,
        )
    usage = reply.get("usage")
    limits = UsageLimits(service.model, messages, None, {"max_tokens": max_tokens})
    plausible = limits.clamp_cost(limits.clamp(usage if isinstance(usage, dict) else {}))
    used = media_prices.chat_usage(service.model, plausible)
    return Description(text=text.strip(), usage=with_reported_cost(used, reply))


async def _retry(service: MediaModel, send: Callable[[], Awaitable[T]]) -> T:
    policy = RetryPolicy(max_retries=service.max_retries)
    attempt = 0
    try:
        async with asyncio.timeout(service.seconds):
            while True:
                attempt += 1
                try:
                    async with _explained(service):
                        return await send()
                except AgentError as error:
                    pause = policy.wait(error, attempt)
                    if pause is None:
                        raise
                await asyncio.sleep(pause)
    except TimeoutError:
        raise ModelTimeout(NO_RESPONSE.fill(model=repr(service.model))) from None


@asynccontextmanager
async def _explained(service: MediaModel) -> AsyncIterator[None]:
    """Raise errors as sentences without secrets."""
    try:
        yield
    except (AgentError, GeneratorExit, asyncio.CancelledError):
        raise
    except TimeoutError:
        raise ModelTimeout(NO_RESPONSE.fill(model=repr(service.model))) from None
    except Exception as error:
        key = service.key if needs_litellm(service) else _endpoint(service).key
        # Not `from error`: a provider's message may contain the key, and logs print causes.
        hidden = [key, *service.secrets.values()]
        raise explain(error, model=service.model, secrets=hidden) from None


async def _read_json(
    service: MediaModel, path: str, body: bytes, content_type: str = "application/json"
) -> dict[str, Any]:
    async with _open(service, path, body, content_type) as response:
        reply = bytearray()
        while piece := await response.read():
            reply += piece
            if len(reply) > MAX_JSON_BYTES:
                raise StreamGarbled("a reply that is too large")
    value = decode(bytes(reply))
    if not isinstance(value, dict):
        raise StreamGarbled("a reply that is not an object")
    value.pop("response_cost", None)  # our name for what LiteLLM computes
    return value


@asynccontextmanager
async def _open(
    service: MediaModel, path: str, body: bytes, content_type: str
) -> AsyncIterator[http.StreamingResponse]:
    endpoint = _endpoint(service)
    headers = {"Content-Type": content_type, "Accept": "*/*"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=service.seconds
    )
    base = f"{endpoint.url}/v1" if endpoint.own_api else endpoint.url
    async with http.post(f"{base}{path}", body, headers, timeout) as response:
        yield response


def address(service: MediaModel) -> str:
    """Return the server's URL; empty for a provider that LiteLLM knows."""
    return "" if needs_litellm(service) else _endpoint(service).url


def _endpoint(service: MediaModel) -> Endpoint:
    return resolve_endpoint(
        service.model, service.environ, base_url=service.url or None, api_key=service.key
    )
