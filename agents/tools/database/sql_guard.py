"""The first layer of the SQL sandbox: checks a query before anything runs it.

It helps the model too: a rejection says what would be right. Tables are written out with their
full names, and those with hidden columns as a subquery of the others, so that a server finds
nothing else by name. A query that gets past it by a parser difference meets the worker.
"""

import re
from collections.abc import Iterator
from textwrap import shorten

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from agents.engine.sentences import Sentence as _

from .dialects import GRAMMAR_WORDS, DatabaseKind, Dialect
from .guarded_query import GuardedQuery, QueryRefused
from .schema import Name, Schema, Table
from .sql_worker import fold_case

MAX_QUERY_CHARS = 20_000
COMMENT = re.compile(r"--|/\*")
SELECT_START = re.compile(r"[\s(]*(?:select|with|values)\b", re.IGNORECASE)
INVALID_CHARS = re.compile("[\x00\ud800-\udfff]")
PREFIXED_TEXT = re.compile(r"[\w&]''")
WIDE_FORMAT = re.compile(r"\*|\d{3}")
TEXT_TOKENS = (TokenType.STRING, TokenType.IDENTIFIER)
# Calls that return rows, so that a query can select from them.
ROW_FUNCTIONS = (exp.Unnest, exp.GenerateSeries, exp.ExplodingGenerateSeries)
SUBQUERY_TEMPLATE = "(SELECT {columns} FROM {name})"
PLAIN_TABLE_PARTS = {"this", "alias", "db", "joins", "laterals"}


def validate(sql: str, schema: Schema) -> GuardedQuery:
    """Return the query if it is one SELECT over these tables; raise QueryRefused."""
    dialect = schema.dialect
    # Models add a fence and a semicolon.
    sql = sql.strip()
    if sql.startswith("```"):
        sql = re.sub(r"\A(?:sql(?:ite)?|mysql|postgres(?:ql)?)\b", "", sql.strip("`"))
    sql = sql.strip().rstrip("; \t\r\n")
    _check_text(sql, dialect)
    if dialect.kind == DatabaseKind.SQLITE:
        sql = dialect.quoted.sub(_quote_identifier, sql)
    tree = _parse(sql, dialect)
    check = _Check(sql, schema)
    for node in tree.walk():
        check.node(node)
    if dialect.is_server:
        _check_tokens(sql, tree, dialect)
    return GuardedQuery(sql=check.with_full_names())


def _quote_identifier(quoted: re.Match[str]) -> str:
    """Replace double quotes by quotes that SQLite only reads as a name.

    It takes an unknown name in double quotes for a string, so a misspelled column would be
    compared, counted and summed as text.
    """
    text = quoted[0]
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    name = text[1:-1].replace('""', '"')
    return "`" + name.replace("`", "``") + "`"


def _check_text(sql: str, dialect: Dialect) -> None:
    if not sql:
        raise QueryRefused(_("Enter a SELECT statement."))
    if len(sql) > MAX_QUERY_CHARS:
        raise QueryRefused(
            _(
                "The query is %(length)s characters long; the limit is %(limit)s.",
                length=f"{len(sql):,}",
                limit=f"{MAX_QUERY_CHARS:,}",
            )
        )
    if INVALID_CHARS.search(sql):
        raise QueryRefused(_("The query contains an invalid character."))
    outside = dialect.quoted.sub("''", sql)
    if COMMENT.search(outside) or ("#" in outside and "#" in dialect.forbidden_chars):
        raise QueryRefused(
            _("Comments aren't allowed. Remove -- and /* */ (and write a - -1, not a--1).")
        )
    if ";" in outside:
        raise QueryRefused(_("Only one statement is allowed. Send the first one by itself."))
    if not SELECT_START.match(outside):
        raise QueryRefused(
            _("Only SELECT (or WITH … SELECT) is allowed. This tool is read-only.")
        )
    if not dialect.is_server:
        return
    # A server could read this in another way than the parser.
    for character in dialect.forbidden_chars:
        if character in outside:
            raise QueryRefused(
                _(
                    "%(sign)s isn't allowed outside of quotes. Variables and "
                    "parameters aren't supported.",
                    sign=character,
                )
            )
    if PREFIXED_TEXT.search(outside):
        raise QueryRefused(
            _("Write text in plain single quotes, without E, N, U& or X before them.")
        )
    is_mysql = dialect.kind == DatabaseKind.MYSQL
    if is_mysql and any(quoted[0][0] == '"' for quoted in dialect.quoted.finditer(sql)):
        raise QueryRefused(
            _(
                "Double quotes aren't allowed, because MySQL reads them as text. "
                "Put text in single quotes and names in backticks."
            )
        )


