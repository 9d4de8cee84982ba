"""Queries on real PostgreSQL and MariaDB servers, through both layers and through one."""

import asyncio
import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pymysql
import pytest

from agents.tools.database import sql_guard
from agents.tools.database.dialects import DatabaseKind
from agents.tools.database.schema import Schema
from agents.tools.database.server_tool import (
    ConnectionFailed,
    ServerAddress,
    ServerDatabaseTool,
    inspect,
)
from agents.tools.database.sql_guard import GuardedQuery
from tests.sampling import one_in
from tests.services import MariaDB, NotThere, PostgreSQL

PASSWORD = "hush-hush"
ROWS = """
INSERT INTO customers VALUES (1, 'Aki', '京都'), (2, 'Bo', 'Oslo'), (3, 'Cy', NULL);
INSERT INTO orders VALUES (1, 1, '2026-01-03', 10.50, 'paid'), (2, 1, '2026-01-20', 20, 'paid'),
    (3, 2, '2026-02-03', 5.25, 'open');
INSERT INTO staff VALUES (1, 'Dee', 4711);
INSERT INTO tokens VALUES ('hidden');
"""
POSTGRESQL_SHOP = f"""
CREATE TABLE customers (id int PRIMARY KEY, name text, city text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, ordered_on date,
    total numeric(9, 2), status text);
CREATE TABLE staff (id int PRIMARY KEY, name text, salary int);
CREATE TABLE tokens (token text);
CREATE TABLE "Mixed Case" ("The Note" text);
CREATE TABLE numbers AS SELECT generate_series(1, 3000) AS n;
CREATE SCHEMA archive;
CREATE TABLE archive.orders (id int, secret text);
CREATE TABLE archive.boxes (id int);
CREATE VIEW names AS SELECT name FROM staff;
CREATE FUNCTION leak() RETURNS text LANGUAGE sql SECURITY DEFINER
    AS 'SELECT token FROM public.tokens';
CREATE FUNCTION lower(int) RETURNS text LANGUAGE sql AS 'SELECT token FROM public.tokens';
{ROWS}
INSERT INTO "Mixed Case" VALUES ('left at the door');
INSERT INTO archive.orders VALUES (1, 'hidden');
CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
GRANT USAGE ON SCHEMA archive TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public, archive TO reader;
"""
MYSQL_SHOP = f"""
CREATE DATABASE shop CHARACTER SET utf8mb4; CREATE DATABASE other;
CREATE TABLE other.secrets (token text);
INSERT INTO other.secrets VALUES ('hidden');
USE shop;
CREATE TABLE customers (id int PRIMARY KEY, name varchar(50), city varchar(50));
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, ordered_on date, total decimal(9, 2),
    status varchar(20), FOREIGN KEY (customer_id) REFERENCES customers (id));
CREATE TABLE staff (id int PRIMARY KEY, name varchar(50), salary int);
CREATE TABLE tokens (token text);
CREATE TABLE `Mixed Case` (`The Note` text);
CREATE TABLE numbers AS SELECT seq AS n FROM seq_1_to_3000;
CREATE VIEW names AS SELECT name FROM staff;
CREATE FUNCTION leak() RETURNS text READS SQL DATA RETURN (SELECT token FROM tokens LIMIT 1);
{ROWS}
INSERT INTO `Mixed Case` VALUES ('left at the door');
CREATE USER reader@localhost IDENTIFIED BY '{PASSWORD}';
GRANT SELECT, EXECUTE ON shop.* TO reader@localhost;
GRANT SELECT ON other.* TO reader@localhost;
"""
ALLOWED = {
    "customers": None,
    "orders": ["id", "customer_id", "ordered_on", "total"],
    "staff": ["id", "name"],
    "Mixed Case": None,
    "names": None,
    "numbers": None,
}

