"""Sound and images by providers with APIs of their own, such as Gemini, Deepgram or ElevenLabs.

Deadlines, retries and sentences for errors are the caller's: see `media_api`.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from agents.engine.errors import ModelError
from agents.engine.sentences import Sentence as _
from agents.llm import parameters as model_parameters

from ..media_models import MediaModel, Upload
from .loading import PROVIDER_MODULES, import_modules, warm_up

# Providers without chat models, and the environment variables with their keys.
MEDIA_PROVIDERS = {
    "black_forest_labs": "BFL_API_KEY",
    "deepgram": "DEEPGRAM_API_KEY",
    "elevenlabs": "ELEVENLABS_API_KEY",
    "fal_ai": "FAL_AI_API_KEY",
    "recraft": "RECRAFT_API_KEY",
    "stability": "STABILITY_API_KEY",
}


async def transcribe(
    service: MediaModel, sound: Upload, fields: Mapping[str, str]
) -> dict[str, Any]:
    """Return a transcript in OpenAI's format, with times where the provider has them."""
    litellm = await _load(service)
    options = {name: value for name, value in fields.items() if value}
    file = (sound.name, sound.data, sound.mime_type)
    reply = await litellm.atranscription(file=file, **options, **_request(service))
    return _to_dict(reply)


async def speak(service: MediaModel, text: str, voice: str) -> bytes:
    """Return an MP3 of the text."""
    litellm = await _load(service)
    reply = await litellm.aspeech(
        input=text, voice=voice, response_format="mp3", **_request(service)
    )
    return bytes(reply.content)


async def generate_image(service: MediaModel, prompt: str, size: str) -> dict[str, Any]:
    """Return a reply in OpenAI's format, with one image in base64."""
    litellm = await _load(service)
    # Providers that only know other sizes or formats get those they know: drop_params is set.
    reply = await litellm.aimage_generation(
        prompt=prompt, n=1, size=size, response_format="b64_json", **_request(service)
    )
    return _to_dict(reply)


async def complete(
    service: MediaModel, messages: list[dict[str, Any]], max_tokens: int
) -> dict[str, Any]:
    """Return a chat model's reply in OpenAI's format."""
    litellm = await _load(service)
    reply = await litellm.acompletion(
        messages=messages, max_tokens=max_tokens, **_request(service)
    )
    return _to_dict(reply)


async def _load(service: MediaModel) -> Any:
    litellm = await asyncio.wrap_future(warm_up())
    if modules := PROVIDER_MODULES.get(model_parameters.provider_prefix(service.model)):
        await asyncio.wrap_future(import_modules(modules))
    return litellm


def _request(service: MediaModel) -> dict[str, Any]:
    """Return where to send it; a key of the environment only goes to an address from there."""
    limits = {"timeout": service.seconds, "max_retries": 0, "num_retries": 0}
    prefix = service.model.partition("/")[0]
    if variable := MEDIA_PROVIDERS.get(prefix):
        key = service.key or ("" if service.url else service.environ.get(variable, ""))
        if not key and not service.url:
            raise ModelError(
                _("The model %(model)s has no API key.", model=repr(service.model)),
                advice=_("Set the environment variable %(names)s.", names=variable),
            )
        return {
            "model": service.model,
            # LiteLLM always gets one, so that it doesn't look for one itself.
            "api_key": key or "none",
            "api_base": service.url or None,
            **limits,
        }
    settings = model_parameters.ModelSettings(
        model=service.model,
        base_url=service.url or None,
        api_key=service.key,
        options=service.options,
        secrets=service.secrets,
    )
    model_parameters.check(settings)
    return {
        **service.options,
        **service.secrets,
        **model_parameters.blank_credentials(settings),
        "model": model_parameters.full_name(service.model),
        "api_key": model_parameters.resolve_key(settings, service.environ),
        "api_base": model_parameters.resolve_address(settings, service.environ),
        **limits,
    }


def _to_dict(reply: Any) -> dict[str, Any]:
    """Return a reply as JSON, with the cost that LiteLLM knows."""
    value = dict(reply.model_dump(exclude_none=True))
    hidden = getattr(reply, "_hidden_params", None) or {}
    cost = hidden.get("response_cost") if isinstance(hidden, Mapping) else None
    return {**value, "response_cost": cost} if cost else value
