import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import chain

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.tool import Tool, specification
from agents.tools.database import sql_guard
from agents.tools.database import tool as database_tool
from agents.tools.database.dialects import DatabaseKind
from agents.tools.database.schema import Column, Schema, Table
from agents.tools.database.tool import DatabaseTool
from tests.examples import many
from tests.sampling import one_in

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
    ordered_on DATE, total REAL, status TEXT, extra TEXT
);
CREATE TABLE "order notes" ("the note" TEXT, photo BLOB);
CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER REFERENCES pay(id));
CREATE TABLE pay (id INTEGER PRIMARY KEY);
CREATE TABLE numbers (n INTEGER);
CREATE TABLE tokens (token TEXT);
CREATE TABLE "Äpfel" (sort TEXT);
CREATE VIEW phone_book AS SELECT name FROM staff;
CREATE VIEW everybody AS SELECT id, name FROM staff;
CREATE VIEW unpaid AS SELECT id FROM orders WHERE status = 'open';
CREATE VIEW "first ""names"" (all)"(called) AS SELECT name FROM phone_book;
INSERT INTO customers VALUES (1, 'Aki', '京都'), (2, 'Bo', 'Oslo'), (3, 'Cy', NULL);
INSERT INTO orders VALUES
    (1, 1, '2026-01-03', 10.5, 'paid', '{"gift": true}'),
    (2, 1, '2026-01-20', 20, 'paid', '{}'),
    (3, 2, '2026-02-03', 5, 'open', '{}'), (4, 2, '2026-02-09', 7.25, 'deleted; -- x', '{}');
INSERT INTO "order notes" VALUES ('left at the door', x'00ff01'), (CAST(x'ff41' AS TEXT), NULL);
INSERT INTO staff VALUES (1, 'Dee', 100);
INSERT INTO tokens VALUES ('hidden');
INSERT INTO "Äpfel" VALUES ('Boskoop');
INSERT INTO numbers SELECT value FROM json_each('[' || rtrim(replace(hex(zeroblob(500)),
    '00', '1,'), ',') || ']');