BOTH_ANSWER = {
    "SELECT 1": [[1]],
    "select count(*) from orders;": [[3]],
    "SELECT COUNT(*) FROM orders o": [[3]],
    "SELECT * FROM orders WHERE id = 1": [[1, 1, "2026-01-03", 10.5]],
    "SELECT o.* FROM orders o WHERE o.id = 3": [[3, 2, "2026-02-03", 5.25]],
    "SELECT orders.total FROM orders WHERE orders.id = 2": [[20]],
    "SELECT * FROM staff": [[1, "Dee"]],
    "SELECT name FROM names": [["Dee"]],
    "SELECT c.name, count(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id "
    "GROUP BY c.id, c.name ORDER BY 2 DESC": [["Aki", 2], ["Bo", 1], ["Cy", 0]],
    "SELECT count(*) FROM customers NATURAL JOIN staff": [[0]],
    "SELECT count(*) FROM customers JOIN orders USING (id)": [[3]],
    "SELECT name FROM customers WHERE id IN (SELECT customer_id FROM orders) ORDER BY 1": [
        ["Aki"],
        ["Bo"],
    ],
    "WITH big AS (SELECT * FROM orders WHERE total > 8) SELECT count(*) FROM big": [[2]],
    "WITH a(x) AS (SELECT id FROM orders), b AS (SELECT x FROM a) SELECT sum(x) FROM b": [[6]],
    "WITH tokens AS (SELECT 'mine' AS token) SELECT token FROM tokens": [["mine"]],
    "SELECT id, row_number() OVER (ORDER BY total DESC) FROM orders ORDER BY id LIMIT 1": [
        [1, 2]
    ],
    "SELECT extract(year FROM ordered_on) FROM orders WHERE id = 1": [[2026]],
    "SELECT coalesce(city, 'none') FROM customers WHERE id = 3": [["none"]],
    "SELECT CASE WHEN total > 10 THEN 'much' ELSE 'little' END FROM orders WHERE id = 3": [
        ["little"]
    ],
    "SELECT 'it''s; --', 'DROP TABLE orders'": [["it's; --", "DROP TABLE orders"]],
    "SELECT city FROM customers WHERE name = 'Aki'": [["京都"]],
    "SELECT 1 UNION SELECT 2 ORDER BY 1": [[1], [2]],
    "SELECT CAST('12' AS DECIMAL(9, 2)), round(avg(total), 1) FROM orders": [[12, 11.9]],
    "SELECT upper(trim(' a ')), concat('a', 'b'), length('abc')": [["A", "ab", 3]],
}
POSTGRESQL_ANSWERS = BOTH_ANSWER | {
    "SELECT count(*) FROM ORDERS": [[3]],
    "SELECT count(*) FROM public.orders": [[3]],
    'SELECT "The Note" FROM "Mixed Case"': [["left at the door"]],
    "SELECT row_to_json(s) FROM staff s": [['{"id": 1, "name": "Dee"}']],
    "SELECT s FROM staff s": [['["1", "Dee"]']],
    "SELECT to_char(ordered_on, 'YYYY-MM') AS month, sum(total) FROM orders GROUP BY 1 "
    "ORDER BY month": [["2026-01", 30.5], ["2026-02", 5.25]],
    "SELECT date_trunc('month', ordered_on)::date FROM orders WHERE id = 2": [["2026-01-01"]],
    "SELECT count(*) FILTER (WHERE total > 8) FROM orders": [[2]],
    "SELECT l.total FROM customers c JOIN LATERAL (SELECT total FROM orders o WHERE "
    "o.customer_id = c.id ORDER BY total DESC LIMIT 1) l ON true ORDER BY 1": [[5.25], [20]],
    "SELECT string_agg(name, ', ' ORDER BY name) FROM customers": [["Aki, Bo, Cy"]],
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders": [[10.5]],
    "SELECT name FROM customers WHERE name ~ '^A' OR name ILIKE 'b%' ORDER BY 1": [
        ["Aki"],
        ["Bo"],
    ],
    "SELECT g FROM generate_series(1, 2) g": [[1], [2]],
    "SELECT ordered_on + interval '1 day' FROM orders WHERE id = 1": [["2026-01-04 00:00:00"]],
    "SELECT DISTINCT ON (customer_id) id FROM orders ORDER BY customer_id, id": [[1], [3]],
}
MYSQL_ANSWERS = BOTH_ANSWER | {
    "SELECT count(*) FROM shop.orders": [[3]],
    "SELECT `The Note` FROM `Mixed Case`": [["left at the door"]],
    "SELECT date_format(ordered_on, '%Y-%m') AS month, sum(total) FROM orders GROUP BY month "
    "ORDER BY month": [["2026-01", 30.5], ["2026-02", 5.25]],
    "SELECT group_concat(name ORDER BY name SEPARATOR '; ') FROM customers": [["Aki; Bo; Cy"]],
    "SELECT name FROM customers WHERE name REGEXP '^A'": [["Aki"]],
    "SELECT if(total > 10, 'much', 'little') FROM orders WHERE id = 3": [["little"]],
    "SELECT ordered_on + INTERVAL 1 DAY FROM orders WHERE id = 1": [["2026-01-04"]],
    "SELECT timestampdiff(DAY, '2026-01-01', '2026-01-03'), datediff('2026-01-02', "
    "'2026-01-01')": [[2, 1]],
    "SELECT id FROM orders ORDER BY id LIMIT 1, 1": [[2]],
    "SELECT 1 FROM dual": [[1]],
    "SELECT 'a\\b'": [["a\\b"]],
    "SELECT NAME FROM customers WHERE ID = 2": [["Bo"]],
}
# Refused by the first layer, whatever the second one would say.
BOTH_REFUSE = {
    "UPDATE orders SET total = 0": "Only SELECT",
    "SELECT 1; DELETE FROM orders": "one statement",
    "SELECT 1 -- x": "Comments",
    "SELECT /*! 1 */ 2": "Comments",
    "WITH a AS (DELETE FROM orders RETURNING *) SELECT * FROM a": "",
    "SELECT * FROM tokens": "no table 'tokens'",
    "SELECT 1 FROM orders JOIN tokens ON true": "no table 'tokens'",
    "SELECT (SELECT token FROM tokens)": "no table 'tokens'",
    "WITH a AS (SELECT * FROM tokens) SELECT * FROM a": "no table 'tokens'",
    "WITH customers AS (SELECT * FROM tokens) SELECT * FROM customers": "Rename",
    "SELECT * FROM (WITH tokens AS (SELECT 1) SELECT * FROM tokens) a, tokens": "no table",
    "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT * FROM a": "itself",
    "SELECT * FROM information_schema.tables": "no table",
    "SELECT * FROM orders FOR UPDATE": "read-only",
    "SELECT * FROM orders FOR SHARE": "read-only",
    "SELECT leak()": "leak()",
    "SELECT `leak`()": "",
    "SELECT version()": "version()",
    "SELECT current_user": "",
    "SELECT 'open": "",
}
POSTGRESQL_REFUSES = BOTH_REFUSE | {
    'SELECT * FROM "Orders"': "no table 'Orders'",
    'SELECT * FROM "CUSTOMERS"': "no table",
    "SELECT * FROM archive.orders": "no table",
    "SELECT * FROM archive.boxes": "no table",
    "SELECT * FROM pg_catalog.pg_shadow": "no table",
    "SELECT * FROM pg_user": "no table",
    "TABLE orders": "Only SELECT",
    "COPY orders TO STDOUT": "Only SELECT",
    "COPY (SELECT 1) TO PROGRAM 'id'": "Only SELECT",
    "SELECT pg_sleep(10)": "pg_sleep()",
    "SELECT pg_catalog.pg_sleep(10)": "pg_sleep()",
    'SELECT "pg_sleep"(10)': "pg_sleep()",
    "SELECT pg_read_file('/etc/passwd')": "pg_read_file()",
    "SELECT pg_ls_dir('/')": "pg_ls_dir()",
    "SELECT lo_import('/etc/passwd')": "lo_import()",
    "SELECT lo_get(1)": "lo_get()",
    "SELECT dblink('host=x', 'SELECT 1')": "dblink()",
    "SELECT * FROM dblink('host=x', 'SELECT 1') AS t(a int)": "",
    "SELECT query_to_xml('SELECT * FROM public.tokens', true, true, '')": "query_to_xml()",
    "SELECT table_to_xml('public.tokens', true, true, '')": "table_to_xml()",
    "SELECT ts_stat('SELECT 1')": "ts_stat()",
    "SELECT set_config('transaction_read_only', 'off', false)": "set_config()",
    "SELECT current_setting('data_directory')": "current_setting()",
    "SELECT nextval('s')": "nextval()",
    "SELECT pg_advisory_lock(1)": "pg_advisory_lock()",
    "SELECT pg_terminate_backend(1)": "pg_terminate_backend()",
    "SELECT public.lower(1)": "lower()",
    "SELECT public.leak()": "leak()",
    "SELECT repeat('a', 1000000000)": "repeat()",
    "SELECT has_table_privilege('tokens', 'SELECT')": "has_table_privilege()",
    "SELECT E'a\\'' , token FROM tokens WHERE 'x' = E''": "",
    "SELECT $$ a $$": "",
    "SELECT $1": "",
    "SELECT U&'\\0041'": "plain single quotes",
    "SELECT 1 INTO x": "read-only",
    "SELECT * FROM ONLY orders": "",
    "SELECT * FROM orders TABLESAMPLE SYSTEM (10)": "",
    "SELECT session_user": "",
    "SELECT user": "",
    "SELECT 1 OPERATOR(public.+) 1": "",
    "SELECT * FROM ROWS FROM (leak())": "",
    "SELECT * FROM leak()": "",
    "SELECT leak FROM leak() AS leak(a)": "",
}
MYSQL_REFUSES = BOTH_REFUSE | {
    "SELECT * FROM Orders": "no table 'Orders'",
    "SELECT * FROM other.secrets": "no table",
    "SELECT * FROM mysql.user": "no table",
    "SELECT * FROM sys.x": "no table",
    "SELECT SLEEP(10)": "sleep()",
    "SELECT sleep (10)": "sleep()",
    "SELECT `sleep`(10)": "sleep()",
    "SELECT BENCHMARK(1000000000, md5('a'))": "benchmark()",
    "SELECT LOAD_FILE('/etc/passwd')": "load_file()",
    "SELECT GET_LOCK('a', 10)": "get_lock()",
    "SELECT shop.leak()": "leak()",
    "SELECT 1 INTO OUTFILE '/tmp/x'": "",
    "SELECT 1 INTO DUMPFILE '/tmp/x'": "",
    "SELECT 1 INTO @a": "",
    "SELECT @a := 1": "@",
    "SELECT @@datadir": "@",
    "SELECT 1 # x": "Comments",
    'SELECT "nmae" FROM orders': "backticks",
    'SELECT count(*) FROM orders WHERE "id" = 1': "backticks",
    "SELECT 'a\\', token FROM shop.tokens WHERE 'b' = ' '": "",
    "SELECT 'a\\'' FROM orders": "",
    "SELECT _utf8'a'": "plain single quotes",
    "SELECT x'00'": "plain single quotes",
    "SELECT a FROM orders PROCEDURE ANALYSE()": "",
    "SELECT SQL_CALC_FOUND_ROWS id FROM orders": "",
    "SELECT * FROM orders LOCK IN SHARE MODE": "read-only",
    "SELECT last_insert_id(5)": "last_insert_id()",
    "SELECT extractvalue(1, '/a')": "extractvalue()",
    "SELECT * FROM orders PARTITION (p0)": "",
    "SELECT user()": "user()",
    "SELECT database()": "database()",
    "SELECT nextval(s)": "nextval()",
    "HANDLER orders OPEN": "Only SELECT",
    "DO sleep(1)": "Only SELECT",
    "CALL p()": "Only SELECT",
}
# Hidden columns don't exist: neither for the query nor for what it is made of.
BOTH_HIDE = [
    "SELECT salary FROM staff",
    "SELECT s.salary FROM staff AS s",
    "SELECT name FROM staff ORDER BY salary",
    "SELECT count(*) FROM staff WHERE salary > 10",
    "SELECT name FROM staff GROUP BY name HAVING max(salary) > 1",
    "SELECT 1 FROM staff a JOIN staff b USING (salary)",
    "SELECT (SELECT salary) FROM staff",
    "SELECT a.salary FROM (SELECT * FROM staff) a",
    "WITH a AS (SELECT * FROM staff) SELECT salary FROM a",
    "SELECT sum(salary) OVER () FROM staff",
    "SELECT nmae FROM staff",
]
POSTGRESQL_HIDES = [
    *BOTH_HIDE,
    'SELECT "salary" FROM staff',
    'SELECT "nmae" FROM customers',
    "SELECT (s).salary FROM staff s",
    "SELECT l.salary FROM orders o JOIN LATERAL (SELECT * FROM staff) l ON true",
    "SELECT xmin FROM staff",
    "SELECT public.staff.salary FROM staff",
]
MYSQL_HIDES = [*BOTH_HIDE, "SELECT `salary` FROM staff", "SELECT `nmae` FROM customers"]
# Without the first layer: no table without its schema, no write, no long query.
POSTGRESQL_ALONE = [
    "SELECT token FROM tokens",
    "WITH a AS (INSERT INTO public.orders VALUES (9) RETURNING *) SELECT * FROM a",
    "WITH a AS (SELECT * FROM tokens), tokens AS (SELECT 1) SELECT * FROM a",
    "SELECT 1; DELETE FROM public.orders",
    "SELECT leak()",
    "SELECT pg_sleep(30)",
    "SELECT set_config('transaction_read_only', 'off', false)",
]
MYSQL_ALONE = [
    "SELECT token FROM tokens",
    "DELETE FROM shop.orders",
    "INSERT INTO shop.orders (id) VALUES (9)",
    "SELECT 1; DELETE FROM shop.orders",
    "SELECT leak()",
    "SELECT count(*) FROM shop.numbers a, shop.numbers b, shop.numbers c",
    "SELECT 1 INTO OUTFILE '/tmp/ashiato-test'",
    "DROP TABLE shop.orders",
]


