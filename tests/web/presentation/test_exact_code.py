"""Code that someone approves: readable, and still every character of it."""

import re
from html import unescape

import pytest

from agents.web.presentation.markdown import render_exact_json, render_exact_sql

QUERIES = [
    "SELECT COUNT(*) FROM customers c WHERE c.city IN ('Kyoto', '京都') AND note = ' from '",
    "with x as (select a from t where a is distinct from 1) select extract(year from d) from x",
    "DELETE FROM t WHERE a = '<b>' -- from where\n;",
    "it's \"not\" closed ( 'select from where",
    "",
]


def text(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_displayed_whole(query):
    assert text(render_exact_sql(query)).split() == query.split()


def test_each_clause_is_on_a_line_of_its_own_and_a_subquery_is_indented():
    query = "SELECT a FROM t LEFT JOIN u ON x WHERE b IN (SELECT c FROM v) ORDER BY a"

    assert text(render_exact_sql(query)).splitlines() == [
        "SELECT a",
        "FROM t",
        "LEFT JOIN u ON x",
        "WHERE b IN (SELECT c",
        "  FROM v)",
        "ORDER BY a",
    ]


def test_a_query_that_has_lines_keeps_them():
    assert text(render_exact_sql("SELECT a\nFROM t WHERE b")) == "SELECT a\nFROM t WHERE b"


@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\xa0", "\r"])
def test_invisible_characters_of_code_are_revealed(character):
    name = f"U+{ord(character):04X}"

    assert name in text(render_exact_sql(f"SELECT a{character}FROM t"))
    assert name in text(render_exact_json(f'{{"a": "b{character}"}}'))
