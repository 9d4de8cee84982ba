"""The second layer for servers: a confined process for one request, killed when it is late.

It is started by path and with an empty environment. It reads one JSON request with the
connection's credentials from standard input, opens a read-only transaction in which tables have
no short names, and writes one JSON reply.
"""

import json
import math
import os
import socket
import ssl
import sys
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from itertools import groupby
from typing import Any

from agents.engine.sentences import Sentence, joined, pack
from agents.engine.sentences import Sentence as _

MAX_CELL_CHARS = 2_000
MAX_OUTPUT_CHARS = 250_000
MAX_COLUMNS = 20_000
MEMORY_BYTES = 2**30
READ_ONLY = _("This tool is read-only. Remove what changes data.")
TIMED_OUT = _("The query timed out on the server. Select less data.")
NAMES_HINT = _("Use the names of tables and columns from the tool's description.")


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    try:
        reply = SERVERS[request["kind"]](request).answer()
    except ServerError as error:
        reply = {
            "error": pack(error.sentence),
            "mendable": error.mendable,
            "stage": error.stage,
        }
    except MemoryError:
        sentence = _("The query needs too much memory. Select fewer rows.")
        reply = {"error": pack(sentence), "mendable": True, "stage": "query"}
    sys.stdout.buffer.write(json.dumps(reply, ensure_ascii=False).encode())
    sys.stdout.flush()
    os._exit(0)  # without reading the rest of a long result


class ServerError(Exception):
    """What went wrong, and whether another query could help."""

    def __init__(self, sentence: str, *, mendable: bool, stage: str = "query") -> None:
        self.sentence = sentence
        self.mendable = mendable
        self.stage = stage


class _Server:
    """A connection that can only read."""

    label = ""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.server = request["server"]
        self.seconds = request["seconds"]

    def answer(self) -> dict[str, Any]:
        self.open()
        if self.request["task"] == "query":
            return self.query(self.request["sql"], self.request["max_rows"])
        return {"schema": self.schema(), "version": self.version(), "powers": self.powers()}

    def open(self) -> None:
        raise NotImplementedError

    def query(self, sql: str, max_rows: int) -> dict[str, Any]:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def version(self) -> str:
        raise NotImplementedError

    def powers(self) -> list[str]:
        """Return what the user could do besides reading, in the database's own words."""
        raise NotImplementedError

    def failed_to_connect(self, error: Exception) -> ServerError:
        reason = str(error)
        if not isinstance(reason, Sentence):  # but the driver's own words
            reason = " ".join(reason.split()).rstrip(".") or type(error).__name__
        sentence = _("Can't connect to %(kind)s: %(words)s.", kind=self.label, words=reason)
        return ServerError(sentence, mendable=False, stage="connect")

    def failed(self, text: str, *, mendable: bool, hint: str = "") -> ServerError:
        text = " ".join(text.split()).rstrip(".")
        sentence: str = _(
            "%(kind)s rejected the query: %(words)s.", kind=self.label, words=text
        )
        if hint:
            sentence = joined(" ", [sentence, hint])
        return ServerError(sentence, mendable=mendable)