@contextmanager
def _served(kind):
    folder = Path(tempfile.mkdtemp(prefix="ashiato-db-"))
    folder.chmod(0o755)
    try:
        server = kind(folder / "s")
        server.start()
    except NotThere as missing:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(str(missing))
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def postgresql():
    with _served(PostgreSQL) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(POSTGRESQL_SHOP)
        yield ServerAddress(
            kind=DatabaseKind.POSTGRESQL,
            host=str(server.folder),
            database="postgres",
            user="reader",
            password=PASSWORD,
        )


@pytest.fixture(scope="module")
def mysql():
    with _served(MariaDB) as server:
        many = pymysql.constants.CLIENT.MULTI_STATEMENTS
        root = pymysql.connect(unix_socket=str(server.socket), user="root", client_flag=many)
        with root, root.cursor() as cursor:
            cursor.execute(MYSQL_SHOP)
            while cursor.nextset():
                pass
            root.commit()
        yield ServerAddress(
            kind=DatabaseKind.MYSQL,
            host=str(server.socket),
            database="shop",
            user="reader",
            password=PASSWORD,
        )


def tool_for(address, schema, **options):
    return ServerDatabaseTool(address, schema, ALLOWED, **{"timeout": 10, **options})


@pytest.fixture(scope="module")
def postgresql_tool(postgresql):
    return tool_for(postgresql, asyncio.run(inspect(postgresql)).schema)


