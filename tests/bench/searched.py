"""Fills a library with passages, and measures searches in it: the child of the search bench."""

import json
import os
import random
import re
import resource
import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

import numpy as np  # noqa: E402
import psutil  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from agents.knowledge import default_collection, evaluation, scope  # noqa: E402
from agents.knowledge.retrieval import find, full_text, vector_index  # noqa: E402
from agents.knowledge.scope import Scope  # noqa: E402
from agents.models import Chunk, Collection, Document, EmbeddingIndex  # noqa: E402
from tests.bench.rounds import percentile  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PASSAGES = 50  # in a document
CHARS = 700  # in a passage, as in 441 manual pages; these had two windows each
VECTORS = 3
DOCUMENTS_AT_ONCE = 20
WORD = re.compile(r"[A-Za-z][A-Za-z-]+|[^\s。、]{2,12}[。、]?")


def main(documents: int) -> dict:
    """Return seconds to fill and milliseconds of questions."""
    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    fill(documents)
    filled = time.perf_counter() - began
    everything = scope.everything()
    first, _ = cost("the first question loads the model and the vectors", everything)
    asked = [cost(question, everything) for question in questions()]
    part = scope.for_collection(Collection.objects.order_by("pk").first().pk)
    partly = [cost(question, part) for question in questions()]
    return {
        "passages": Chunk.objects.count(),
        "filled s": round(filled, 1),
        "first ms": round(first),
        "p50 ms": round(percentile([passed for passed, _ in asked], 0.5)),
        "p95 ms": round(percentile([passed for passed, _ in asked], 0.95)),
        "cpu p95 ms": round(percentile([cpu for _, cpu in asked], 0.95)),
        "one collection p95 ms": round(percentile([passed for passed, _ in partly], 0.95)),
        "after a change ms": round(after_change(everything)),
        "memory MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def questions() -> list[str]:
    found = evaluation.read_questions(evaluation.OWN_SET / "questions.jsonl")
    return [question.text for question in found]


def cost(question: str, where: Scope) -> tuple[float, float]:
    """Return milliseconds, and those of the processors: ours and the database's."""
    began, used = time.perf_counter(), _cpu_seconds()
    find(question, 10, scope=where)
    return (time.perf_counter() - began) * 1000, (_cpu_seconds() - used) * 1000


def _cpu_seconds() -> float:
    backend = _backend()
    own = time.process_time()
    return own if backend is None else own + sum(backend.cpu_times()[:2])


@cache
def _backend() -> psutil.Process | None:
    """Return the process of the database that serves us."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return psutil.Process(cursor.fetchone()[0])


def after_change(where: Scope) -> float:
    """Return how long a question takes after a document was added and another deleted."""
    chance = random.Random(2)
    Document.objects.order_by("pk").first().delete()
    add_documents(vector_index.ensure(), default_collection(), [0], chance, vocabulary())
    return cost("a question after a change", where)[0]


def fill(documents: int) -> None:
    """Add documents of words from the documentation, with random vectors.

    An exact search takes the same time with any vectors. These words are more frequent in
    passages than those of real questions, so that full text has more to rank.
    """
    chance, words = random.Random(1), vocabulary()
    index = vector_index.ensure()
    shelves = [default_collection(), Collection.objects.create(name="More", is_open=True)]
    numbers = iter(range(documents))
    while batch := list(islice(numbers, DOCUMENTS_AT_ONCE)):
        shelf = shelves[batch[0] // DOCUMENTS_AT_ONCE % len(shelves)]
        add_documents(index, shelf, batch, chance, words)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


@transaction.atomic
def add_documents(
    index: EmbeddingIndex,
    shelf: Collection,
    numbers: list[int],
    chance: random.Random,
    words: dict[str, list[str]],
) -> None:
    documents = Document.objects.bulk_create(
        Document(
            collection=shelf,
            title=text(words[language(number)], 40, chance),
            source=f"{time.time_ns()}-{number}.md",
            status=Document.Status.READY,
            language=language(number),
        )
        for number in numbers
    )
    chunks = Chunk.objects.bulk_create(
        Chunk(
            document=document,
            ordinal=ordinal,
            heading=text(words[document.language], 60, chance),
            text=text(words[document.language], CHARS, chance),
        )
        for document, ordinal in product(documents, range(1, PASSAGES + 1))
    )
    full_text.upsert(chunks)
    vectors = iter(random_vectors(len(chunks) * VECTORS, index.dimension, numbers[0]))
    blobs = [[next(vectors).tobytes() for _ in range(VECTORS)] for _ in chunks]
    vector_index.save(index, [chunk.pk for chunk in chunks], blobs)


def random_vectors(count: int, dimension: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, dimension), np.float32)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def language(number: int) -> str:
    return "ja" if number % 3 == 0 else "en"


def text(words: list[str], chars: int, chance: random.Random) -> str:
    separator = " " if words[0].isascii() else ""
    size, chosen = 0, []
    while size < chars:
        chosen.append(chance.choice(words))
        size += len(chosen[-1]) + 1
    return separator.join(chosen)


def vocabulary() -> dict[str, list[str]]:
    """Return the words of the documentation as often as they occur, by language."""
    found: dict[str, list[str]] = {"en": [], "ja": []}
    for word in _documentation():
        found["en" if word.isascii() else "ja"].append(word)
    return found


def _documentation() -> Iterator[str]:
    paths = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("README*.md")]
    for path in sorted([*paths, *(evaluation.OWN_SET / "documents").rglob("*.md")]):
        yield from WORD.findall(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