class PostgreSQL(_Server):
    label = "PostgreSQL"
    # Syntax and names, values, and what needs another query.
    MENDABLE = ("0A", "21", "22", "2F", "34", "42", "44", "54")

    def open(self) -> None:
        import psycopg

        self.errors = psycopg.Error
        server = self.server
        tls_modes = {"off": "disable", "verify": "verify-full"}
        options = {
            "host": server["host"],
            "hostaddr": server.get("address", ""),
            "port": server["port"],
            "dbname": server["database"],
            "user": server["user"],
            "password": server["password"],
            "sslmode": tls_modes.get(server["tls"], "require"),
            "connect_timeout": max(2, math.ceil(self.seconds)),
            "application_name": "ashiato",
            "client_encoding": "utf8",
        }
        if server["tls"] == "verify" and server["ca"]:
            # The driver only reads files.
            descriptor = os.memfd_create("ca")
            os.write(descriptor, server["ca"].encode())
            options["sslrootcert"] = f"/proc/self/fd/{descriptor}"
        elif server["tls"] == "verify":
            import certifi

            options["sslrootcert"] = certifi.where()
        options = {name: value for name, value in options.items() if value not in ("", None)}
        try:
            self.connection = psycopg.connect(**options, autocommit=True)
            self._restrict()
        except psycopg.Error as error:
            raise self.failed_to_connect(error) from error

    def _restrict(self) -> None:
        """Read only, with a deadline, and with nothing but the system's names."""
        milliseconds = str(math.ceil(self.seconds * 1000))
        settings = {
            "default_transaction_read_only": "on",
            "statement_timeout": milliseconds,
            "lock_timeout": milliseconds,
            "idle_in_transaction_session_timeout": milliseconds,
            "standard_conforming_strings": "on",
            "search_path": "",
        }
        if self.connection.info.server_version >= 140_000:
            settings["client_connection_check_interval"] = "1000"
        for name, value in settings.items():
            try:
                self.connection.execute("SELECT set_config(%s, %s, false)", [name, value])
            except self.errors:
                if name != "client_connection_check_interval":
                    raise  # not every system can look after its clients
        self.connection.execute("BEGIN TRANSACTION READ ONLY")

    def query(self, sql: str, max_rows: int) -> dict[str, Any]:
        try:
            # The extended protocol runs one statement; a cursor sends only what is read.
            self.connection.execute(f"DECLARE result NO SCROLL CURSOR FOR {sql}", prepare=True)
            cursor = self.connection.execute(f"FETCH FORWARD {max_rows + 1} FROM result")
            columns = [column.name for column in cursor.description or ()]
            return _reply(columns, cursor, max_rows)
        except self.errors as error:
            raise self._query_error(error) from error

    def _query_error(self, error: Any) -> ServerError:
        state = error.sqlstate or ""
        if state == "57014":
            return ServerError(TIMED_OUT, mendable=True)
        if state == "25006":
            return ServerError(READ_ONLY, mendable=True)
        text = (error.diag.message_primary if error.diag else "") or str(error)
        hint = NAMES_HINT if state in ("42P01", "42703", "42883") else ""
        return self.failed(text, mendable=state[:2] in self.MENDABLE, hint=hint)

    def version(self) -> str:
        number = self.connection.info.server_version
        return f"PostgreSQL {number // 10_000}.{number % 10_000}"

    def schema(self) -> dict[str, Any]:
        try:
            rows = self.connection.execute(
                POSTGRESQL_COLUMNS_TEMPLATE, [MAX_COLUMNS]
            ).fetchall()
        except self.errors as error:
            raise self._query_error(error) from error
        return {"kind": "postgresql", "tables": list(_tables(rows))}

    def powers(self) -> list[str]:
        rows = self.connection.execute(POSTGRESQL_POWERS_TEMPLATE).fetchall()
        return [str(power) for (power,) in rows]