@pytest.fixture(scope="module")
def mysql_tool(mysql):
    return tool_for(mysql, asyncio.run(inspect(mysql)).schema)


async def answer(tool, sql):
    result = await tool.execute({"sql": sql})
    assert not result.is_error, (sql, result.error)
    return json.loads(result.output)["rows"]


@pytest.mark.parametrize(("sql", "rows"), one_in(12, POSTGRESQL_ANSWERS.items()))
async def test_postgresql_answers(postgresql_tool, sql, rows):
    assert await answer(postgresql_tool, sql) == rows


@pytest.mark.parametrize(("sql", "rows"), one_in(12, MYSQL_ANSWERS.items()))
async def test_mariadb_answers(mysql_tool, sql, rows):
    assert await answer(mysql_tool, sql) == rows


async def refuse(tool, sql, reason):
    result = await tool.execute({"sql": sql})

    assert reason in (result.error or "answered")
    assert result.mendable
    assert "hidden" not in result.error


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'public.tokens'::regclass",
        "SELECT CAST('leak' AS regproc)",
        "SELECT regtype 'tokens'",
        """SELECT 'tokens'::"regclass\"""",
        "SELECT 'leak()'::pg_catalog.regprocedure",
        "SELECT '{tokens}'::regclass[]",
        "SELECT ('tokens' || '')::text::regclass::oid",
        "SELECT regclass('tokens')",
        "SELECT to_regclass('tokens')",
        "SELECT NULL::tokens",
        "SELECT NULL::public.tokens",
        "SELECT 'reader'::regrole",
        "SELECT 1::oid",
        "SELECT '0/0'::pg_lsn",
    ],
)
def test_no_type_tells_whether_a_name_exists(sql):
    with pytest.raises(sql_guard.QueryRefused, match="isn't allowed|Invalid"):
        sql_guard.validate(sql, Schema(kind=DatabaseKind.POSTGRESQL, tables=()))


