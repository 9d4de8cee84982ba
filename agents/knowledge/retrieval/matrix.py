"""Vectors of an index in memory: exact search with numpy, restricted to a scope.

Each process has its own copy of the active index, in blocks. Before a search it is compared
with the database by two numbers; then only new rows are read and deleted ones dropped.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

import numpy as np
from django.db.models import Count, F, Max, QuerySet
from numpy.typing import NDArray

from agents.models import ChunkVector, EmbeddingIndex

BLOCK = 8_192
# Above this, windows stay in the database and are only compared for the best passages. 100,000
# vectors of 512 dimensions take 200 MB.
MAX_ROWS = 100_000


@dataclass(slots=True)
class Block:
    ids: NDArray[np.int64]
    chunks: NDArray[np.int64]
    collections: NDArray[np.int64]
    vectors: NDArray[np.float32]

    def kept(self, mask: NDArray[np.bool_]) -> "Block":
        return Block(
            self.ids[mask], self.chunks[mask], self.collections[mask], self.vectors[mask]
        )


@dataclass(slots=True)
class VectorMatrix:
    """The vectors of one index."""

    index: int
    dimension: int
    blocks: list[Block] = field(default_factory=list)
    has_windows: bool = True
    count: int = 0
    newest: int = 0
    lock: Lock = field(default_factory=Lock)

    def search(
        self, query: NDArray[np.float32], collections: Collection[int], limit: int
    ) -> dict[int, float]:
        """Return the best passages in these collections with their cosine similarity."""
        wanted = np.fromiter(collections, np.int64)
        chunks, scores = [], []
        for block in list(self.blocks):
            mask = np.isin(block.collections, wanted)
            if mask.any():
                inside = block if mask.all() else block.kept(mask)
                chunks.append(inside.chunks)
                scores.append(inside.vectors @ query)
        if not chunks:
            return {}
        return _best(np.concatenate(chunks), np.concatenate(scores), limit)

    def refresh(self) -> None:
        """Read what changed since the last search."""
        with self.lock:
            state = self._rows().aggregate(count=Count("pk"), newest=Max("pk"))
            newest = state["newest"] or 0
            if (state["count"], newest) == (self.count, self.newest):
                return
            if self.has_windows and state["count"] > MAX_ROWS:
                self.has_windows, self.blocks, self.count, self.newest = False, [], 0, 0
                state = self._rows().aggregate(count=Count("pk"), newest=Max("pk"))
                newest = state["newest"] or 0
            self._read_new(newest)
            if self.count != state["count"]:
                self._drop_deleted()
            if self.count < state["count"]:
                # A transaction with lower ids was committed after one with higher ids.
                self.blocks, self.count, self.newest = [], 0, 0
                self._read_new(newest)

    def _rows(self) -> QuerySet[ChunkVector]:
        rows = ChunkVector.objects.filter(index=self.index)
        return rows if self.has_windows else rows.filter(window=0)

    def _read_new(self, newest: int) -> None:
        rows = self._rows().filter(pk__gt=self.newest, pk__lte=newest).order_by("pk")
        rows = rows.annotate(collection=F("chunk__document__collection"))
        values = rows.values_list("pk", "chunk_id", "collection", "vector")
        for block in self._read_blocks(values):
            self.blocks.append(block)
            self.count += len(block.ids)
        self.newest = newest
        self._merge_small()

    def _read_blocks(self, rows: QuerySet) -> Iterator[Block]:
        batch: list[tuple[int, int, int, bytes]] = []
        for row in rows.iterator(chunk_size=2_000):
            batch.append(row)
            if len(batch) == BLOCK:
                yield self._block(batch)
                batch = []
        if batch:
            yield self._block(batch)

    def _block(self, rows: list[tuple[int, int, int, bytes]]) -> Block:
        ids, chunks, collections, blobs = zip(*rows, strict=True)
        joined = np.frombuffer(b"".join(map(bytes, blobs)), np.float16)
        return Block(
            np.array(ids, np.int64),
            np.array(chunks, np.int64),
            np.array(collections, np.int64),
            joined.reshape(len(rows), self.dimension).astype(np.float32),
        )

    def _merge_small(self) -> None:
        """Join the last blocks, because documents arrive a few passages at a time."""
        while len(self.blocks) > 1 and sum(len(b.ids) for b in self.blocks[-2:]) <= BLOCK:
            last = self.blocks[-2:]
            self.blocks[-2:] = [
                Block(
                    *(
                        np.concatenate([getattr(block, name) for block in last])
                        for name in ("ids", "chunks", "collections", "vectors")
                    )
                )
            ]

    def _drop_deleted(self) -> None:
        there = np.fromiter(self._rows().values_list("pk", flat=True).iterator(), np.int64)
        self.blocks = [block.kept(np.isin(block.ids, there)) for block in self.blocks]
        self.count = sum(len(block.ids) for block in self.blocks)


def _best(
    chunks: NDArray[np.int64], scores: NDArray[np.float32], limit: int
) -> dict[int, float]:
    """Return the best score of each passage; several rows can belong to one."""
    count = min(len(scores), limit * 5)
    top = np.argpartition(-scores, count - 1)[:count]
    found: dict[int, float] = {}
    for at in top[np.argsort(-scores[top])]:
        found.setdefault(int(chunks[at]), float(scores[at]))
        if len(found) == limit:
            break
    return found


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
