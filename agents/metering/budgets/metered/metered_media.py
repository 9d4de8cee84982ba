"""Sound and images behind the gate: the only callers of `agents.llm.media_api`'s requests."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from agents.llm import media_api, media_prices, tokens
from agents.llm.media_models import Description, GeneratedImage, MediaModel, MediaUsage, Upload

from .. import gate, pricing
from ..measures import MILLISECONDS, Estimate, Meter
from ..payers import Payer

CHARACTERS_A_SECOND = 15  # of speech
# What models that bill tokens count for sound: input, and a transcript of it.
INPUT_A_SECOND = 10
OUTPUT_A_SECOND = 5
IMAGE_OUTPUT_TOKENS = 4_200  # of the largest usual size


async def transcribe(
    service: MediaModel, sound: Upload, *, seconds: float, language: str = ""
) -> dict[str, Any]:
    """Return the reply to a recording of this length."""

    def estimate() -> Estimate:
        usage = {"input_tokens": round(seconds * INPUT_A_SECOND)}
        usage["output_tokens"] = round(seconds * OUTPUT_A_SECOND)
        expected = media_prices.transcription_usage(service.model, {"usage": usage}, seconds)
        return _estimate(service, expected)

    async with _call(service, estimate) as meter:
        reply = await media_api.transcribe(service, sound, language=language)
        used = media_prices.transcription_usage(service.model, reply, seconds)
        _set(meter, media_api.with_reported_cost(used, reply))
        return reply


async def speak(
    service: MediaModel, text: str, *, voice: str, payer: Payer
) -> AsyncIterator[bytes]:
    """Yield an MP3 of the text as it arrives."""
    expected = media_prices.speech_usage(
        service.model, len(text), len(text) / CHARACTERS_A_SECOND
    )
    async with _call(service, lambda: _estimate(service, expected), payer) as meter:
        _set(meter, MediaUsage(model=service.model, cost=0.0))  # a failed request is free
        async for data in media_api.speak(service, text, voice=voice):
            _set(meter, expected)
            yield data


async def generate_image(service: MediaModel, prompt: str, *, size: str) -> GeneratedImage:
    """Return an image of the prompt."""

    def estimate() -> Estimate:
        usage = {"input_tokens": tokens.count(prompt), "output_tokens": IMAGE_OUTPUT_TOKENS}
        return _estimate(service, media_prices.image_usage(service.model, usage, prompt))

    async with _call(service, estimate) as meter:
        generated = await media_api.generate_image(service, prompt, size=size)
        _set(meter, generated.usage)
        return generated


async def describe_image(
    service: MediaModel, image: bytes, mime_type: str, *, question: str, max_tokens: int = 800
) -> Description:
    """Return what a model that sees says about an image."""

    def estimate() -> Estimate:
        prompt_tokens = tokens.count(question) + pricing.IMAGE_TOKENS
        own_price = pricing.configured_price(service.model)
        return pricing.estimate_tokens(service.model, prompt_tokens, max_tokens, own_price)

    async with _call(service, estimate) as meter:
        description = await media_api.describe_image(
            service, image, mime_type, question=question, max_tokens=max_tokens
        )
        _set(meter, description.usage)
        return description


def _call(
    service: MediaModel, estimator: gate.Estimator, payer: Payer | None = None
) -> AbstractAsyncContextManager[Meter]:
    return gate.call(estimator, model=service.model, payer=payer)


def _estimate(service: MediaModel, expected: MediaUsage) -> Estimate:
    """Return what is reserved: nothing is certain before the request has succeeded."""
    cost = expected.cost
    if cost is None and (own := pricing.configured_price(service.model)) is not None:
        cost = expected.prompt_tokens * own.input + expected.completion_tokens * own.output
    return Estimate(
        tokens=expected.prompt_tokens + expected.completion_tokens,
        cost=None if cost is None else pricing.to_micros(cost),
        seconds=pricing.MODEL_SECONDS * MILLISECONDS,
    )


def _set(meter: Meter, used: MediaUsage) -> None:
    meter.tokens = used.prompt_tokens + used.completion_tokens
    meter.cost = pricing.to_micros(used.cost or 0.0)
    meter.is_reported = True