def test_built_in_types_are_allowed():
    types = "text varchar(9) numeric(4,2) bigint date timestamptz interval jsonb uuid bytea"
    casts = ", ".join(f"NULL::{name}" for name in types.split())

    query = sql_guard.validate(
        f"SELECT {casts}, '{{1}}'::int[], 'regclass'",
        Schema(kind=DatabaseKind.POSTGRESQL, tables=()),
    )

    assert "bytea" in query.sql


@pytest.mark.parametrize(("sql", "reason"), one_in(3, POSTGRESQL_REFUSES.items()))
async def test_postgresql_queries_that_are_refused(postgresql_tool, sql, reason):
    await refuse(postgresql_tool, sql, reason)


@pytest.mark.parametrize(("sql", "reason"), one_in(3, MYSQL_REFUSES.items()))
async def test_mariadb_queries_that_are_refused(mysql_tool, sql, reason):
    await refuse(mysql_tool, sql, reason)


@pytest.mark.parametrize("sql", one_in(8, POSTGRESQL_HIDES))
async def test_postgresql_finds_no_hidden_column(postgresql_tool, sql):
    result = await postgresql_tool.execute({"sql": sql})

    assert "4711" not in result.text
    assert result.is_error
    assert result.mendable


@pytest.mark.parametrize("sql", one_in(8, MYSQL_HIDES))
async def test_mariadb_finds_no_hidden_column(mysql_tool, sql):
    result = await mysql_tool.execute({"sql": sql})

    assert "nknown column" in result.error
    assert result.mendable


