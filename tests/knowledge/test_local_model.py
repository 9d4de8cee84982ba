"""The local embedding model in its child process."""

import math
import time
from concurrent.futures import Future
from operator import mul
from pathlib import Path

import numpy as np
import pytest

from agents.db.database import Priority, PriorityExecutor
from agents.db.periodic import jobs
from agents.knowledge import embeddings
from agents.knowledge.embeddings import EmbeddingUnavailable, local_model
from agents.knowledge.embeddings.encoder_process import Encoder
from agents.knowledge.embeddings.vectors import from_half_floats, normalized, to_half_floats
from agents.tools import sandbox
from agents.tools.sandbox import child as sandbox_child

TEXTS = [
    "How do I print a document?",
    "文書を印刷するには？",
    "The cat sleeps on the sofa.",
    "",
    "A line of a long document. " * 300,
]


def embed(texts, kind="passage"):
    return embeddings.embed(texts, kind, model="local")


def similarity(one, other):
    return sum(map(mul, one, other))


@pytest.mark.slow
def test_the_local_model_relates_meaning_across_languages():
    one, same, other = embed(TEXTS[:3])

    assert len(one) == local_model.DIMENSION
    assert math.hypot(*one) == pytest.approx(1, abs=1e-3)
    assert similarity(one, same) > 0.6 > 0.3 > similarity(one, other)


@pytest.mark.slow
def test_vectors_are_those_of_the_model_in_this_process():
    encoder = Encoder(local_model.model_path())
    order = sorted(TEXTS, key=len)
    batch = encoder.embed([text[: local_model.MAX_CHARS] for text in order])

    vectors = embed(TEXTS)

    expected = dict(zip(order, batch, strict=True))
    assert [vector.tobytes() for vector in vectors] == [expected[t].tobytes() for t in TEXTS]


@pytest.mark.slow
def test_half_of_a_character_is_embedded_like_a_question_mark():
    assert embed(["heron \ud83d"], "query") == embed(["heron ?"])


@pytest.mark.slow
@pytest.mark.skipif(not sandbox_child.has_seccomp(), reason="the system can't refuse sockets")
def test_the_child_is_confined():
    embed(["heron"])

    status = Path(f"/proc/{local_model.ENCODER.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert int(fields["CapEff"], 16) == 0


def test_vectors_are_saved_as_numpy_saves_them():
    vector = normalized([math.sin(number) ** 5 for number in range(512)])

    blob = to_half_floats(vector)

    assert blob == np.asarray(vector, np.float16).tobytes()
    assert list(from_half_floats(blob)) == np.frombuffer(blob, np.float16).tolist()


def test_questions_go_before_documents(monkeypatch):
    order = []
    worker = PriorityExecutor("test")
    blocker = Future()
    monkeypatch.setattr(local_model, "WORKER", worker)
    monkeypatch.setattr(local_model, "_embed_batch", lambda texts: order.append(texts) or texts)
    worker.put(Priority.LATER, blocker.result)
    worker.put(Priority.LATER, local_model._embed_batch, ["a document"])
    monkeypatch.setattr(worker, "put", putting := _Releasing(worker.put, blocker))

    embed(["a question"], "query")
    worker.shutdown()

    assert putting.urgency == Priority.FIRST
    assert order == [["a question"], ["a document"]]


class _Releasing:
    """Puts a call into a queue, then lets the one before it end."""

    def __init__(self, put, blocker):
        self.put, self.blocker, self.urgency = put, blocker, None

    def __call__(self, urgency, *call):
        self.urgency = urgency
        future = self.put(urgency, *call)
        self.blocker.set_result(None)
        return future


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (TimeoutError(), "didn't respond within 30 s"),
        (sandbox.WorkerFailed("ended with -9: ''"), "failed: ended with -9"),
        (OSError(12, "Cannot allocate memory"), "failed: .*Cannot allocate memory"),
    ],
)
def test_a_child_that_fails_is_a_sentence(monkeypatch, failure, sentence):
    def fail(request, grant):
        raise failure

    monkeypatch.setattr(local_model.ENCODER, "ask", fail)

    with pytest.raises(EmbeddingUnavailable, match=sentence):
        embed(["heron"])


def test_without_its_package_the_model_is_not_started(monkeypatch):
    local_model.model_path.cache_clear()
    monkeypatch.setattr(local_model, "PACKAGE", "no_such_package")

    with pytest.raises(EmbeddingUnavailable, match="isn't installed"):
        embed(["heron"])

    assert local_model.ENCODER.pid is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("query", local_model.IDLE_SECONDS),
        ("passage", local_model.IDLE_SECONDS_AFTER_DOCUMENTS),
    ],
)
def test_the_child_ends_when_it_had_nothing_to_do(monkeypatch, kind, seconds):
    monkeypatch.setattr(local_model, "_asked_at", -local_model.IDLE_SECONDS)
    embed(["heron"], kind)
    job = jobs["idle embedding model"]
    now = time.monotonic()

    for later, is_running in ((seconds / 2, True), (seconds + 1, False)):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        job.work()
        assert (local_model.ENCODER.pid is not None) is is_running
