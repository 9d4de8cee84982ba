"""Vectors of texts, from the model with which the installation searches by meaning."""

import asyncio
import base64
from array import array

from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.engine.errors import AgentError, QuotaExceeded
from agents.knowledge import embeddings
from agents.llm import embedding_batches
from agents.metering.budgets import Payer, paying
from agents.web.api_errors import ApiError

from ..calls import Caller
from . import schemas
from .access import caller_of
from .schemas import Embeddings

MAX_TEXTS = 512
MAX_TEXT_CHARS = 40_000
MAX_CHARS = 1_000_000
SECONDS = 120.0


@require_POST
async def create(request: HttpRequest) -> JsonResponse:
    """Return a vector for each text."""
    caller = caller_of(request)
    body = await schemas.read(request, Embeddings)
    texts = [body.input] if isinstance(body.input, str) else body.input
    model = embeddings.configured_model()
    _check(body, texts, model)
    try:
        async with asyncio.timeout(SECONDS):
            vectors = await asyncio.to_thread(_embed, caller, texts)
    except (embeddings.EmbeddingUnavailable, TimeoutError) as reason:
        if isinstance(reason.__cause__, QuotaExceeded):
            raise ApiError(429, str(reason), "usage_limit_reached") from reason
        sentence = str(reason) or _("The embedding model didn’t respond in time.")
        raise ApiError(503, sentence, "model_unavailable") from reason
    except AgentError as reason:
        raise ApiError(502, str(reason), "model_error") from reason
    as_text = body.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _base64(vector) if as_text else [float(x) for x in vector],
        }
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(map(embedding_batches.estimate, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JsonResponse({"object": "list", "data": data, "model": model, "usage": usage})


def _check(body: Embeddings, texts: list[str], model: str) -> None:
    if model == embeddings.OFF:
        raise ApiError(404, _("Search by meaning is turned off here."), "model_not_found")
    if body.dimensions is not None:
        sentence = _("The number of dimensions can’t be chosen. Leave it out.")
        raise ApiError(400, sentence, "unsupported_parameter", param="dimensions")
    if len(texts) > MAX_TEXTS:
        sentence = _("A request can have up to %(most)d texts.") % {"most": MAX_TEXTS}
        raise ApiError(400, sentence, "too_many_texts", param="input")
    if not all(text.strip() for text in texts):
        raise ApiError(400, _("A text is empty."), "empty_text", param="input")
    is_long = any(len(text) > MAX_TEXT_CHARS for text in texts)
    if is_long or sum(map(len, texts)) > MAX_CHARS:
        sentence = _("A text can have up to %(most)s characters, and all together %(all)s.")
        limits = {"most": f"{MAX_TEXT_CHARS:,}", "all": f"{MAX_CHARS:,}"}
        raise ApiError(400, sentence % limits, "text_too_long", param="input")


def _embed(caller: Caller, texts: list[str]) -> embeddings.Vectors:
    with paying(Payer(user=caller.user.pk, key=caller.key.pk)):
        return embeddings.embed(texts)


def _base64(vector: embeddings.Vector) -> str:
    return base64.b64encode(array("f", vector).tobytes()).decode()