@pytest.mark.parametrize("sql", one_in(4, POSTGRESQL_ALONE))
async def test_the_postgresql_worker_holds_without_the_guard(postgresql_tool, sql):
    quick = tool_for(postgresql_tool.address, postgresql_tool.schema, timeout=2)

    result = await _ask(quick, sql)

    assert result.is_error or json.loads(result.output)["rows"] == [["off"]]
    assert await answer(postgresql_tool, "SELECT count(*) FROM orders") == [[3]]


@pytest.mark.parametrize("sql", one_in(4, MYSQL_ALONE))
async def test_the_mariadb_worker_holds_without_the_guard(mysql_tool, sql):
    quick = tool_for(mysql_tool.address, mysql_tool.schema, timeout=2)

    assert (await _ask(quick, sql)).is_error
    assert await answer(mysql_tool, "SELECT count(*) FROM orders") == [[3]]


async def _ask(tool, sql):
    try:
        return await tool.ask(GuardedQuery(sql=sql))
    except TimeoutError:
        return await tool.execute({"sql": "SELECT nothing"})


async def test_a_report_has_tables_columns_and_estimates(postgresql):
    report = await inspect(postgresql)

    assert report.version.startswith("PostgreSQL ")
    assert report.powers == ()
    assert "archive.boxes" in report.schema.names()
    orders = report.schema.limited_to({"orders": None}).tables[0]
    assert [column.type for column in orders.columns][2:4] == ["date", "numeric(9,2)"]
    assert orders.columns[1].references == ("customers", "id")


