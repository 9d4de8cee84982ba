"""The index on SQLite: FTS5, which stems Latin words itself."""

import json
from collections.abc import Collection, Sequence

from django.db import connection

from agents.models import Chunk

from .index import Groups, Scores, WordHits, rarest
from .tokenizer import index_terms, is_single_cjk, to_phrase

# Passages; making the index of more again would keep other writers waiting for too long.
MAX_REBUILT = 20_000
MERGE_PAGES = 2_000
MAX_MERGES = 10_000


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


def search(groups: Groups, limit: int, collections: Collection[int]) -> WordHits:
    expressions: list[str] = []
    for group in groups:
        # Quoted, so that a term isn't an operator. A single character is the start of a pair.
        terms = [f'"{to_phrase(t)}"{" *" if is_single_cjk(t) else ""}' for t in group]
        expressions.append(f"({' OR '.join(terms)})")
    # How many passages match each expression, and how many there are.
    count = "SELECT count(*) FROM agents_chunk_index WHERE agents_chunk_index MATCH %s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT ({count})" + f", ({count})" * (len(expressions) - 1), expressions
        )
        counts = list(cursor.fetchone())
        cursor.execute("SELECT count(*) FROM agents_chunk")
        [total] = cursor.fetchone()
    every = _matches(" AND ".join(expressions), limit // 2, collections)
    rare = [expressions[group] for group in rarest(counts, total)]
    some = _matches(" OR ".join(rare), limit, collections) if rare else {}
    return WordHits(scores=every | some, counts=counts, total=total)


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


def drop_deleted_words() -> bool:
    """Rewrite the index without the words of deleted passages, which it only marks as such.

    Return False if some may be left. Merging its parts keeps marked words if SQLite has left
    a level of the index empty, so the index is made again while that takes a few seconds.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM agents_chunk")
        [passages] = cursor.fetchone()
        if passages <= MAX_REBUILT:
            cursor.execute(
                "INSERT INTO agents_chunk_index (agents_chunk_index) VALUES ('rebuild')"
            )
            return True
    _merge()
    return False


def _merge() -> None:
    """Merge in small steps, so that others can write in between.

    A step without work changes nothing but its own row.
    """
    steps = [-MERGE_PAGES, *[MERGE_PAGES] * MAX_MERGES]
    with connection.cursor() as cursor:
        for pages in steps:
            previous_changes = connection.connection.total_changes
            cursor.execute(
                "INSERT INTO agents_chunk_index (agents_chunk_index, rank)"
                " VALUES ('merge', %s)",
                [pages],
            )
            if connection.connection.total_changes - previous_changes < 2:
                break
