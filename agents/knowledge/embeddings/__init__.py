"""Vectors of texts: from the local model by default, or from one at a provider.

`local` needs no network; `demo` is for tests; `off` leaves search to full text.
"""

from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings

from agents.db.database import Priority, PriorityExecutor
from agents.db.installation import configured
from agents.engine.errors import AgentError
from agents.llm.litellm_model import EmbeddingClient
from agents.metering.budgets import metered_clients

from .errors import EmbeddingUnavailable
from .queries import QUERIES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

Kind = Literal["passage", "query"]

LOCAL = "local"
DEMO = "demo"
OFF = "off"
# Larger ones aren't faster, and a question would wait longer for its turn.
BATCH = 8
LOCAL_SECONDS = 60.0
REMOTE_SECONDS = {"query": 10.0, "passage": 60.0}
# E5 models are trained with these words before the text.
PREFIXES = {"query": "query: ", "passage": "passage: "}

# One thread: the model uses one core, and questions go before documents.
WORKER = PriorityExecutor("embedding")


def configured_model() -> str:
    """Return the model that new indexes use, or `off`."""
    model: str = settings.ENVIRONMENT.embedding_model
    return model


def embed(texts: list[str], kind: Kind = "passage", *, model: str = "") -> "Vectors":
    """Return a normalized vector for each text, by default from the configured model.

    Raises EmbeddingUnavailable. It blocks: call it from a thread that may wait.
    """
    name = model or configured_model()
    if kind == "passage" or name in {OFF, DEMO} or not texts:
        return _embed(texts, kind, name)
    is_remote = name != LOCAL
    key = f"{name} {settings.ENVIRONMENT.embedding_url}" if is_remote else name
    return QUERIES.embed(texts, key, lambda new: _embed(new, kind, name), joins=is_remote)


def _embed(texts: list[str], kind: Kind, model: str) -> "Vectors":
    if model == OFF:
        raise EmbeddingUnavailable("Search by meaning is switched off.")
    if model == LOCAL:
        return _embed_locally(texts, kind)
    if model == DEMO:
        from .demo_model import DemoEmbedding

        return DemoEmbedding().embed(texts)
    import numpy as np

    environment = settings.ENVIRONMENT
    api_key = environment.embedding_key
    client = EmbeddingClient(
        model=model,
        base_url=environment.embedding_url or None,
        api_key=api_key.get_secret_value() if api_key else None,
        retries=configured.MODEL_RETRIES.value,
    )
    prefix = PREFIXES[kind] if "e5" in model.lower() else ""
    try:
        prefixed = [prefix + text for text in texts]
        rows = metered_clients.embed(client, prefixed, REMOTE_SECONDS[kind])
    except AgentError as error:
        raise EmbeddingUnavailable(str(error)) from error
    vectors = np.asarray(rows, np.float32).reshape(len(texts), -1)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-9)


def dimension(model: str) -> int:
    """Return the length of a model's vectors; one at a provider is asked for one."""
    return int(embed(["length"], model=model).shape[1])


def _embed_locally(texts: list[str], kind: Kind) -> "Vectors":
    import numpy as np

    urgency = Priority.FIRST if kind == "query" else Priority.LATER
    # Texts of about the same length, because the shorter ones in a batch are padded.
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors = np.zeros((len(texts), _local_dimension()), np.float32)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        future = WORKER.put(urgency, _run_local, [texts[index] for index in batch])
        try:
            vectors[batch] = future.result(timeout=LOCAL_SECONDS)
        except FutureTimeout:
            future.cancel()
            raise EmbeddingUnavailable("The local embedding model is busy.") from None
    return vectors


def _run_local(texts: list[str]) -> "Vectors":
    return _local().embed(texts)


@cache
def _local() -> Any:
    from .local_model import LocalModel

    return LocalModel()


def _local_dimension() -> int:
    from .local_model import DIMENSION

    return DIMENSION


__all__ = [
    "DEMO",
    "LOCAL",
    "OFF",
    "EmbeddingUnavailable",
    "configured_model",
    "dimension",
    "embed",
]