async def test_a_description_has_the_allowed_columns_and_the_administrators_words(mysql):
    report = await inspect(mysql)
    tool = tool_for(mysql, report.schema, introduction="Orders of the shop.")

    assert report.version.startswith("MariaDB ")
    assert tool.description.startswith("Orders of the shop.\nReads a database with one SQL")
    assert "MySQL dialect" in tool.description
    assert "staff(id int(11), name varchar(50))" in tool.description
    assert "customer_id int(11) → customers.id" in tool.description
    assert "tokens" not in tool.description
    assert "`Mixed Case`(`The Note` text)" in tool.description


async def test_what_a_user_could_change_is_reported(postgresql, mysql):
    owner = ServerAddress(
        kind=DatabaseKind.POSTGRESQL, host=postgresql.host, database="postgres", user="ashiato"
    )

    assert "SUPERUSER" in (await inspect(owner)).powers
    assert (await inspect(mysql)).powers == ("EXECUTE ON `shop`.*",)


async def test_a_wrong_password_is_a_sentence(mysql):
    stranger = ServerAddress(
        kind=DatabaseKind.MYSQL, host=mysql.host, database="shop", user="reader", password="no"
    )

    with pytest.raises(ConnectionFailed, match=r"Can't connect to MySQL: Access denied.*\.$"):
        await inspect(stranger)


@pytest.mark.parametrize("host", ["169.254.169.254", "::ffff:169.254.169.254", "0.0.0.0"])
async def test_addresses_of_cloud_services_are_blocked(host):
    place = ServerAddress(kind=DatabaseKind.MYSQL, host=host, database="a", user="b")

    with pytest.raises(ConnectionFailed, match="blocked"):
        await inspect(place)


async def test_a_server_that_is_not_there_is_a_sentence(unused_tcp_port):
    place = ServerAddress(
        kind=DatabaseKind.POSTGRESQL,
        host="127.0.0.1",
        port=unused_tcp_port,
        database="a",
        user="b",
        tls="off",
    )

    with pytest.raises(ConnectionFailed, match="Can't connect to PostgreSQL: .*refused"):
        await inspect(place)


BOMB = "SELECT count(*) FROM numbers a, numbers b, numbers c"


async def test_a_late_query_ends_on_the_server_too(postgresql_tool):
    quick = tool_for(postgresql_tool.address, postgresql_tool.schema, timeout=1)

    result = await quick.execute({"sql": BOMB})

    assert "timed out" in result.error
    activity = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ashiato'"
    place = f"postgresql://ashiato@/postgres?host={quick.address.host}"
    with psycopg.connect(place, autocommit=True) as root:
        async with asyncio.timeout(10):
            while root.execute(activity).fetchone() != (0,):  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def test_no_password_is_in_the_workers_arguments_or_environment(mysql_tool):
    process = psutil.Process()
    others = set(process.children())
    task = asyncio.create_task(mysql_tool.execute({"sql": BOMB}))
    async with asyncio.timeout(10):
        while not (found := [one for one in process.children() if one not in others]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)

    seen = str([found[0].cmdline(), found[0].environ()])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert PASSWORD not in seen
    assert not [one for one in process.children() if one not in others]


async def test_rows_are_limited(postgresql_tool):
    two = tool_for(postgresql_tool.address, postgresql_tool.schema, max_rows=2)

    found = json.loads((await two.execute({"sql": "SELECT n FROM numbers"})).output)

    assert (len(found["rows"]), found["truncated"]) == (2, True)


async def test_a_changed_schema_is_read_again(postgresql):
    whole = (await inspect(postgresql)).schema

    async def load():
        return whole

    tool = tool_for(postgresql, whole.limited_to({"customers": None}), load_schema=load)

    assert await answer(tool, "SELECT name FROM staff") == [["Dee"]]
