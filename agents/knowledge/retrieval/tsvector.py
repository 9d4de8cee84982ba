"""The index on PostgreSQL: vectors of words and positions, under a GIN index.

The index alone says which passages contain a word. Ranking them would read every vector, which
is slow; so each passage has a short one of the words in its headings or occurring more than
once. A word missing there occurs once.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count

from django.db import connection

from agents.models import Chunk

from .index import Groups, WordHits
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
# BM25 as in FTS5 (k1 = 1.2, b = 0.75). Weights are at most 1, so all are an eighth of those
# there: text (D) counts 1, title (B) 2 and heading (A) 8. `at` numbers the groups of words; of
# the alternatives in a group, the best one counts.
SEARCH_SQL = """
WITH asked AS (
    SELECT at, term::tsquery
    FROM unnest(%s::int[], %s::text[]) AS asked (at, term)
), hits AS MATERIALIZED (
    SELECT at, rowid, max(length) AS length,
        max(greatest(8 * ts_rank_cd('{0.125, 0, 0.25, 1}', telling, term), 1))::float AS said
    FROM asked JOIN agents_chunk_index ON words @@ term
    JOIN agents_chunk AS chunk ON chunk.id = rowid
    JOIN agents_document AS document ON document.id = chunk.document_id
    WHERE document.collection_id = ANY(%s)
    GROUP BY at, rowid
), shelf AS (
    SELECT count(*) AS passages, avg(length) AS usual FROM agents_chunk_index
), rarity AS (
    SELECT at, count(*) AS passages_with, ln((passages + 1) / (count(*) + 0.5)::float) AS rarity
    FROM hits, shelf GROUP BY at, passages
), found AS (
    SELECT rowid, count(*) = %s AS has_every,
        sum(rarity * said * 2.2 / (said + 1.2 * (0.25 + 0.75 * length / usual))) AS score
    FROM hits JOIN rarity USING (at), shelf GROUP BY rowid
    ORDER BY has_every DESC, score DESC, rowid LIMIT %s
)
SELECT 'found', rowid, score FROM found
UNION ALL SELECT 'count', at, passages_with FROM rarity
UNION ALL SELECT 'total', 0, passages FROM shelf
"""


def upsert(chunks: Sequence[Chunk]) -> None:
    stems = _stems(word for chunk in chunks for word, _ in _word_positions(chunk))
    with connection.cursor() as cursor:
        cursor.executemany(UPSERT_SQL, [_index_row(chunk, stems) for chunk in chunks])


def delete(chunks: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agents_chunk_index WHERE rowid = ANY(%s)", [[*chunks]])


def search(groups: Groups, limit: int, collections: Collection[int]) -> WordHits:
    phrases = [
        (at, term, WORD.findall(to_phrase(term)))
        for at, words in enumerate(groups)
        for term in words
    ]
    stems = _stems(word for _, _, words in phrases for word in words)
    asked = [
        (at, _to_tsquery([stems[w] for w in words], term))
        for at, term, words in phrases
        if words
    ]
    numbers, queries = [at for at, _ in asked], [query for _, query in asked]
    with connection.cursor() as cursor:
        cursor.execute(SEARCH_SQL, [numbers, queries, [*collections], len(groups), limit])
        rows = cursor.fetchall()
    counts = {key: int(value) for kind, key, value in rows if kind == "count"}
    return WordHits(
        scores={key: value for kind, key, value in rows if kind == "found"},
        counts=[counts.get(at, 0) for at in range(len(groups))],
        total=next(int(value) for kind, _, value in rows if kind == "total"),
    )


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
