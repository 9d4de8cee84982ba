"""The index on PostgreSQL: vectors of words and positions, under a GIN index.

The index alone says which passages contain a word. Ranking them would read every vector, which
is slow; so each passage has a short one of the words in its headings or occurring more than
once. A word missing there occurs once.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import log
from typing import Any

from django.db import connection

from agents.models import Chunk

from .index import Groups, WordHits, rarest
from .tokenizer import index_terms, is_single_cjk, to_phrase

LexemePositions = dict[str, list[str]]
# Number of the group; passages with its words, those in the sample, and those with its phrases.
Count = tuple[int, int, int, int]

FOLLOWED_BY = " <-> "

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
# Passages with the words; in a sixteenth of them, it is compared whether they are in order.
COUNT_SQL = """
SELECT at, passages, sampled, matching
FROM unnest(%s::int[], %s::text[], %s::text[]) AS asked (at, term, phrase)
CROSS JOIN LATERAL (
    SELECT count(*) AS passages, count(*) FILTER (WHERE rowid %% 16 = 0) AS sampled,
        count(*) FILTER (
            WHERE CASE WHEN rowid %% 16 = 0 THEN words @@ phrase::tsquery END
        ) AS matching
    FROM agents_chunk_index WHERE words @@ term::tsquery
) AS counted
"""
NARROW_SQL = """
SELECT 10 * count(*) FILTER (WHERE collection_id = ANY(%s)) < count(*) FROM agents_document
"""
# A sample is enough for the usual length, and doesn't read the whole table.
TOTALS_SQL = """
SELECT count(*), (
    SELECT avg(length)
    FROM (SELECT length FROM agents_chunk_index ORDER BY rowid LIMIT 1000) AS sample
) FROM agents_chunk_index
"""
# BM25 as in FTS5 (k1 = 1.2, b = 0.75). Weights are at most 1, so all are an eighth of those
# there: text (D) counts 1, title (B) 2 and heading (A) 8. `at` numbers the groups of words; of
# the alternatives in a group, the best one counts. Passages with every group are first. Queries
# come from `unnest`, because PostgreSQL would read the whole table for a constant one with a
# common word. `ranked` is materialized, so that no vectors are sorted. The scope is a subquery,
# so that only the best are looked up, until enough are in scope; in a narrow one, all are
# looked up before they are ranked.
IN_SCOPE_SQL = """(
    SELECT document.collection_id FROM agents_chunk AS chunk
    JOIN agents_document AS document ON document.id = chunk.document_id
    WHERE chunk.id = rowid
) = ANY(%(collections)s)"""
SEARCH_SQL = f"""
WITH asked AS (
    SELECT at, rarity, term::tsquery
    FROM unnest(%(at)s::int[], %(rarity)s::float[], %(terms)s::text[])
    AS asked (at, rarity, term)
), ranked AS MATERIALIZED (
    SELECT at, rarity, rowid, length,
        greatest(8 * ts_rank_cd('{{0.125, 0, 0.25, 1}}', telling, term), 1)::float AS said
    FROM asked JOIN agents_chunk_index ON words @@ term
    WHERE NOT %(is_narrow)s OR {IN_SCOPE_SQL}
), hits AS (
    SELECT at, rarity, rowid, max(length) AS length, max(said) AS said
    FROM ranked GROUP BY at, rarity, rowid
), complete AS MATERIALIZED (
    SELECT rowid FROM unnest(ARRAY[%(every)s]) AS every
    JOIN agents_chunk_index ON words @@ every::tsquery
), best AS MATERIALIZED (
    SELECT rowid, rowid IN (SELECT rowid FROM complete) AS is_complete,
        sum(rarity * said * 2.2 / (said + 1.2 * (0.25 + 0.75 * length / %(length)s))) AS score
    FROM hits GROUP BY rowid
    ORDER BY is_complete DESC, score DESC, rowid
)
SELECT rowid, score FROM best WHERE {IN_SCOPE_SQL} LIMIT %(limit)s
"""
# Phrases in fewer passages are counted exactly.
MAX_COMPARED = 4_000


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
    at, rarity, terms = (list(column) for column in zip(*asked, strict=True))
    values: dict[str, Any] = {"at": at, "rarity": rarity, "terms": terms, "every": every}
    values |= {"collections": [*collections], "length": usual_length, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(NARROW_SQL, [values["collections"]])
        values["is_narrow"] = cursor.fetchone()[0]
        cursor.execute(SEARCH_SQL, values)
        return WordHits(scores=dict(cursor.fetchall()), counts=counts, total=total)


def _to_tsqueries(groups: Groups) -> list[list[str]]:
    """Return the alternatives of each group as tsqueries."""
    phrases = [[(term, WORD.findall(to_phrase(term))) for term in group] for group in groups]
    stems = _stems(word for group in phrases for _, words in group for word in words)
    found = [
        [_to_tsquery([stems[word] for word in words], term) for term, words in group if words]
        for group in phrases
    ]
    return [list(dict.fromkeys(group)) for group in found]  # several can have the same stem


def _any_of(queries: Sequence[str]) -> str:
    return f"({' | '.join(f'({query})' for query in queries)})"


def _counts(queries: Sequence[Sequence[str]]) -> tuple[list[int], int, float]:
    """Return how many passages match each group, how many there are, and their length."""
    asked = {at: _any_of(group) for at, group in enumerate(queries) if group}
    with connection.cursor() as cursor:
        cursor.execute(TOTALS_SQL)
        total, usual_length = cursor.fetchone()
    found = _count_roughly(asked)
    if unsure := {at: asked[at] for at, estimate in found.items() if estimate is None}:
        found |= {at: passages for at, passages, *_ in _count(unsure)}
    return [found.get(at) or 0 for at in range(len(queries))], total, usual_length or 1.0


def _count_roughly(asked: dict[int, str]) -> dict[int, int | None]:
    """Return how many passages match each; None for phrases that can be counted exactly.

    Whether words are in a phrase's order is read from each passage's vector, which is slow. So
    of common words, only a sample is compared.
    """
    phrases = {at: query for at, query in asked.items() if FOLLOWED_BY in query}
    words = {at: query.replace(FOLLOWED_BY, " & ") for at, query in asked.items()}
    found: dict[int, int | None] = {}
    for at, passages, sampled, matching in _count(words, phrases):
        if at not in phrases or not passages:
            found[at] = passages
        elif passages <= MAX_COMPARED or not sampled:
            found[at] = None
        else:
            # Half a passage, because a rare phrase may be just outside the sample.
            found[at] = round(passages * max(matching, 0.5) / sampled)
    return found


def _count(asked: dict[int, str], phrases: Mapping[int, str] | None = None) -> list[Count]:
    columns: list[Any] = [
        [*asked],
        [*asked.values()],
        [(phrases or {}).get(at) for at in asked],
    ]
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SQL, columns)
        return cursor.fetchall()


def _word_positions(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """Yield each word with its position; a gap between fields keeps phrases apart."""
    fields = {"A": chunk.heading, "B": chunk.document.title, "D": chunk.text}
    positions = count(1)
    for weight, text in fields.items():
        next(positions)
        for word in WORD.findall(index_terms(text)):
            yield word, f"{next(positions)}{weight}"


def _stems(words: Iterable[str]) -> dict[str, str]:
    """Return the stems of words; stop words stay as they are."""
    with connection.cursor() as cursor:
        cursor.execute(STEM_SQL, [list(set(words))])
        return dict(cursor.fetchall())


def _index_row(chunk: Chunk, stems: dict[str, str]) -> tuple[int, int, str, str]:
    positions: LexemePositions = defaultdict(list)
    for word, position in _word_positions(chunk):
        positions[stems[word]].append(position)
    significant = {
        word: word_positions
        for word, word_positions in positions.items()
        if len(word_positions) > 1 or word_positions[0][-1] != "D"
    }
    length = sum(map(len, positions.values()))
    return chunk.pk, length, _to_tsvector(positions), _to_tsvector(significant)


def _to_tsvector(positions: LexemePositions) -> str:
    return " ".join(
        f"'{word}':{','.join(word_positions)}" for word, word_positions in positions.items()
    )


def _to_tsquery(stems: list[str], term: str) -> str:
    """Return a tsquery; words are letters and digits, so none can end its quotes."""
    return FOLLOWED_BY.join(f"'{stem}'" for stem in stems) + (
        ":*" if is_single_cjk(term) else ""
    )
