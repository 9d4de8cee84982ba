"""Sentences about SQL queries and the databases they read."""

from django.utils.translation import gettext_noop as _

DATABASE_TEMPLATES = (
    _("The query is %(length)s characters long; the limit is %(limit)s."),
    _("Invalid %(kind)s query (line %(line)s, near %(words)s)."),
    _(
        "%(name)s refers to itself. Rename that part of the query. Recursive queries "
        "aren't supported."
    ),
    _("Invalid %(kind)s query."),
    _("Only the name of a table is supported here, not %(words)s."),
    _("%(name)s isn't allowed. If it is a name, put it in quotes."),
    _(
        "The type %(name)s isn't allowed. Use a built-in type such as text, integer, numeric, "
        "date or timestamp, or leave out the cast."
    ),
    _("%(sign)s isn't allowed outside of quotes. Variables and parameters aren't supported."),
    _("There is no table %(name)s. Available tables: %(names)s."),
    _("%(name)s is the name of a table. Rename this part of the query."),
    _(
        "The function %(name)s() isn't allowed. Use %(kind)s's aggregate, window, text, "
        "number, date and JSON functions."
    ),
    _("%(name)s() needs a plain format, e.g. '%%.2f' or '%%05d'."),
    _("SQLite error: %(words)s."),
    _("%(kind)s rejected the query: %(words)s."),
    _("Can't connect to %(kind)s: %(words)s."),
    _("there is no database %(name)s that this user can read"),
    _("The host %(name)s wasn't found."),
    _("%(host)s is blocked: no database is at the address %(address)s."),
    _("The server sent no answer within %(seconds)s s."),
    _("The query timed out after %(seconds)s s. Select less data."),
    _("The database can't be read: %(reason)s."),
    _(
        "The URL must be sqlite:///relative/file.sqlite3 or "
        "sqlite:////absolute/file.sqlite3. This one starts with %(scheme)s."
    ),
    _("Runs SQL queries, but isn't available now. %(why)s"),
    _(
        "Reads a database with one SQL SELECT (%(kind)s dialect; WITH, joins, window and "
        "date functions work; no comments, no recursion) and returns JSON: columns, rows, "
        "truncated. Returns up to %(limit)s rows: let SQL count, sum and sort. If the "
        "format of a value matters, check it with SELECT DISTINCT first. Tables:\n%(tables)s"
    ),
)
DATABASE_SENTENCES = (
    _("This query can't be run."),
    _("Enter a SELECT statement."),
    _("The query contains an invalid character."),
    _("Comments aren't allowed. Remove -- and /* */ (and write a - -1, not a--1)."),
    _("Only one statement is allowed. Send the first one by itself."),
    _("Only SELECT (or WITH … SELECT) is allowed. This tool is read-only."),
    _("The query is nested too deeply. Simplify it."),
    _("This tool is read-only. Remove what changes data."),
    _("Write text in plain single quotes, without E, N, U& or X before."),
    _(
        "Double quotes aren't allowed, because MySQL reads them as text. Put text in single "
        "quotes and names in backticks."
    ),
    _("Write a quote inside of text as two single quotes ('')."),
    _("Parameters aren't supported. Write the values into the query."),
    _("Use parentheses: IN (SELECT column FROM table)."),
    _("Functions can't be used as tables. Select from a table."),
    _("The query timed out on the server. Select less data."),
    _("Use the names of tables and columns from the tool's description."),
    _("The connection ended before the server answered."),
    _("The query reads a table that isn't available to this tool."),
    _("A value in the result is larger than 1 MB. Leave out that column."),
    _("The query needs too much memory. Select fewer rows."),
    _("The database is locked by a write."),
    _("The database file can't be opened."),
    _("The file isn't an SQLite database."),
    _("The query was stopped before it finished. Select less data."),
    _("The database has no table that is available to this tool."),
    _("One SELECT statement, without comments"),
)
