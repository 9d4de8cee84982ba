"""The first layer of the SQL sandbox: checks a query before anything runs it.

It helps the model too: a rejection says what would be right. A query that gets past it by a
parser difference meets `sql_worker`.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from textwrap import shorten

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from agents.engine.errors import ToolError

from .sql_worker import fold_case

MAX_QUERY_CHARS = 20_000

FUNCTION_NAMES = """
    -> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat
    concat_ws cos cosh count cume_dist current_date current_time current_timestamp date
    datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull
    iif instr json json_array json_array_length json_extract json_group_array
    json_group_object json_object json_quote json_type json_valid julianday lag last_value
    lead length like likelihood likely ln log log10 log2 lower ltrim max min mod nth_value
    ntile nullif octet_length percent_rank pi pow power printf quote radians random rank
    replace round row_number rtrim sign sin sinh soundex sqrt strftime string_agg substr
    substring sum tan tanh time timediff total trim trunc typeof unicode unixepoch unlikely
    upper
"""
FUNCTIONS = frozenset(FUNCTION_NAMES.split())

# The closing quote may be missing, so that no text causes repeated scans.
QUOTED_TOKEN = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?""")
COMMENT = re.compile(r"--|/\*")
SELECT_START = re.compile(r"[\s(]*(?:select|with|values)\b", re.IGNORECASE)
INVALID_CHARS = re.compile("[\x00\ud800-\udfff]")
WIDE_FORMAT = re.compile(r"\*|\d{3}")


class QueryRefused(ToolError):
    """This query can't be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedQuery:
    """A query that passed the checks."""

    sql: str


def validate(sql: str, tables: Collection[str]) -> GuardedQuery:
    """Return the query if it is one SELECT over these tables; raise QueryRefused."""
    sql = _strip_fence(sql)
    _check_text(sql)
    sql = QUOTED_TOKEN.sub(_quote_identifier, sql)
    tree = _parse(sql)
    known = {fold_case(name) for name in tables}
    for node in tree.walk():
        _check_node(node, sql, known)
    return GuardedQuery(sql=sql)


def _quote_identifier(quoted: re.Match[str]) -> str:
    """Replace double quotes by quotes that SQLite only reads as a name.

    It takes an unknown name in double quotes for a string, so a misspelled column would be
    compared, counted and summed as text.
    """
    written = quoted[0]
    if len(written) < 2 or written[0] != '"' or written[-1] != '"':
        return written
    name = written[1:-1].replace('""', '"')
    return "`" + name.replace("`", "``") + "`"


def _strip_fence(sql: str) -> str:
    """Remove the fence and the semicolon that models add."""
    sql = sql.strip()
    if sql.startswith("```"):
        sql = sql.strip("`").removeprefix("sql").removeprefix("ite")
    return sql.strip().rstrip("; \t\r\n")


def _check_text(sql: str) -> None:
    if not sql:
        raise QueryRefused("Enter a SELECT statement.")
    if len(sql) > MAX_QUERY_CHARS:
        raise QueryRefused(
            f"The query is {len(sql):,} characters long; the limit is {MAX_QUERY_CHARS:,}."
        )
    if INVALID_CHARS.search(sql):
        raise QueryRefused("The query contains an invalid character.")
    outside = QUOTED_TOKEN.sub("''", sql)
    if COMMENT.search(outside):
        raise QueryRefused(
            "Comments aren't allowed. Remove -- and /* */ (and write a - -1, not a--1)."
        )
    if ";" in outside:
        raise QueryRefused("Only one statement is allowed. Send the first one by itself.")
    if not SELECT_START.match(outside):
        raise QueryRefused("Only SELECT (or WITH … SELECT) is allowed. This tool is read-only.")


def _parse(sql: str) -> exp.Expression:
    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except SqlglotError as error:
        raise QueryRefused(_syntax_message(error)) from error
    except RecursionError:
        raise QueryRefused("The query is nested too deeply. Simplify it.") from None
    if not isinstance(tree, exp.Query | exp.Values):
        raise QueryRefused("Only SELECT (or WITH … SELECT) is allowed. This tool is read-only.")
    return tree


def _syntax_message(error: SqlglotError) -> str:
    for first in getattr(error, "errors", ()):
        return f"Invalid SQLite query (line {first['line']}, near {first['highlight']!r})."
    return "Invalid SQLite query."


def _check_node(node: exp.Expression, sql: str, tables: Collection[str]) -> None:
    match node:
        case exp.DML() | exp.DDL() | exp.Into() | exp.Command() | exp.Pragma():
            raise QueryRefused("This tool is read-only. Remove what changes data.")
        case exp.Placeholder() | exp.Parameter():
            raise QueryRefused("Parameters aren't supported. Write the values into the query.")
        case exp.Table():
            _check_table(node, tables)
            _check_alias(node, tables)
        case exp.CTE() | exp.Subquery():
            _check_alias(node, tables)
        case exp.In() if node.args.get("field"):
            raise QueryRefused("Use parentheses: IN (SELECT column FROM table).")
        case exp.Func():
            _check_function(node, sql)


def _check_table(table: exp.Table, tables: Collection[str]) -> None:
    name = fold_case(table.name)
    if not isinstance(table.this, exp.Identifier):
        raise QueryRefused("Functions can't be used as tables. Select from a table.")
    if not table.db and any(fold_case(cte.alias) == name for cte in _visible_ctes(table)):
        if any(fold_case(cte.alias) == name for cte in _ancestors(table, exp.CTE)):
            raise QueryRefused(
                f"{table.name!r} refers to itself. Rename that part of the query. "
                "Recursive queries aren't supported."
            )
        return
    if table.catalog or fold_case(table.db) not in ("", "main") or name not in tables:
        listed = shorten(", ".join(sorted(tables)), 500, placeholder=" …")
        raise QueryRefused(f"There is no table {table.name!r}. Available tables: {listed}.")


def _check_alias(named: exp.Expression, tables: Collection[str]) -> None:
    """Reject an alias that is a table's name, so that it can't be mistaken for the table."""
    alias = fold_case(named.alias)
    is_own = isinstance(named, exp.Table) and fold_case(named.name) == alias
    if alias in tables and not is_own:
        raise QueryRefused(
            f"{named.alias!r} is the name of a table. Rename this part of the query."
        )


def _visible_ctes(node: exp.Expression) -> Iterator[exp.CTE]:
    for query in _ancestors(node, exp.Expression):
        if named := query.args.get("with_"):
            yield from named.expressions


def _ancestors(node: exp.Expression, kind: type) -> Iterator[exp.Expression]:
    while node := node.parent:
        if isinstance(node, kind):
            yield node


def _check_function(call: exp.Func, sql: str) -> None:
    name = _function_name(call, sql)
    if name not in FUNCTIONS:
        raise QueryRefused(
            f"The function {name}() isn't allowed. Use SQLite's aggregate, window, text, "
            "number, date and JSON functions."
        )
    if name in ("printf", "format") and not _has_simple_format(call):
        raise QueryRefused(f"{name}() needs a plain format, e.g. '%.2f' or '%05d'.")


def _function_name(call: exp.Func, sql: str) -> str:
    if isinstance(call, exp.Anonymous):
        return fold_case(str(call.name))
    if "start" in call.meta:
        written = sql[call.meta["start"] : call.meta["end"] + 1]
        return fold_case(written.strip('"`[]'))
    return "->"  # CASE, CAST, AND and the like: grammar, not function names


def _has_simple_format(call: exp.Func) -> bool:
    form = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    return isinstance(form, exp.Literal) and not WIDE_FORMAT.search(form.name)