class MySQL(_Server):
    label = "MySQL"
    # Syntax, names, grouping, values: the query is wrong, not the server.
    MENDABLE = frozenset(
        (1046, 1052, 1054, 1055, 1056, 1060, 1064, 1066, 1096, 1111, 1140, 1142, 1143, 1146)
    ) | frozenset((1149, 1222, 1241, 1242, 1247, 1248, 1305, 1054, 1582, 1630, 3065, 3141))
    SQL_MODE = "ONLY_FULL_GROUP_BY,NO_BACKSLASH_ESCAPES,NO_ENGINE_SUBSTITUTION"
    NAMES = (1052, 1054, 1146, 1046)
    TIMEOUTS = (1969, 3024, 1317, 1205)

    def open(self) -> None:
        from pymysql.connections import Connection
        from pymysql.cursors import SSCursor
        from pymysql.err import Error

        self.errors = Error
        server = self.server
        is_socket = server["host"].startswith("/")
        try:
            self.connection = Connection(
                host="localhost" if is_socket else server["host"],
                port=server["port"],
                unix_socket=server["host"] if is_socket else None,
                user=server["user"],
                password=server["password"].encode(),
                charset="utf8mb4",
                ssl=self._tls(),
                ssl_disabled=server["tls"] == "off" or is_socket,
                connect_timeout=max(2, math.ceil(self.seconds)),
                read_timeout=math.ceil(self.seconds) + 1,
                write_timeout=math.ceil(self.seconds) + 1,
                local_infile=False,
                autocommit=True,
                defer_connect=True,
                cursorclass=SSCursor,
                program_name="ashiato",
            )
            self.connection.connect(None if is_socket else self._socket())
            self._restrict()
        except (Error, OSError) as error:
            raise self.failed_to_connect(_plain(error)) from error

    def _socket(self) -> socket.socket:
        """Connect to the address that was checked; the name is for the certificate."""
        address = (self.server.get("address") or self.server["host"], self.server["port"])
        connection = socket.create_connection(address, timeout=max(2, math.ceil(self.seconds)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        return connection

    def _tls(self) -> ssl.SSLContext | None:
        if self.server["tls"] == "off":
            return None
        context = ssl.create_default_context(cadata=self.server["ca"] or None)
        if self.server["tls"] != "verify":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif not self.server["ca"]:
            import certifi

            context.load_verify_locations(certifi.where())
        return context

    def _restrict(self) -> None:
        is_mariadb = "mariadb" in self.version().lower()
        seconds = max(1, math.ceil(self.seconds))
        if is_mariadb:
            self._execute("SET SESSION max_statement_time = %s", [self.seconds])
        else:
            self._execute("SET SESSION max_execution_time = %s", [seconds * 1000])
        self._execute("SET SESSION lock_wait_timeout = %s", [seconds])
        self._execute("SET SESSION sql_mode = %s", [self.SQL_MODE])
        self._execute("SET SESSION TRANSACTION READ ONLY")
        self._execute("START TRANSACTION READ ONLY")

    def _execute(self, sql: str, values: list[Any] | None = None) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())

    def query(self, sql: str, max_rows: int) -> dict[str, Any]:
        cursor = self.connection.cursor()
        try:
            cursor.execute(sql)
            columns = [column[0] for column in cursor.description or ()]
            return _reply(columns, iter(cursor.fetchone, None), max_rows)
        except self.errors as error:
            raise self._query_error(error) from error

    def _query_error(self, error: Exception) -> ServerError:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        if code in self.TIMEOUTS:
            return ServerError(TIMED_OUT, mendable=True)
        if code == 1792:
            return ServerError(READ_ONLY, mendable=True)
        is_plain = code in self.MENDABLE or 1690 <= code <= 1700 or 3000 <= code < 4200
        hint = NAMES_HINT if code in self.NAMES else ""
        return self.failed(str(_plain(error)), mendable=is_plain, hint=hint)

    def version(self) -> str:
        version = str(self.connection.get_server_info())
        number = version.removeprefix("5.5.5-").partition("-")[0]
        return f"MariaDB {number}" if "mariadb" in version.lower() else f"MySQL {number}"

    def schema(self) -> dict[str, Any]:
        database = self.server["database"]
        try:
            if not self._execute(MYSQL_DATABASE_TEMPLATE, [database]):
                why = _(
                    "there is no database %(name)s that this user can read", name=repr(database)
                )
                raise self.failed_to_connect(ValueError(why))
            rows = self._execute(MYSQL_COLUMNS_TEMPLATE, [database, MAX_COLUMNS])
            ((folding,),) = self._execute("SELECT @@lower_case_table_names")
        except self.errors as error:
            raise self._query_error(error) from error
        return {
            "kind": "mysql",
            "database": database,
            "is_case_sensitive": int(folding) == 0,
            "tables": list(_tables(rows)),
        }

    def powers(self) -> list[str]:
        powers: list[str] = []
        for (grant,) in self._execute("SHOW GRANTS"):
            privileges, _on, target = str(grant).removeprefix("GRANT ").partition(" ON ")
            target = target.partition(" TO ")[0]
            for privilege in privileges.split(", ") if target else []:
                if privilege.partition(" (")[0].lower() not in HARMLESS_ACTIONS:
                    powers.append(f"{privilege} ON {target}")
        return powers[:20]


SERVERS: dict[str, type[_Server]] = {"postgresql": PostgreSQL, "mysql": MySQL}


def _plain(error: Exception) -> Exception:
    """Return a driver's error without its number."""
    is_numbered = len(error.args) > 1 and isinstance(error.args[0], int)
    return ValueError(str(error.args[1])) if is_numbered else error


def _tables(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield tables from rows of columns in their order."""
    for (schema, name, type, estimate), group in groupby(rows, key=lambda row: row[:4]):
        column_rows = list(group)
        yield {
            "schema": schema,
            "name": name,
            "is_view": type == "view",
            "estimate": None if estimate is None or estimate < 0 else int(estimate),
            "hides": not all(row[6] for row in column_rows),
            "columns": [
                {
                    "name": row[4],
                    "type": row[5],
                    "references": [row[7], row[8]] if row[7] else None,
                }
                for row in column_rows
                if row[6]
            ],
        }


def _reply(columns: list[str], rows: Iterable[Any], count: int) -> dict[str, Any]:
    result_rows: list[list[Any]] = []
    chars_left = MAX_OUTPUT_CHARS
    truncated = False
    for values in rows:
        row = [_format_cell(value) for value in values]
        chars_left -= sum(len(str(cell)) + 4 for cell in row)
        if len(result_rows) == count or (result_rows and chars_left < 0):
            truncated = True
            break
        result_rows.append(row)
    return {"columns": columns, "rows": result_rows, "truncated": truncated}


def _format_cell(value: Any) -> Any:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal() if not value.is_finite():
            return None
        case Decimal() if value == value.to_integral_value() and abs(value) < 2**53:
            return int(value)
        case Decimal():  # as a number if JSON can hold it exactly, or its digits
            return float(value) if Decimal(repr(float(value))) == value else str(value)
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
        case datetime() | date() | time():
            return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
        case dict() | list() | tuple():
            value = json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    if len(text) > MAX_CELL_CHARS:
        return f"{text[:MAX_CELL_CHARS]}… ({len(text):,} characters)"
    return text


POSTGRESQL_COLUMNS_TEMPLATE = """
SELECT n.nspname, c.relname, CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END,
    CASE WHEN c.relkind IN ('r', 'p', 'm') THEN c.reltuples::bigint END,
    a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
    pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'),
    CASE WHEN fn.nspname = 'public' THEN f.relname
        ELSE fn.nspname || '.' || f.relname END, fa.attname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN LATERAL (
    SELECT confrelid, confkey[1] AS key FROM pg_catalog.pg_constraint
    WHERE contype = 'f' AND conrelid = c.oid AND conkey = ARRAY[a.attnum] LIMIT 1
) k ON true
LEFT JOIN pg_catalog.pg_class f ON f.oid = k.confrelid
LEFT JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace
LEFT JOIN pg_catalog.pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = k.key
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%%'
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
    AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname <> 'public', n.nspname, c.relname, a.attnum
LIMIT %s
"""
POSTGRESQL_POWERS_TEMPLATE = """
SELECT 'SUPERUSER' FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper
UNION ALL
SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolname IN ('pg_read_server_files',
    'pg_write_server_files', 'pg_execute_server_program', 'pg_write_all_data')
    AND pg_catalog.pg_has_role(current_user, oid, 'MEMBER')
UNION ALL
(SELECT p.name || ' ON ' || n.nspname || '.' || c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('INSERT'), ('UPDATE'), ('DELETE')) p(name)
WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname <> 'information_schema'
    AND n.nspname NOT LIKE 'pg\\_%'
    AND pg_catalog.has_table_privilege(c.oid, p.name) ORDER BY 1 LIMIT 20)
"""
HARMLESS_ACTIONS = ("select", "usage", "show view", "show databases", "references", "process")
MYSQL_DATABASE_TEMPLATE = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
MYSQL_COLUMNS_TEMPLATE = """
SELECT '', t.table_name, IF(t.table_type LIKE '%%VIEW', 'view', 'table'), t.table_rows,
    c.column_name, c.column_type, c.privileges LIKE '%%select%%',
    k.referenced_table_name, k.referenced_column_name
FROM information_schema.tables t
JOIN information_schema.columns c
    ON c.table_schema = t.table_schema AND c.table_name = t.table_name
LEFT JOIN information_schema.key_column_usage k
    ON k.table_schema = c.table_schema AND k.table_name = c.table_name
    AND k.column_name = c.column_name AND k.referenced_table_schema = c.table_schema
WHERE t.table_schema = %s
ORDER BY t.table_name, c.ordinal_position
LIMIT %s
"""

if __name__ == "__main__":
    main()