def _parse(sql: str, dialect: Dialect) -> exp.Expression:
    try:
        tree = sqlglot.parse_one(sql, read=dialect.parser)
    except SqlglotError as error:
        sentence = _("Invalid %(kind)s query.", kind=dialect.label)
        if problems := getattr(error, "errors", ()):
            sentence = _(
                "Invalid %(kind)s query (line %(line)s, near %(words)s).",
                kind=dialect.label,
                line=problems[0]["line"],
                words=repr(problems[0]["highlight"]),
            )
        raise QueryRefused(sentence) from error
    except RecursionError:
        raise QueryRefused(_("The query is nested too deeply. Simplify it.")) from None
    if not isinstance(tree, exp.Query | exp.Values):
        raise QueryRefused(
            _("Only SELECT (or WITH … SELECT) is allowed. This tool is read-only.")
        )
    return tree


class _Check:
    """Checks the nodes of one query, and collects its tables."""

    def __init__(self, sql: str, schema: Schema) -> None:
        self.sql = sql
        self.schema = schema
        self.names = {fold_case(table.name) for table in schema.tables}
        self.tables: list[tuple[exp.Table, Table]] = []

    def node(self, node: exp.Expression) -> None:
        match node:
            case exp.DML() | exp.DDL() | exp.Into() | exp.Command() | exp.Pragma() | exp.Lock():
                raise QueryRefused(_("This tool is read-only. Remove what changes data."))
            case exp.Placeholder() | exp.Parameter() | exp.SessionParameter():
                raise QueryRefused(
                    _("Parameters aren't supported. Write the values into the query.")
                )
            case exp.Table():
                self._table(node)
                self._alias(node)
            case exp.CTE() | exp.Subquery():
                self._alias(node)
            case exp.In() if node.args.get("field"):
                raise QueryRefused(_("Use parentheses: IN (SELECT column FROM table)."))
            case exp.DataType():
                _check_type(node, self.schema.dialect)
            case exp.Func():
                _check_function(node, self.sql, self.schema.dialect)

    def _table(self, table: exp.Table) -> None:
        if not isinstance(table.this, exp.Identifier):
            if self.schema.dialect.is_server and isinstance(table.this, ROW_FUNCTIONS):
                return
            raise QueryRefused(_("Functions can't be used as tables. Select from a table."))
        name = fold_case(table.name)
        if not table.db and any(fold_case(cte.alias) == name for cte in _visible_ctes(table)):
            if any(fold_case(cte.alias) == name for cte in _ancestors(table, exp.CTE)):
                raise QueryRefused(
                    _(
                        "%(name)s refers to itself. Rename that part of the query. "
                        "Recursive queries aren't supported.",
                        name=repr(table.name),
                    )
                )
            return
        if not table.db and name == "dual" and self.schema.kind == DatabaseKind.MYSQL:
            return
        schema_node = table.args.get("db")
        table_name = Name(table.name, bool(table.this.quoted))
        schema_name = Name(schema_node.name, bool(schema_node.quoted)) if schema_node else None
        allowed_table = None if table.catalog else self.schema.find(table_name, schema_name)
        if allowed_table is None:
            listed = shorten(", ".join(sorted(self.schema.names())), 500, placeholder=" …")
            raise QueryRefused(
                _(
                    "There is no table %(name)s. Available tables: %(names)s.",
                    name=repr(table.name),
                    names=listed,
                )
            )
        if (
            extra_parts := {key for key, value in table.args.items() if value}
            - PLAIN_TABLE_PARTS
        ):
            raise QueryRefused(
                _(
                    "Only the name of a table is supported here, not %(words)s.",
                    words=repr(min(extra_parts)),
                )
            )
        self.tables.append((table, allowed_table))

    def _alias(self, node: exp.Expression) -> None:
        """Reject an alias that is a table's name, so that it can't be mistaken for it."""
        alias = fold_case(node.alias)
        is_same = isinstance(node, exp.Table) and fold_case(node.name) == alias
        if alias in self.names and not is_same:
            raise QueryRefused(
                _(
                    "%(name)s is the name of a table. Rename this part of the query.",
                    name=repr(node.alias),
                )
            )

    def with_full_names(self) -> str:
        """Return the query with each table's full name, or the subquery that stands for it."""
        sql = self.sql
        dialect = self.schema.dialect
        # From the end, so that positions stay right.
        for node, table in sorted(self.tables, key=lambda pair: -_start(pair[0])):
            if not table.hides and not dialect.is_server:
                continue
            source = self.schema.full_name(table)
            if table.hides:
                columns = ", ".join(dialect.quote(column.name) for column in table.columns)
                source = SUBQUERY_TEMPLATE.format(columns=columns, name=source)
            end = node.this.meta["end"] + 1
            alias = "" if node.alias else f" AS {sql[node.this.meta['start'] : end]}"
            sql = sql[: _start(node)] + source + alias + sql[end:]
        return sql


