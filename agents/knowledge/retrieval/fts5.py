"""The index on SQLite: FTS5, which stems Latin words itself."""

import json
from collections.abc import Collection, Sequence

from django.db import connection

from agents.models import Chunk

from .index import Scores
from .tokenizer import index_terms, is_single_cjk, to_phrase


def upsert(chunks: Sequence[Chunk]) -> None:
    rows = [
        (
            chunk.pk,
            index_terms(chunk.document.title),
            index_terms(chunk.heading),
            index_terms(chunk.text),
        )
        for chunk in chunks
    ]
    with connection.cursor() as cursor:
        # REPLACE, because `manage.py flush` reuses ids and doesn't clear the index.
        cursor.executemany(
            "INSERT OR REPLACE INTO agents_chunk_index (rowid, title, heading, terms)"
            " VALUES (%s, %s, %s, %s)",
            rows,
        )


def delete(chunks: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "DELETE FROM agents_chunk_index WHERE rowid = %s", [[chunk] for chunk in chunks]
        )


def search(
    terms: Sequence[str], limit: int, collections: Collection[int]
) -> tuple[Scores, Scores]:
    phrases = [_quote_term(term) for term in terms]
    every = _matches(" AND ".join(phrases), limit, collections)
    some = _matches(" OR ".join(phrases), limit, collections)
    return every, {chunk: score for chunk, score in some.items() if chunk not in every}


def _quote_term(term: str) -> str:
    """Quote a term, so that it isn't an operator.

    A single character matches as a prefix of a pair.
    """
    return f'"{to_phrase(term)}"{" *" if is_single_cjk(term) else ""}'


def _matches(expression: str, limit: int, collections: Collection[int]) -> Scores:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk.id, -rank FROM agents_chunk_index"
            " JOIN agents_chunk AS chunk ON chunk.id = agents_chunk_index.rowid"
            " JOIN agents_document AS document ON document.id = chunk.document_id"
            " WHERE agents_chunk_index MATCH %s AND rank MATCH 'bm25(2.0, 8.0, 1.0)'"
            " AND document.collection_id IN (SELECT value FROM json_each(%s))"
            " ORDER BY rank LIMIT %s",
            [expression, json.dumps([*collections]), limit],
        )
        return dict(cursor.fetchall())
