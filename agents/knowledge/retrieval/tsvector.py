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
    stems = _stems(lexeme for chunk in chunks for lexeme, _ in _word_positions(chunk))
    rows: list[tuple[int, int, str, str]] = []
    for chunk in chunks:
        positions: LexemePositions = defaultdict(list)
        for lexeme, position in _word_positions(chunk):
            positions[stems[lexeme]].append(position)
        significant = {
            stem: stem_positions
            for stem, stem_positions in positions.items()
            if len(stem_positions) > 1 or stem_positions[0][-1] != "D"
        }
        length = sum(map(len, positions.values()))
        rows.append((chunk.pk, length, _to_tsvector(positions), _to_tsvector(significant)))
    with connection.cursor() as cursor:
        cursor.executemany(UPSERT_SQL, rows)


def delete(chunks: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM agents_chunk_index WHERE rowid = ANY(%s)", [[*chunks]])


def search(groups: Groups, limit: int, collections: Collection[int]) -> WordHits:
    phrases = [[(term, WORD.findall(to_phrase(term))) for term in group] for group in groups]
    stems = _stems(lexeme for group in phrases for _, lexemes in group for lexeme in lexemes)
    # The alternatives of each group; several can have the same stem.
    queries: list[list[str]] = []
    for group in phrases:
        alternatives: dict[str, None] = {}
        for term, lexemes in group:
            if lexemes:
                # Lexemes are letters and digits, so none can end its quotes.
                query = FOLLOWED_BY.join(f"'{stems[lexeme]}'" for lexeme in lexemes)
                alternatives[f"{query}:*" if is_single_cjk(term) else query] = None
        queries.append([*alternatives])
    with connection.cursor() as cursor:
        cursor.execute(TOTALS_SQL)
        total, usual_length = cursor.fetchone()
    counts = _count_passages(queries)
    rows = [
        (group, log((total + 1) / (counts[group] + 0.5)), query)
        for group in rarest(counts, total)
        for query in queries[group]
    ]
    if not rows:
        return WordHits(counts=counts, total=total)
    numbers, rarities, terms = (list(column) for column in zip(*rows, strict=True))
    values: dict[str, Any] = {
        "at": numbers,
        "rarity": rarities,
        "terms": terms,
        "every": " & ".join(map(_any_of, queries)) if all(queries) and queries[1:] else None,
        "collections": [*collections],
        "length": usual_length or 1.0,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(NARROW_SQL, [values["collections"]])
        values["is_narrow"] = cursor.fetchone()[0]
        cursor.execute(SEARCH_SQL, values)
        return WordHits(scores=dict(cursor.fetchall()), counts=counts, total=total)


def _any_of(queries: Sequence[str]) -> str:
    return f"({' | '.join(f'({query})' for query in queries)})"


def _count_passages(queries: Sequence[Sequence[str]]) -> list[int]:
    """Return how many passages match each group.

    Whether words are in a phrase's order is read from each passage's vector, which is slow. So
    of common words, only a sample is compared, and rare phrases are counted exactly afterwards.
    """
    exact = {number: _any_of(group) for number, group in enumerate(queries) if group}
    phrases = {number: query for number, query in exact.items() if FOLLOWED_BY in query}
    unordered = {number: query.replace(FOLLOWED_BY, " & ") for number, query in exact.items()}
    counts = [0] * len(queries)
    uncertain: dict[int, str] = {}
    for number, passages, sampled, matching in _count(unordered, phrases):
        if number not in phrases or not passages:
            counts[number] = passages
        elif passages <= MAX_COMPARED or not sampled:
            uncertain[number] = exact[number]
        else:
            # Half a passage, because a rare phrase may be just outside the sample.
            counts[number] = round(passages * max(matching, 0.5) / sampled)
    if uncertain:
        for number, passages, *_ in _count(uncertain, {}):
            counts[number] = passages
    return counts


def _count(queries: Mapping[int, str], phrases: Mapping[int, str]) -> list[Count]:
    with connection.cursor() as cursor:
        cursor.execute(
            COUNT_SQL, [[*queries], [*queries.values()], [phrases.get(n) for n in queries]]
        )
        return cursor.fetchall()


def _word_positions(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """Yield each word with its position; a gap between fields keeps phrases apart."""
    fields = {"A": chunk.heading, "B": chunk.document.title, "D": chunk.text}
    positions = count(1)
    for weight, text in fields.items():
        next(positions)
        for lexeme in WORD.findall(index_terms(text)):
            yield lexeme, f"{next(positions)}{weight}"


def _stems(lexemes: Iterable[str]) -> dict[str, str]:
    """Return the stems of words; stop words stay as they are."""
    with connection.cursor() as cursor:
        cursor.execute(STEM_SQL, [list(set(lexemes))])
        return dict(cursor.fetchall())


def _to_tsvector(positions: LexemePositions) -> str:
    return " ".join(
        f"'{stem}':{','.join(stem_positions)}" for stem, stem_positions in positions.items()
    )
