"""The index on PostgreSQL: vectors of words and positions, under a GIN index.

The index alone says which passages contain a word. Ranking them would read every vector, which
is slow; so each passage has a short one of the words in its headings or occurring more than
once. A word missing there occurs once.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count
from math import log

from django.db import connection

from agents.models import Chunk

from .index import Groups, WordHits, rarest
from .tokenizer import index_terms, is_single_cjk, to_phrase

LexemePositions = dict[str, list[str]]

# A vector's words have at most 2,046 bytes, so longer ones are split.
WORD = re.compile(r"[^\W_]{1,500}")

STEM_SQL = """
SELECT word, coalesce((ts_lexize('english_stem', word))[1], word)
FROM unnest(%s::text[]) AS word
"""
# UPDATE, because `manage.py flush` reuses ids and doesn't clear the index.
UPSERT_SQL = """
INSERT INTO agents_chunk_index (rowid, length, words, telling)
VALUES (%s, %s, %s::tsvector, %s::tsvector)
ON CONFLICT (rowid) DO UPDATE
SET length = excluded.length, words = excluded.words, telling = excluded.telling
"""
COUNT_SQL = """
SELECT at, count(*)
FROM unnest(%s::int[], %s::text[]) AS asked (at, term)
JOIN agents_chunk_index ON words @@ term::tsquery
GROUP BY at
"""
# A sample is enough for the usual length, and doesn't read the whole table.
SHELF_SQL = """
SELECT count(*), (
    SELECT avg(length)
    FROM (SELECT length FROM agents_chunk_index ORDER BY rowid LIMIT 1000) AS sample
) FROM agents_chunk_index
"""
# BM25 as in FTS5 (k1 = 1.2, b = 0.75). Weights are at most 1, so all are an eighth of those
# there: text (D) counts 1, title (B) 2 and heading (A) 8. `at` numbers the groups of words; of
# the alternatives in a group, the best one counts. Passages with every group are first. Queries
# come from `unnest`, because PostgreSQL would read the whole table for a constant one with a
# common word.
SEARCH_SQL = """
WITH asked AS (
    SELECT at, rarity, term::tsquery
    FROM unnest(%s::int[], %s::float[], %s::text[]) AS asked (at, rarity, term)
), hits AS MATERIALIZED (
    SELECT at, rarity, rowid, max(length) AS length,
        max(greatest(8 * ts_rank_cd('{0.125, 0, 0.25, 1}', telling, term), 1))::float AS said
    FROM asked JOIN agents_chunk_index ON words @@ term
    JOIN agents_chunk AS chunk ON chunk.id = rowid
    JOIN agents_document AS document ON document.id = chunk.document_id
    WHERE document.collection_id = ANY(%s)
    GROUP BY at, rarity, rowid
), complete AS MATERIALIZED (
    SELECT rowid FROM unnest(ARRAY[%s]) AS every
    JOIN agents_chunk_index ON words @@ every::tsquery
)
SELECT rowid, sum(rarity * said * 2.2 / (said + 1.2 * (0.25 + 0.75 * length / %s))) AS score
FROM hits GROUP BY rowid
ORDER BY rowid IN (SELECT rowid FROM complete) DESC, score DESC, rowid LIMIT %s
"""


def upsert(chunks: Sequence[Chunk]) -> None:
    stems = _stems(word for chunk in chunks for word, _ in _word_positions(chunk))
    with connection.cursor() as cursor:
        cursor.executemany(UPSERT_SQL, [_index_row(chunk, stems) for chunk in chunks])


def delete(chunks: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agents_chunk_index WHERE rowid = ANY(%s)", [[*chunks]])


def search(groups: Groups, limit: int, collections: Collection[int]) -> WordHits:
    queries = _to_tsqueries(groups)
    counts, total, usual_length = _counts(queries)
    asked = [
        (at, log((total + 1) / (counts[at] + 0.5)), query)
        for at in rarest(counts, total)
        for query in queries[at]
    ]
    if not asked:
        return WordHits(counts=counts, total=total)
    every = " & ".join(map(_any_of, queries)) if all(queries) and len(queries) > 1 else None
    columns = [list(column) for column in zip(*asked, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(SEARCH_SQL, [*columns, [*collections], every, usual_length, limit])
        return WordHits(scores=dict(cursor.fetchall()), counts=counts, total=total)


def _to_tsqueries(groups: Groups) -> list[list[str]]:
    """Return the alternatives of each group as tsqueries."""
    phrases = [[(term, WORD.findall(to_phrase(term))) for term in group] for group in groups]
    stems = _stems(word for group in phrases for _, words in group for word in words)
    return [
        [_to_tsquery([stems[word] for word in words], term) for term, words in group if words]
        for group in phrases
    ]


def _any_of(queries: Sequence[str]) -> str:
    return f"({' | '.join(f'({query})' for query in queries)})"


def _counts(queries: Sequence[Sequence[str]]) -> tuple[list[int], int, float]:
    """Return how many passages match each group, how many there are, and their length."""
    asked = {at: _any_of(group) for at, group in enumerate(queries) if group}
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SQL, [[*asked], [*asked.values()]])
        found = dict(cursor.fetchall())
        cursor.execute(SHELF_SQL)
        total, usual_length = cursor.fetchone()
    return [found.get(at, 0) for at in range(len(queries))], total, usual_length or 1.0


def _word_positions(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """Yield each word with its position; a gap between fields keeps phrases apart."""
    fields = {"A": chunk.heading, "B": chunk.document.title, "D": chunk.text}
    places = count(1)
    for weight, text in fields.items():
        next(places)
        for word in WORD.findall(index_terms(text)):
            yield word, f"{next(places)}{weight}"


def _stems(words: Iterable[str]) -> dict[str, str]:
    """Return the stems of words; stop words stay as they are."""
    with connection.cursor() as cursor:
        cursor.execute(STEM_SQL, [list(set(words))])
        return dict(cursor.fetchall())


def _index_row(chunk: Chunk, stems: dict[str, str]) -> tuple[int, int, str, str]:
    places: LexemePositions = defaultdict(list)
    for word, place in _word_positions(chunk):
        places[stems[word]].append(place)
    significant = {word: at for word, at in places.items() if len(at) > 1 or at[0][-1] != "D"}
    length = sum(map(len, places.values()))
    return chunk.pk, length, _to_tsvector(places), _to_tsvector(significant)


def _to_tsvector(places: LexemePositions) -> str:
    return " ".join(f"'{word}':{','.join(at)}" for word, at in places.items())


def _to_tsquery(stems: list[str], term: str) -> str:
    """Return a tsquery; words are letters and digits, so none can end its quotes."""
    return " <-> ".join(f"'{stem}'" for stem in stems) + (":*" if is_single_cjk(term) else "")
