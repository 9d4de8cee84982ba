"""Exact vector search inside PostgreSQL, where the pgvector extension was created.

It saves each process the copy of all vectors. The product never creates the extension and only
looks whether it is there: a build for another processor ends the whole server at the first
comparison. Vectors are in a column of `ChunkVector` that Django doesn't know, filled in the
background; until all have theirs, the copies in memory are searched. The search is
exact: there is no approximate index.
"""

import logging
import time
from collections.abc import Callable, Collection
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from agents.models import EmbeddingIndex

from ..embeddings import Vectors, from_half_floats

logger = logging.getLogger(__name__)

MIN_VERSION = (0, 7)  # the first with 16-bit floats
FILL_BATCH = 500
KNOWN_SECONDS = 60.0

STATE_SQL = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass('agents_chunkvector')
        AND attname = 'embedding' AND NOT attisdropped
    )
"""
# MAIN: beside the other columns of its row, because every search reads it.
PREPARE_SQL = """
SET LOCAL lock_timeout = '5s';
ALTER TABLE agents_chunkvector ADD COLUMN IF NOT EXISTS embedding halfvec;
ALTER TABLE agents_chunkvector ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX IF NOT EXISTS agents_chunkvector_no_embedding
ON agents_chunkvector (index_id) WHERE embedding IS NULL;
"""
MISSING_SQL = """
SELECT id, vector FROM agents_chunkvector WHERE index_id = %s AND embedding IS NULL LIMIT %s
"""
FILL_SQL = """
UPDATE agents_chunkvector AS saved SET embedding = read.vector::halfvec
FROM unnest(%s::bigint[], %s::text[]) AS read (id, vector) WHERE saved.id = read.id
"""
# Documents first, so that rights restrict what is compared.
SEARCH_SQL = """
SELECT saved.chunk_id FROM agents_chunkvector AS saved
JOIN agents_chunk AS chunk ON chunk.id = saved.chunk_id
JOIN agents_document AS document ON document.id = chunk.document_id
WHERE saved.index_id = %s AND document.collection_id = ANY(%s)
GROUP BY saved.chunk_id
ORDER BY min(saved.embedding <#> %s::halfvec), saved.chunk_id LIMIT %s
"""

_states: dict[str, tuple[float, bool, bool]] = {}
_lock = Lock()


def is_ready(index: EmbeddingIndex) -> bool:
    """Whether all vectors of this index are in the column."""
    return all(_state()) and not _missing(index, 1)


def prepare() -> None:
    """Add the column if the extension is there."""
    is_there, is_prepared = _state()
    if not is_there or is_prepared:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(PREPARE_SQL)
    forget()


def fill(index: EmbeddingIndex, is_over: Callable[[], bool] = lambda: False) -> None:
    """Copy saved vectors into the column."""
    if not all(_state()):
        return
    while not is_over() and (rows := _missing(index, FILL_BATCH)):
        with connection.cursor() as cursor:
            texts = [str(from_half_floats(blob).tolist()) for _, blob in rows]
            cursor.execute(FILL_SQL, [[pk for pk, _ in rows], texts])


def search(
    index: EmbeddingIndex, queries: Vectors, collections: Collection[int], limit: int
) -> set[int] | None:
    """Return the best passages for each query; None if the database can't compare them."""
    best: set[int] = set()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            for query in queries:
                text = str(query.tolist())
                cursor.execute(SEARCH_SQL, [index.pk, [*collections], text, limit])
                best.update(chunk for (chunk,) in cursor.fetchall())
    except DatabaseError as error:
        forget()
        logger.warning("Searching vectors in memory: %s", error)
        return None
    return best


def forget() -> None:
    """Look again whether the extension is there."""
    with _lock:
        _states.clear()


def _state() -> tuple[bool, bool]:
    """Return whether the extension can be used, and whether the column is there."""
    if connection.vendor != "postgresql" or not settings.ENVIRONMENT.pgvector:
        return False, False
    database = str(connection.settings_dict["NAME"])
    asked_at = time.monotonic()
    state = _states.get(database)
    if state and asked_at - state[0] < KNOWN_SECONDS:
        return state[1:]
    with connection.cursor() as cursor:
        cursor.execute(STATE_SQL)
        version, is_prepared = cursor.fetchone()
    is_usable = bool(version) and tuple(map(int, version.split(".")[:2])) >= MIN_VERSION
    with _lock:
        _states[database] = (asked_at, is_usable, is_prepared)
    return is_usable, is_prepared


def _missing(index: EmbeddingIndex, limit: int) -> list[tuple[int, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(MISSING_SQL, [index.pk, limit])
        return list(cursor.fetchall())
