"""Vectors of texts: from the local model by default, or from one at a provider.

`local` needs no network; `demo` is for tests; `off` leaves search to full text. The name of a
model of a connection has the connection in it, so that the old index can still be searched
while one of another model is built.
"""

from typing import Literal

from django.conf import settings

from agents.db.database import Priority
from agents.db.installation import configured, default_models
from agents.engine.errors import AgentError
from agents.llm.litellm_model import EmbeddingClient
from agents.metering.budgets.metered import metered_clients

from .. import connected_models
from . import local_model
from .errors import EmbeddingUnavailable
from .queries import QUERIES
from .vectors import Vector, Vectors, from_half_floats, normalized, to_half_floats

Kind = Literal["passage", "query"]

LOCAL = default_models.LOCAL
DEMO = "demo"
OFF = default_models.OFF
REMOTE_SECONDS = {"query": 10.0, "passage": 60.0}
# E5 models are trained with these words before the text.
PREFIXES = {"query": "query: ", "passage": "passage: "}


def configured_model() -> str:
    """Return the model that new indexes use, or `off`."""
    return default_models.EMBEDDING.model


def embed(texts: list[str], kind: Kind = "passage", *, model: str = "") -> Vectors:
    """Return a normalized vector for each text, by default from the configured model.

    Raises EmbeddingUnavailable. It blocks: call it from a thread that may wait.
    """
    name = model or configured_model()
    if kind == "passage" or name in {OFF, DEMO} or not texts:
        return _embed(texts, kind, name)
    is_remote = name != LOCAL
    key = f"{name} {settings.ENVIRONMENT.embedding_url}" if is_remote else name
    return QUERIES.embed(texts, key, lambda new: _embed(new, kind, name), joins=is_remote)


def _embed(texts: list[str], kind: Kind, model: str) -> Vectors:
    if model == OFF:
        raise EmbeddingUnavailable("Search by meaning is switched off.")
    if model == LOCAL:
        return local_model.embed(texts, Priority.FIRST if kind == "query" else Priority.LATER)
    if model == DEMO:
        from .demo_model import DemoEmbedding

        return DemoEmbedding().embed(texts)
    prefix = PREFIXES[kind] if "e5" in model.lower() else ""
    try:
        prefixed = [prefix + text for text in texts]
        rows = metered_clients.embed(_client(model), prefixed, REMOTE_SECONDS[kind])
    except AgentError as error:
        raise EmbeddingUnavailable(str(error)) from error
    if len(rows) != len(texts):
        raise EmbeddingUnavailable(
            f"The embedding model returned {len(rows)} vectors for {len(texts)} texts."
        )
    return [normalized(row) for row in rows]


def _client(model: str) -> EmbeddingClient:
    """Return the client of a model at a provider: of its connection, or the environment's."""
    retries = configured.MODEL_RETRIES.value
    if connected := default_models.parse(model):
        access = connected_models.find_settings(connected)
        return EmbeddingClient(
            model=access.model,
            base_url=access.base_url,
            api_key=access.api_key,
            options=access.litellm_options,
            secrets=access.secrets,
            retries=retries,
        )
    environment = settings.ENVIRONMENT
    api_key = environment.embedding_key
    return EmbeddingClient(
        model=model,
        base_url=environment.embedding_url or None,
        api_key=api_key.get_secret_value() if api_key else None,
        retries=retries,
    )


def dimension(model: str) -> int:
    """Return the length of a model's vectors; one at a provider is asked for one."""
    return len(embed(["length"], model=model)[0])


__all__ = [
    "DEMO",
    "LOCAL",
    "OFF",
    "EmbeddingUnavailable",
    "Vector",
    "Vectors",
    "configured_model",
    "dimension",
    "embed",
    "from_half_floats",
    "to_half_floats",
]