"""
TABLES = ["customers", "orders", "order notes", "numbers", "phone_book", 'First "NAMES" (all)']

ANSWERED = {
    "SELECT 1": [[1]],
    "select 1;": [[1]],
    "  SELECT 1 ;\n": [[1]],
    "```sql\nSELECT 1\n```": [[1]],
    "VALUES (1), (2)": [[1], [2]],
    "SELECT count(*) FROM orders": [[4]],
    "SELECT COUNT(*) FROM ORDERS": [[4]],
    "SELECT count(*) FROM main.orders": [[4]],
    'SELECT "the note" FROM "order notes" LIMIT 1': [["left at the door"]],
    "SELECT [the note] FROM [order notes] LIMIT 1": [["left at the door"]],
    "SELECT `name` FROM `customers` WHERE id = 2": [["Bo"]],
    "SELECT name FROM phone_book": [["Dee"]],
    "SELECT count(*) FROM PHONE_BOOK": [[1]],
    'SELECT called FROM "first ""names"" (all)"': [["Dee"]],
    'SELECT p.name, f.called FROM phone_book p JOIN "first ""names"" (all)" f '
    "ON f.called = p.name": [["Dee", "Dee"]],
    'SELECT "total" AS "a ""b`c" FROM orders WHERE "status" = \'open\'': [[5.0]],
    'SELECT id AS "n" FROM orders ORDER BY "n" DESC LIMIT 1': [[4]],
    "SELECT '\"nobody\"', [id] FROM customers LIMIT 1": [['"nobody"', 1]],
    "SELECT orders.id FROM orders AS orders WHERE orders.id = 1": [[1]],
    "SELECT 'a;b', 'a--b', 'a/*b*/', 'it''s; --'": [["a;b", "a--b", "a/*b*/", "it's; --"]],
    "SELECT 'DROP TABLE orders', 'delete from x'": [["DROP TABLE orders", "delete from x"]],
    "SELECT status FROM orders WHERE status LIKE '%; --%'": [["deleted; -- x"]],
    'SELECT 1 AS "update", 2 AS "delete", 3 AS "insert; --"': [[1, 2, 3]],
    "SELECT status AS deleted, id AS created FROM orders WHERE id = 1": [["paid", 1]],
    "SELECT replace('grant', 'g', 'G')": [["Grant"]],
    "SELECT 'https://x.org/?a=1#b' AS url": [["https://x.org/?a=1#b"]],
    "SELECT 5 - -3, 5 -(-3)": [[8, 8]],
    "SELECT name || ' of ' || city FROM customers WHERE id = 2": [["Bo of Oslo"]],
    "SELECT city FROM customers WHERE name = 'Aki'": [["京都"]],
    "SELECT id FROM customers WHERE city IS NULL": [[3]],
    "SELECT id FROM customers WHERE city ISNULL": [[3]],
    "SELECT DISTINCT status FROM orders ORDER BY status": [
        ["deleted; -- x"],
        ["open"],
        ["paid"],
    ],
    "SELECT status, sum(total) FROM orders GROUP BY 1 HAVING count(*) > 1": [["paid", 30.5]],
    "SELECT c.name, count(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id "
    "GROUP BY c.id ORDER BY 2 DESC, 1": [["Aki", 2], ["Bo", 2], ["Cy", 0]],
    "SELECT count(*) FROM customers JOIN orders USING (id)": [[3]],
    "SELECT count(*) FROM customers NATURAL JOIN orders": [[3]],
    "SELECT count(*) FROM customers, orders": [[12]],
    "SELECT strftime('%Y-%m', ordered_on) AS month, sum(total) FROM orders "
    "GROUP BY month ORDER BY month": [["2026-01", 30.5], ["2026-02", 12.25]],
    "SELECT date('2026-01-31', '+1 day'), datetime('2026-01-01'), time('12:00')": [
        ["2026-02-01", "2026-01-01 00:00:00", "12:00:00"]
    ],
    "SELECT julianday('2026-01-02') - julianday('2026-01-01')": [[1.0]],
    "SELECT current_date > '2000-01-01', unixepoch('1970-01-02')": [[1, 86400]],
    "SELECT CASE WHEN total > 10 THEN 'much' ELSE 'little' END FROM orders WHERE id < 3": [
        ["much"],
        ["much"],
    ],
    "SELECT iif(1, 'a', 'b'), ifnull(NULL, 2), nullif(1, 1), coalesce(NULL, 3)": [
        ["a", 2, None, 3]
    ],
    "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders)": [
        ["Aki"],
        ["Bo"],
    ],
    "SELECT name FROM customers c WHERE NOT EXISTS "
    "(SELECT 1 FROM orders o WHERE o.customer_id = c.id)": [["Cy"]],
    "SELECT (SELECT max(total) FROM orders), min(3, 2)": [[20.0, 2]],
    "SELECT 1 UNION ALL SELECT 2 ORDER BY 1 DESC": [[2], [1]],
    "SELECT 1 UNION SELECT 1": [[1]],
    "SELECT id FROM orders EXCEPT SELECT id FROM customers": [[4]],
    "SELECT id FROM orders INTERSECT SELECT id FROM customers WHERE id > 2": [[3]],
    "WITH big AS (SELECT * FROM orders WHERE total > 8) SELECT count(*) FROM big": [[2]],
    "WITH a(x) AS (VALUES (1), (2)), b AS (SELECT x * 2 AS y FROM a) SELECT sum(y) FROM b": [
        [6]
    ],
    "WITH RECURSIVE a AS (SELECT 1 AS x) SELECT x FROM a": [[1]],
    "SELECT * FROM (WITH a AS (SELECT 7) SELECT * FROM a)": [[7]],
    "WITH staff AS (SELECT 'mine' AS name) SELECT name FROM staff": [["mine"]],
    "SELECT id, row_number() OVER (PARTITION BY status ORDER BY total DESC) FROM orders "
    "WHERE status = 'paid'": [[2, 1], [1, 2]],
    "SELECT sum(total) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "
    "FROM orders": [[10.5], [30.5], [25.0], [12.25]],
    "SELECT lag(id, 1, 0) OVER w FROM orders WINDOW w AS (ORDER BY id)": [[0], [1], [2], [3]],
    "SELECT count(*) FILTER (WHERE status = 'paid') FROM orders": [[2]],
    "SELECT group_concat(DISTINCT status) FROM orders WHERE id < 3": [["paid"]],
    "SELECT group_concat(name, '; ') FROM customers": [["Aki; Bo; Cy"]],
    "SELECT extra ->> '$.gift', json_extract(extra, '$.gift') FROM orders WHERE id = 1": [
        [1, 1]
    ],
    "SELECT printf('%.2f', total), format('%05d', id) FROM orders WHERE id = 1": [
        ["10.50", "00001"]
    ],
    "SELECT upper(trim(' a ')), ltrim('xa', 'x'), substr('abc', 2, 1), instr('abc', 'c'), "
    "length('é'), hex('a'), char(65)": [["A", "a", "b", 3, 1, "61", "A"]],
    "SELECT CAST('12' AS INTEGER), CAST(1.5 AS VARCHAR(10)), abs(-1), 7 % 4": [
        [12, "1.5", 1, 3]
    ],
    "SELECT name FROM customers WHERE name GLOB 'A*' OR name LIKE 'b_' ESCAPE '!'": [
        ["Aki"],
        ["Bo"],
    ],
    "SELECT name FROM customers ORDER BY name COLLATE NOCASE DESC LIMIT 1 OFFSET 1": [["Bo"]],
    "SELECT name FROM customers ORDER BY city NULLS LAST LIMIT 1, 1": [["Aki"]],
    "SELECT (1, 2) = (1, 2), 1 == 1, 1 <> 2, 6 & 3, 1 << 3, NOT 0": [[1, 1, 1, 2, 8, 1]],
    "SELECT total BETWEEN 5 AND 11, status IN ('paid', 'open') FROM orders WHERE id = 1": [
        [1, 1]
    ],
    "SELECT x'00ff', 9e999, -9e999, NULL": [["<2 bytes>", None, None, None]],
    'SELECT * FROM "order notes"': [
        ["left at the door", "<3 bytes>"],
        ["\ufffdA", None],
    ],
    "SELECT id FROM customers ORDER BY random() LIMIT 0": [],
}
REFUSED = {
    "": "Enter a SELECT",
    " ; ": "Enter a SELECT",
    "hello": "Only SELECT",
    "INSERT INTO orders VALUES (9)": "Only SELECT",
    "UPDATE orders SET total = 0": "Only SELECT",
    "DELETE FROM orders": "Only SELECT",
    "REPLACE INTO orders VALUES (9)": "Only SELECT",
    "DROP TABLE orders": "Only SELECT",
    "CREATE TABLE x AS SELECT 1": "Only SELECT",
    "ALTER TABLE orders RENAME TO x": "Only SELECT",
    "PRAGMA table_info(orders)": "Only SELECT",
    "PRAGMA writable_schema = 1": "Only SELECT",
    "ATTACH 'other.db' AS other": "Only SELECT",
    "DETACH main": "Only SELECT",
    "VACUUM INTO 'copy.db'": "Only SELECT",
    "REINDEX": "Only SELECT",
    "ANALYZE": "Only SELECT",
    "BEGIN": "Only SELECT",
    "EXPLAIN SELECT 1": "Only SELECT",
    "EXPLAIN QUERY PLAN SELECT 1": "Only SELECT",
    "SELECT 1; SELECT 2": "one statement",
    "SELECT 1; DROP TABLE orders": "one statement",
    "SELECT 1;; DELETE FROM orders;": "one statement",
    "SELECT 1 -- and more": "Comments",
    "SELECT /* hidden */ 1": "Comments",
    "SELECT 1 /* open": "Comments",
    "SELECT 5--3": "Comments",
    "-- first\nSELECT 1": "Comments",
    "SELECT '--' -- '": "Comments",
    "SELECT 1 /* ' */ , 2 /* ' */": "Comments",
    "WITH a AS (DELETE FROM orders RETURNING *) SELECT * FROM a": "This tool is read-only",
    "WITH a AS (INSERT INTO orders VALUES (9) RETURNING *) SELECT * FROM a": "is read-only",
    "WITH a AS (SELECT 1) DELETE FROM orders": "Only SELECT",
    "WITH a AS (SELECT 1) INSERT INTO orders SELECT * FROM a": "Only SELECT",
    "SELECT 1 INTO orders": "This tool is read-only",
    "SELECT * FROM sqlite_master": "no table 'sqlite_master'",
    "SELECT * FROM sqlite_schema": "no table",
    "SELECT * FROM main.sqlite_master": "no table",
    "SELECT * FROM 'sqlite_master'": "no table",
    "SELECT * FROM sqlite_temp_schema": "no table",
    "SELECT * FROM dbstat": "no table 'dbstat'",
    "SELECT * FROM staff": "no table 'staff'",
    "SELECT * FROM nowhere": "no table 'nowhere'",
    'SELECT * FROM "STAFF"': "no table 'STAFF'",
    "SELECT * FROM temp.orders": "no table",
    "SELECT * FROM other.main.orders": "no table",
    "SELECT (SELECT salary FROM staff)": "no table 'staff'",
    "SELECT 1 FROM orders JOIN staff": "no table 'staff'",
    "SELECT 1 UNION SELECT salary FROM staff": "no table 'staff'",
    "WITH a AS (SELECT * FROM staff) SELECT * FROM a": "no table 'staff'",
    "SELECT * FROM (WITH staff AS (SELECT 1) SELECT * FROM staff), staff": "no table 'staff'",
    "WITH staff AS (SELECT 1) SELECT * FROM main.staff": "no table 'staff'",
    "SELECT 1 IN staff": "IN (SELECT",
    "SELECT 1 WHERE 'x' IN pragma_table_list": "IN (SELECT",
    "SELECT * FROM pragma_table_info('orders')": "as tables",
    "SELECT * FROM json_each('[1]')": "as tables",
    "SELECT * FROM generate_series(1, 1000000000)": "as tables",
    "SELECT load_extension('x.so')": "load_extension()",
    "SELECT \"load_extension\"('x.so')": "load_extension()",
    "SELECT readfile('/etc/passwd')": "readfile()",
    "SELECT writefile('x', 'y')": "writefile()",
    "SELECT edit('x')": "edit()",
    "SELECT fts3_tokenizer('x')": "fts3_tokenizer()",
    "SELECT randomblob(1000000000)": "randomblob()",
    "SELECT zeroblob(1000000000)": "zeroblob()",
    "SELECT sqlite_version()": "sqlite_version()",
    "SELECT sqlite_compileoption_get(1)": "sqlite_compileoption_get()",
    "SELECT pg_sleep(10)": "pg_sleep()",
    "SELECT printf('%1000000d', 1)": "plain format",
    "SELECT printf('%.*c', 1000000, 'x')": "plain format",
    "SELECT format(status, 1) FROM orders": "plain format",
    "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT * FROM a": "itself",
    "WITH a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT * FROM a": "itself",
    "WITH orders AS (SELECT * FROM orders) SELECT * FROM orders": "Rename",
    "WITH orders AS (SELECT 1 AS id) SELECT id FROM orders": "Rename",
    "WITH customers AS (SELECT * FROM staff) SELECT * FROM customers": "Rename",
    "SELECT * FROM (SELECT 1) AS phone_book": "Rename",
    "SELECT * FROM orders AS customers": "Rename",
    'WITH "to\u212aens" AS (SELECT 1) SELECT * FROM tokens': "no table 'tokens'",
    'SELECT * FROM "to\u212aens"': "no table",
    "SELECT * FROM äpfel": "no table 'äpfel'",
    'SELECT "salery" FROM orders': "no such column: salery",
    'SELECT sum("totall") FROM orders': "no such column: totall",
    'SELECT count(*) FROM orders WHERE status = "paid"': "single quotes",
    'SELECT id FROM orders ORDER BY "toal"': "no such column",
    "SELECT ?": "Parameters",
    "SELECT :name": "Parameters",
    "SELECT * FROM": "SQL",
    "SELECT (1": "SQL",
    "SELECT 'open": "SQL",
    "SELECT 1 FROM orders WHERE": "near 'WHERE'",
    "SELECT": "SQLite error: incomplete input",
    "SELECT salery FROM orders": "no such column: salery",
    "SELECT \x00": "invalid character",
    "SELECT '\ud800'": "invalid character",
    "SELECT " + "(" * 9_000 + "1" + ")" * 9_000: "nested",
    "SELECT " + "- " * 4_000 + "1": "nested",
    " UNION ALL ".join(["SELECT 1"] * 1_000): "compound SELECT",
    "SELECT " + ",".join(["n"] * 9_000) + " FROM numbers": "too many columns",
    "SELECT '" + "x" * 1_000_000 + "'": "20,000",
    "SELECT " + "[" * 19_000: "SQL",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SHOP)
    return path


@pytest.fixture(scope="module")
def database(shop):
    return DatabaseTool(f"sqlite:///{shop}", tables=TABLES)


async def answer(tool, sql):
    result = await tool.execute({"sql": sql})
    assert not result.is_error, (sql, result.error)
    return json.loads(result.output)


@pytest.fixture
def workers():
    """List the workers that are running or weren't awaited.

    Other test files in this process may have left their own servers running.
    """
    process = psutil.Process()
    others = set(process.children())
    return lambda: [child for child in process.children() if child not in others]


async def first_worker(workers):
    async with asyncio.timeout(10):
        while not workers():  # noqa: ASYNC110 - a process sends no event when it has begun
            await asyncio.sleep(0.01)
    return workers()[0]


@pytest.mark.parametrize(("sql", "rows"), one_in(6, ANSWERED.items()))
async def test_harmless_queries_that_look_dangerous_are_answered(database, sql, rows):
    assert (await answer(database, sql))["rows"] == rows


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items())
async def test_anything_but_a_single_select_is_rejected_with_the_reason(database, sql, reason):
    result = await database.execute({"sql": sql})

    assert reason in (result.error or "answered")
    assert result.mendable
    assert "salary" not in result.error


HOSTILE = [
    "DELETE FROM orders",
    "INSERT INTO orders (id) VALUES (9)",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x (y)",
    "DROP TABLE orders",
    "ATTACH ':memory:' AS other",
    "VACUUM INTO 'copy.sqlite3'",
    "PRAGMA query_only = OFF",
    "PRAGMA table_info(orders)",
    "BEGIN",
    "SELECT 1; DELETE FROM orders",
    "SELECT * FROM staff",
    "SELECT count(*) FROM staff",
    "SELECT 1 IN staff",
    "SELECT * FROM (SELECT salary FROM staff)",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pragma_table_list",
    "SELECT * FROM json_each('[1]')",
    "SELECT load_extension('x.so')",
    "SELECT randomblob(1000000000)",
    "SELECT sqlite_version()",
    "WITH a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT max(x) FROM a",
    "WITH orders AS (SELECT * FROM tokens) SELECT * FROM orders",
    "WITH phone_book AS (SELECT * FROM tokens) SELECT * FROM phone_book",
    "WITH phone_book AS (SELECT salary FROM staff) SELECT * FROM phone_book",
    "WITH everybody AS (SELECT salary FROM staff) SELECT * FROM everybody",
    "WITH a AS (SELECT * FROM everybody) SELECT * FROM a",
    "SELECT * FROM everybody",
    "SELECT count(*) FROM everybody",
    "SELECT count(*) FROM unpaid",
    "SELECT 1 FROM orders WHERE EXISTS (SELECT 1 FROM unpaid)",
    "SELECT count(*) FROM (WITH tokens AS (SELECT 1) SELECT 1 FROM tokens), tokens",
    'WITH "to\u212aens" AS (SELECT 1) SELECT count(*) FROM tokens',
    "SELECT count(*) FROM sqlite_master",
    "SELECT count(*) FROM pragma_table_list",
    "SELECT count(*) FROM sqlite_temp_master",
    "SELECT sql FROM temp.sqlite_master",
    "SELECT * FROM (SELECT * FROM tokens) AS phone_book",
    "SELECT phone_book.token FROM tokens AS phone_book",
    "SELECT ?",
    "SELECT \x00",
    "SELECT '" + "x" * 200_000 + "'",
]


@pytest.mark.parametrize("sql", one_in(3, HOSTILE))
async def test_the_worker_rejects_writes_without_the_sql_guard(database, shop, sql):
    before = shop.read_bytes()

    result = await database.ask(sql_guard.GuardedQuery(sql=sql))

    assert result.is_error
    assert result.mendable
    assert shop.read_bytes() == before


COLUMNS = {"Orders": ["ID", "total"], "staff": ["name"], "everybody": ["name"], "numbers": None}
VISIBLE = {
    "SELECT * FROM orders WHERE id = 1": [[1, 10.5]],
    "SELECT o.* FROM ORDERS o WHERE o.id = 2": [[2, 20.0]],
    'SELECT "total" FROM main.orders WHERE orders.id = 1': [[10.5]],
    "SELECT count(*) FROM orders NATURAL JOIN numbers": [[2000]],
    "SELECT name FROM everybody": [["Dee"]],
    "SELECT * FROM everybody": [["Dee"]],
    "SELECT sum(total) FROM orders o JOIN orders p USING (id, total)": [[42.75]],
    "WITH big AS (SELECT * FROM orders WHERE total > 8) SELECT count(*) FROM big": [[2]],
    "SELECT (SELECT max(total) FROM orders), name FROM staff": [[20.0, "Dee"]],
}
HIDDEN = [
    "SELECT status FROM orders",
    "SELECT o.status FROM orders AS o",
    "SELECT rowid FROM staff",
    "SELECT _rowid_, oid FROM staff",
    "SELECT salary FROM staff",
    'SELECT "SALARY" FROM staff',
    "SELECT name FROM staff ORDER BY salary",
    "SELECT count(*) FROM staff WHERE salary > 10",
    "SELECT name FROM staff GROUP BY name HAVING max(salary) > 1",
    "SELECT 1 FROM staff a JOIN staff b USING (salary)",
    "SELECT (SELECT salary) FROM staff",
    "SELECT a.salary FROM (SELECT * FROM staff) a",
    "WITH a AS (SELECT * FROM staff) SELECT salary FROM a",
    "SELECT id FROM everybody",
    "SELECT sum(salary) OVER () FROM staff",
]


@pytest.fixture(scope="module")
def narrow(shop):
    return DatabaseTool(f"sqlite:///{shop}", tables=COLUMNS)


@pytest.mark.parametrize(("sql", "rows"), one_in(4, VISIBLE.items()))
async def test_a_star_has_the_allowed_columns_only(narrow, sql, rows):
    assert (await answer(narrow, sql))["rows"] == rows


@pytest.mark.parametrize("sql", one_in(4, HIDDEN))
async def test_a_hidden_column_is_unknown(narrow, sql):
    result = await narrow.execute({"sql": sql})

    if result.is_error:
        assert re.search("no such column|not present in both tables", result.error)
        assert result.mendable
    else:  # to some builds of SQLite, a row number that isn't there is NULL
        assert {*chain(*json.loads(result.output)["rows"])} == {None}


# Columns of USING aren't reported by every version of SQLite: only the guard hides them.
REPORTED = [sql for sql in HIDDEN if "USING" not in sql]


@pytest.mark.parametrize("sql", one_in(4, [*REPORTED, "SELECT * FROM staff"]))
async def test_the_worker_hides_columns_without_the_sql_guard(narrow, sql):
    result = await narrow.ask(sql_guard.GuardedQuery(sql=sql))

    assert result.is_error
    assert result.mendable


def test_hidden_columns_are_not_described(narrow):
    assert "orders(id INTEGER, total REAL)" in narrow.description
    assert "salary" not in narrow.description
    assert "status" not in narrow.description


async def test_hidden_and_missing_tables_have_the_same_error(database):
    hidden = await database.ask(sql_guard.GuardedQuery(sql="SELECT salary FROM staff"))
    missing = await database.ask(sql_guard.GuardedQuery(sql="SELECT salary FROM nowhere"))

    assert hidden == missing


BOMBS = [
    "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    "SELECT a.n FROM numbers a, numbers b, numbers c, numbers d ORDER BY random()",
    "SELECT group_concat(hex(a.n), 'xxxxxxxxxxxxxxxxxxx') FROM numbers a, numbers b, numbers c",
]


@pytest.mark.parametrize("sql", one_in(3, BOMBS))
async def test_an_expensive_query_times_out_and_leaves_no_process(shop, workers, sql):
    tool = DatabaseTool(f"sqlite:///{shop}", timeout=0.5)

    result = await tool.execute({"sql": sql})

    assert result.mendable
    assert not workers()


async def test_a_timeout_message_names_the_limit(shop):
    tool = DatabaseTool(f"sqlite:///{shop}", timeout=0.5)

    result = await tool.execute({"sql": BOMBS[0]})

    assert result.error == "The query timed out after 0.5 s. Select less data."


async def test_stopping_the_run_kills_the_query(shop, workers):
    tool = DatabaseTool(f"sqlite:///{shop}", timeout=30)
    task = asyncio.create_task(tool.execute({"sql": BOMBS[0]}))
    await first_worker(workers)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not workers()


async def test_a_slow_query_does_not_block_other_runs(shop):
    tool = DatabaseTool(f"sqlite:///{shop}", timeout=0.5)
    turns = 0

    task = asyncio.create_task(tool.execute({"sql": BOMBS[0]}))
    while not task.done():
        await asyncio.sleep(0.01)
        turns += 1

    assert turns > 10


async def test_the_worker_inherits_no_secret(shop, workers, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hush")
    tool = DatabaseTool(f"sqlite:///{shop}", timeout=30)
    task = asyncio.create_task(tool.execute({"sql": BOMBS[0]}))

    environment = (await first_worker(workers)).environ()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert "SECRET_KEY" not in environment


async def test_a_crashed_worker_is_an_error_and_logged(shop, monkeypatch, caplog):
    broken = shop.with_name("broken.py")
    broken.write_text("raise SystemExit('out of luck')")
    changed = replace(database_tool.SQLITE_QUERY, program=str(broken))
    monkeypatch.setattr(database_tool, "SQLITE_QUERY", changed)

    result = await DatabaseTool(f"sqlite:///{shop}").execute({"sql": "SELECT 1"})

    assert result.is_error
    assert "out of luck" in caplog.text


async def test_rows_are_limited_and_the_model_gets_a_note(shop):
    whole = await answer(DatabaseTool(f"sqlite:///{shop}"), "SELECT id FROM orders")
    hundred = await answer(DatabaseTool(f"sqlite:///{shop}"), "SELECT n FROM numbers")
    two = await answer(DatabaseTool(f"sqlite:///{shop}", max_rows=2), "SELECT n FROM numbers")

    assert (len(whole["rows"]), whole["truncated"]) == (4, False)
    assert (len(hundred["rows"]), hundred["truncated"]) == (100, True)
    assert (len(two["rows"]), two["truncated"]) == (2, True)


async def test_long_values_and_large_results_are_truncated_with_a_note(database):
    digits = "(SELECT group_concat(n, '') || group_concat(n, '') FROM numbers)"
    cell = f"{digits} || {digits} || {digits}"

    found = await answer(database, f"SELECT {cell} FROM numbers")
    wide = await answer(database, f"SELECT {', '.join([cell] * 30)} FROM numbers")

    assert found["rows"][0][0].endswith("… (3,000 characters)")
    assert found["truncated"]
    assert len(wide["rows"]) < 10
    assert wide["truncated"]


async def test_a_value_of_many_megabytes_is_rejected(tmp_path):
    with closing(sqlite3.connect(tmp_path / "big.sqlite3")) as connection:
        connection.execute("CREATE TABLE big AS SELECT zeroblob(50000000) AS photo, 1 AS id")
        connection.commit()
    tool = DatabaseTool(f"sqlite:///{tmp_path}/big.sqlite3")

    refused = await tool.execute({"sql": "SELECT photo FROM big"})

    assert "larger than 1 MB" in refused.error
    assert (await answer(tool, "SELECT count(*) FROM big"))["rows"] == [[1]]


def test_the_description_lists_only_allowed_tables(database):
    text = specification(database)["function"]["description"]

    assert isinstance(database, Tool)
    assert "orders(id INTEGER, customer_id INTEGER → customers.id, ordered_on " in text
    assert '"order notes"("the note" TEXT, photo BLOB)' in text
    assert "staff" not in text
    assert "salary" not in text


def test_a_foreign_key_to_a_hidden_table_is_not_described(shop):
    tool = DatabaseTool(f"sqlite:///{shop}", tables=["Staff"])

    assert "staff(id INTEGER, name TEXT, salary INTEGER)" in tool.description


async def test_without_a_list_all_tables_are_allowed(shop):
    tool = DatabaseTool(f"sqlite:///{shop}")

    assert (await answer(tool, "SELECT salary FROM staff"))["rows"] == [[100]]
    assert "sqlite_" not in tool.description


async def test_a_file_created_later_is_found(tmp_path):
    tool = DatabaseTool(f"sqlite:///{tmp_path}/later.sqlite3")
    missing = await tool.execute({"sql": "SELECT 1"})
    with closing(sqlite3.connect(tmp_path / "later.sqlite3")) as connection:
        connection.execute("CREATE TABLE things (id INTEGER)")

    assert missing.error == "The database can't be read: unable to open database file."
    assert "t available now" in DatabaseTool(f"sqlite:///{tmp_path}/never.sqlite3").description
    assert (await answer(tool, "SELECT count(*) FROM things"))["rows"] == [[0]]
    assert not (tmp_path / "never.sqlite3").exists()


async def test_a_file_that_is_not_a_database_is_an_error(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear reader, " * 100)

    result = await DatabaseTool(f"sqlite:///{tmp_path}/letter.txt").execute({"sql": "SELECT 1"})

    assert "file is not a database" in result.error
    assert not result.mendable


async def test_a_broken_view_does_not_hide_the_other_tables(tmp_path):
    with closing(sqlite3.connect(tmp_path / "old.sqlite3")) as connection:
        connection.execute("CREATE TABLE kept (id INTEGER)")
        connection.execute("CREATE VIEW broken AS SELECT gone FROM kept")
    tool = DatabaseTool(f"sqlite:///{tmp_path}/old.sqlite3")

    assert "kept(id INTEGER)" in tool.description
    assert "broken" not in tool.description


async def test_a_database_locked_by_a_write_is_an_error(tmp_path):
    with closing(sqlite3.connect(tmp_path / "busy.sqlite3")) as connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
        tool = DatabaseTool(f"sqlite:///{tmp_path}/busy.sqlite3")
        connection.execute("BEGIN EXCLUSIVE")

        result = await tool.execute({"sql": "SELECT * FROM things"})

    assert result.error == "The database is locked by a write. Try again in a moment."
    assert not result.mendable


async def test_a_database_in_wal_mode_can_be_read(tmp_path):
    with closing(sqlite3.connect(tmp_path / "wal.sqlite3")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE things (id INTEGER)")
    tool = DatabaseTool(f"sqlite:///{tmp_path}/wal.sqlite3")

    assert (await answer(tool, "SELECT count(*) FROM things"))["rows"] == [[0]]


async def test_a_database_in_wal_mode_can_be_read_while_it_is_written_and_when_it_is_closed(
    tmp_path,
):
    path = tmp_path / "wal.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE things (id INTEGER)")
        tool = DatabaseTool(f"sqlite:///{path}")
        connection.execute("INSERT INTO things VALUES (1)")
        connection.commit()
        assert (await answer(tool, "SELECT count(*) FROM things"))["rows"] == [[1]]
    for name in ("wal.sqlite3-wal", "wal.sqlite3-shm"):
        (tmp_path / name).unlink(missing_ok=True)

    assert (await answer(tool, "SELECT count(*) FROM things"))["rows"] == [[1]]


@pytest.mark.parametrize(
    "url", ["postgres://me:hush@host/db", "sqlite://x", "sqlite:///", "sqlite:///:memory:", "x"]
)
def test_an_invalid_url_error_shows_a_valid_example(url):
    with pytest.raises(ValueError, match="must be sqlite:///") as refusal:
        DatabaseTool(url)

    assert "hush" not in str(refusal.value)


def test_a_relative_url_is_a_relative_file(shop, monkeypatch):
    monkeypatch.chdir(shop.parent)

    assert "customers(" in DatabaseTool("sqlite:///shop.sqlite3").description


WORDS = """SELECT FROM WHERE orders staff ( ) , ; * ' " -- /* */ [ ] ` . = IN WITH AS UNION ALL
    JOIN ON x 1 ? :a || -> CASE WHEN END count( printf( VALUES DELETE PRAGMA OVER @ $ { }"""


@many(500)
@given(
    st.sampled_from(DatabaseKind),
    st.one_of(st.text(), st.lists(st.sampled_from(WORDS.split())).map(" ".join)),
)
def test_any_text_is_accepted_or_rejected_with_a_message(kind, text):
    outcome = is_admitted("SELECT " + text, kind)

    assert isinstance(outcome, sql_guard.GuardedQuery) or str(outcome).endswith((".", ")."))


def schema_of(kind):
    tables = tuple(Table(name=name, columns=(Column(name="id"),)) for name in TABLES)
    return Schema(kind=kind, tables=tables, database="main")


def is_admitted(sql, kind=DatabaseKind.SQLITE):
    try:
        return sql_guard.validate(sql, schema_of(kind))
    except sql_guard.QueryRefused as refusal:
        return refusal


def test_a_new_table_is_in_the_next_description(tmp_path):
    file = tmp_path / "a file.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE first (a)")
        database.commit()
        before = DatabaseTool(f"sqlite:///{file}").description
        database.execute("CREATE TABLE second (b)")
        database.commit()
        after = DatabaseTool(f"sqlite:///{file}").description

    assert "second" not in before
    assert "second" in after


def test_the_sql_parser_is_imported_by_the_first_query():
    script = "import sys, agents.tools.database.tool as t; print('sqlglot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "False"