def _start(table: exp.Table) -> int:
    first = table.args.get("db") or table.this
    return int(first.meta["start"])


def _visible_ctes(node: exp.Expression) -> Iterator[exp.CTE]:
    for query in _ancestors(node, exp.Expression):
        if with_clause := query.args.get("with_"):
            yield from with_clause.expressions


def _ancestors(node: exp.Expression, kind: type) -> Iterator[exp.Expression]:
    while node := node.parent:
        if isinstance(node, kind):
            yield node


def _check_function(call: exp.Func, sql: str, dialect: Dialect) -> None:
    if isinstance(call, exp.Anonymous):
        name = fold_case(str(call.name))
    elif "start" in call.meta:
        name = fold_case(sql[call.meta["start"] : call.meta["end"] + 1].strip('"`[]'))
    else:
        return  # CASE, CAST, AND and the like: grammar, not function names
    if name != "->" and name not in dialect.functions:
        raise QueryRefused(_not_allowed(name, dialect))
    is_mysql = dialect.kind == DatabaseKind.MYSQL  # whose FORMAT() is for numbers
    if name in ("printf", "format") and not is_mysql:
        form = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
        if not isinstance(form, exp.Literal) or WIDE_FORMAT.search(form.name):
            raise QueryRefused(
                _("%(name)s() needs a plain format, e.g. '%%.2f' or '%%05d'.", name=name)
            )


def _check_type(data_type: exp.DataType, dialect: Dialect) -> None:
    """Reject types that look a name up: whether there is such a type, table or function.

    The parser knows the built-in types; every table is a type too, and to `regclass` and the
    like it gives no type of its own.
    """
    if dialect.kind != DatabaseKind.POSTGRESQL:
        return
    kind = data_type.this
    if not isinstance(kind, exp.DataType.Type) or kind is exp.DataType.Type.USERDEFINED:
        raise QueryRefused(_type_not_allowed(data_type.sql(dialect.parser).lower()))


def _type_not_allowed(name: str) -> str:
    return _(
        "The type %(name)s isn't allowed. Use a built-in type such as "
        "text, integer, numeric, date or timestamp, or leave out the cast.",
        name=name,
    )


def _not_allowed(name: str, dialect: Dialect) -> str:
    return _(
        "The function %(name)s() isn't allowed. Use %(kind)s's aggregate, "
        "window, text, number, date and JSON functions.",
        name=name,
        kind=dialect.label,
    )


def _check_tokens(sql: str, tree: exp.Expression, dialect: Dialect) -> None:
    """Check a query for a server once more, word by word, without trusting the tree."""
    tokens = sqlglot.tokenize(sql, read=dialect.parser)
    quoted_spans = {(match.start(), match.end() - 1) for match in dialect.quoted.finditer(sql)}
    token_spans = {(t.start, t.end) for t in tokens if sql[t.start] in "'\"`"}
    if token_spans != quoted_spans:
        raise QueryRefused(_("Write a quote inside of text as two single quotes ('')."))
    # With a list of columns: WITH a(x) AS …
    aliases = {
        alias.this.meta.get("start") for alias in tree.find_all(exp.TableAlias) if alias.this
    }
    texts = [token.text for token in tokens]
    previous_texts = ["", *texts[:-1]]
    following_texts = [*texts[1:], ""]
    neighbours = zip(previous_texts, tokens, following_texts, strict=True)
    for previous, token, following in neighbours:
        name = fold_case(token.text).rpartition(" ")[2]
        is_quoted = token.token_type in TEXT_TOKENS
        if name in dialect.lookup_types and sql[token.start] != "'":
            raise QueryRefused(_type_not_allowed(name))
        if name in dialect.forbidden_words and not is_quoted and previous != ".":
            raise QueryRefused(
                _("%(name)s isn't allowed. If it is a name, put it in quotes.", name=repr(name))
            )
        is_named = name[:1].isalpha() or is_quoted
        is_call = following == "(" and is_named and sql[token.start] != "'"
        if is_call and token.start not in aliases:
            allowed = dialect.functions if is_quoted else dialect.functions | GRAMMAR_WORDS
            if previous == "." or name not in allowed:
                raise QueryRefused(_not_allowed(name, dialect))
