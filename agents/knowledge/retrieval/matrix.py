"""Vectors of an index in memory: exact search with numpy, restricted to documents in scope.

Each process has its own copy of the active index, in blocks. Before a search, new rows are
read. Which documents are in scope is read from the database for every search, so that rights
and deletions count at once. If a hit was replaced since, the search reads the vectors again.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from threading import Lock

import numpy as np
from django.db.models import F, QuerySet
from numpy.typing import NDArray

from agents.models import ChunkVector, Document, EmbeddingIndex

from ..embeddings import Vectors

BLOCK = 8_192
# Vectors are saved and held as 16-bit floats, and compared as 32-bit ones: so many at a time
# fit into the cache of the processor.
AT_ONCE = 1_024
# Above this, windows stay in the database and are only compared for the best passages.
MAX_BYTES = 320_000_000
# How often all rows are counted. Others are only noticed by a higher id, and a transaction can
# commit lower ids after one with higher ids.
COUNT_SECONDS = 30.0

Similarities = dict[int, float]  # by the passage's id


@dataclass(slots=True)
class Block:
    ids: NDArray[np.int64]
    chunks: NDArray[np.int64]
    documents: NDArray[np.int64]
    vectors: NDArray[np.float16]

    def selected(self, mask: NDArray[np.bool_]) -> "Block":
        return Block(
            self.ids[mask], self.chunks[mask], self.documents[mask], self.vectors[mask]
        )

    def similarities(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine similarity of each row to each query.

        Not with `@`: its threads wait for each other, which takes ten times as long on a busy
        machine.
        """
        similarities = np.empty((len(self.ids), len(queries)), np.float32)
        buffer = np.empty((AT_ONCE, self.vectors.shape[1]), np.float32)
        for start in range(0, len(self.ids), AT_ONCE):
            rows = self.vectors[start : start + AT_ONCE]
            floats = buffer[: len(rows)]
            np.copyto(floats, rows)
            for column, query in enumerate(queries):
                products = np.einsum("ij,j->i", floats, query)
                similarities[start : start + AT_ONCE, column] = products
        return similarities


@dataclass(slots=True)
class VectorMatrix:
    """The vectors of one index."""

    index: int
    dimension: int
    blocks: list[Block] = field(default_factory=list)
    has_windows: bool = True
    count: int = 0
    newest: int = 0
    counted_at: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def search(
        self,
        queries: Vectors,
        collections: Collection[int],
        limit: int,
        extra: Collection[int] = (),
    ) -> Similarities:
        """Return the best passages in these collections for each query, and the extra ones.

        The best of a passage's rows and of the queries counts.
        """
        in_scope = Document.objects.filter(collection__in=collections)
        documents = np.fromiter(in_scope.values_list("pk", flat=True), np.int64)
        query_rows = np.asarray(queries, np.float32)
        chunks: list[NDArray[np.int64]] = []
        scores: list[NDArray[np.float32]] = []
        for block in list(self.blocks):
            mask = np.isin(block.documents, documents)
            if mask.any():
                chunks.append(block.chunks[mask])
                scores.append(block.similarities(query_rows)[mask])
        if not chunks:
            return {}
        return _best(np.concatenate(chunks), np.concatenate(scores), limit, extra)

    def refresh(self, *, recounts: bool = False) -> None:
        """Read what is new; `recounts` also looks for deleted rows, which is slower."""
        with self.lock:
            newest = self._rows().order_by("-pk").values_list("pk", flat=True).first() or 0
            recounts = recounts or time.monotonic() - self.counted_at > COUNT_SECONDS
            if newest == self.newest and not recounts:
                return
            recounts = recounts or newest < self.newest
            if recounts or not self.count:
                size = self._rows().count() * self.dimension * np.float16().itemsize
                if self.has_windows and size > MAX_BYTES:
                    self.has_windows = False
                    self._clear()
            self._read_new(newest)
            if not recounts:
                return
            expected = self._rows().filter(pk__lte=newest).count()
            if self.count != expected:
                present_ids = self._rows().values_list("pk", flat=True).iterator()
                present = np.fromiter(present_ids, np.int64)
                self.blocks = [
                    block.selected(np.isin(block.ids, present)) for block in self.blocks
                ]
                self.count = sum(len(block.ids) for block in self.blocks)
            if self.count < expected:
                self._clear()
                self._read_new(newest)
            self.counted_at = time.monotonic()

    def _clear(self) -> None:
        self.blocks = []
        self.count = 0
        self.newest = 0

    def _rows(self) -> QuerySet[ChunkVector]:
        rows = ChunkVector.objects.filter(index=self.index)
        return rows if self.has_windows else rows.filter(window=0)

    def _read_new(self, newest: int) -> None:
        rows = self._rows().filter(pk__gt=self.newest, pk__lte=newest).order_by("pk")
        rows = rows.annotate(document=F("chunk__document"))
        values = rows.values_list("pk", "chunk_id", "document", "vector")
        iterator = values.iterator(chunk_size=2_000)
        while batch := list(islice(iterator, BLOCK)):
            ids, chunks, documents, blobs = zip(*batch, strict=True)
            vectors = np.frombuffer(b"".join(blobs), np.float16)
            self.blocks.append(
                Block(
                    np.array(ids, np.int64),
                    np.array(chunks, np.int64),
                    np.array(documents, np.int64),
                    vectors.reshape(len(batch), self.dimension),
                )
            )
            self.count += len(batch)
        self.newest = newest
        # Join the last blocks, because documents arrive a few passages at a time.
        while len(self.blocks) > 1 and sum(len(b.ids) for b in self.blocks[-2:]) <= BLOCK:
            last = self.blocks[-2:]
            self.blocks[-2:] = [
                Block(
                    *(
                        np.concatenate([getattr(block, name) for block in last])
                        for name in ("ids", "chunks", "documents", "vectors")
                    )
                )
            ]


def _best(
    chunks: NDArray[np.int64],
    scores: NDArray[np.float32],
    limit: int,
    extra: Collection[int],
) -> Similarities:
    selected = set(extra)
    for column in scores.T:
        # Several rows can belong to a passage, so more are sorted until there are enough.
        count = limit
        while True:
            count = min(len(column), count * 4)
            top = np.argpartition(-column, count - 1)[:count]
            ranked = chunks[top[np.argsort(-column[top])]]
            nearest = list(dict.fromkeys(ranked.tolist()))[:limit]
            if len(nearest) == limit or count == len(column):
                break
        selected.update(nearest)
    mask = np.isin(chunks, np.fromiter(selected, np.int64))
    best: Similarities = {}
    pairs = zip(chunks[mask].tolist(), scores[mask].max(axis=1).tolist(), strict=True)
    for chunk, score in pairs:
        best[chunk] = max(best.get(chunk, -1.0), score)
    return best


_matrices: dict[tuple[int, datetime], VectorMatrix] = {}
_lock = Lock()


def for_index(index: EmbeddingIndex) -> VectorMatrix:
    """Return the matrix of the active index; others are dropped.

    A restored database can have another index with the same id, but not of the same moment.
    """
    key = (index.pk, index.created_at)
    with _lock:
        if key not in _matrices:
            _matrices.clear()
            _matrices[key] = VectorMatrix(index.pk, index.dimension)
        return _matrices[key]
