"""What differs between SQLite, PostgreSQL and MySQL: quoting, case, and allowed functions."""

import re
from dataclasses import dataclass
from enum import StrEnum


class DatabaseKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"


SQLITE_FUNCTIONS = """
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
# None of these reads files, settings, other tables or sequences, waits, or takes locks.
POSTGRESQL_FUNCTIONS = """
    abs acos age array_agg array_length array_position array_to_string ascii asin atan atan2
    avg bit_length bool_and bool_or btrim cardinality cast cbrt ceil ceiling char_length
    character_length chr coalesce concat concat_ws corr cos cot count covar_pop covar_samp
    cume_dist date date_bin date_part date_trunc degrees dense_rank div every exp extract
    first_value floor format generate_series greatest initcap isfinite json_agg
    json_array_elements json_array_elements_text json_array_length json_build_array
    json_build_object json_each json_each_text json_extract_path json_extract_path_text
    json_object_agg json_object_keys json_typeof jsonb_agg jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object
    jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object_agg
    jsonb_object_keys jsonb_typeof justify_days justify_hours justify_interval lag last_value
    lead least left length ln log log10 lower ltrim make_date make_interval make_time
    make_timestamp make_timestamptz max md5 min mod mode now nth_value ntile nullif
    octet_length overlay percent_rank percentile_cont percentile_disc pi position power
    radians random rank regexp_count regexp_match regexp_replace regexp_substr
    regexp_split_to_array regr_intercept regr_r2 regr_slope replace reverse right round
    row_number row_to_json rtrim sign sin split_part sqrt starts_with stddev stddev_pop
    stddev_samp string_agg string_to_array strpos substr substring sum tan timezone to_char
    to_date to_json to_jsonb to_number to_timestamp translate trim trunc unnest upper var_pop
    var_samp variance width_bucket
"""
MYSQL_FUNCTIONS = """
    abs acos adddate addtime ascii asin atan atan2 avg bit_count bit_length cast ceil ceiling
    char_length character_length coalesce concat concat_ws conv convert convert_tz cos cot
    count crc32 cume_dist curdate current_date current_time current_timestamp curtime date
    date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear degrees
    dense_rank elt exp extract field find_in_set first_value floor format from_days
    from_unixtime greatest group_concat hex hour if ifnull insert instr isnull json_array
    json_arrayagg json_contains json_contains_path json_extract json_keys json_length
    json_object json_objectagg json_quote json_search json_type json_unquote json_valid
    json_value lag last_day last_value lcase lead least left length ln locate log log10 log2
    lower ltrim makedate maketime max md5 mid microsecond min minute mod month monthname now
    nth_value ntile nullif octet_length ord percent_rank period_add period_diff pi position
    pow power quarter radians rand rank regexp_instr regexp_like regexp_replace regexp_substr
    replace reverse right round row_number rtrim sec_to_time second sign sin soundex sqrt std
    stddev stddev_pop stddev_samp str_to_date strcmp subdate substr substring substring_index
    subtime sum tan time time_format time_to_sec timediff timestamp timestampadd
    timestampdiff to_days to_seconds trim truncate ucase unhex unix_timestamp upper
    utc_date utc_time utc_timestamp var_pop var_samp variance week weekday weekofyear year
    yearweek
"""
# Words that can stand before a parenthesis and aren't functions: grammar and types.
GRAMMAR = """
    all and any array as asc between by case cross cube desc distinct else end except exists
    fetch filter first from full group grouping having in inner intersect interval is join
    lateral like ilike limit materialized next not offset on or order outer over partition
    range recursive regexp rlike rollup row rows select separator sets similar some then
    union using values when where window with within xor div
    bigint binary bit char character date datetime decimal double float int integer json
    jsonb numeric real signed smallint text time timestamp timestamptz unsigned uuid varchar
    varying
"""
# Names that are calls without parentheses.
POSTGRESQL_WORDS = {"current_catalog", "current_role", "current_schema", "current_user"}
POSTGRESQL_WORDS |= {"session_user", "system_user", "user"}
# Types whose values are names that the server looks up.
POSTGRESQL_LOOKUP_TYPES = """
    regclass regcollation regconfig regdatabase regdictionary regnamespace regoper regoperator
    regproc regprocedure regrole regtype
"""
MYSQL_WORDS = {"current_role", "current_user", "session_user"}
MYSQL_WORDS |= {"procedure", "sql_calc_found_rows"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a kind of database reads a query."""

    kind: DatabaseKind
    label: str
    parser: str  # its name in sqlglot
    quote_mark: str
    quoted: re.Pattern[str]  # text and names in quotes, also without the closing quote
    functions: frozenset[str]
    forbidden_words: frozenset[str] = frozenset()
    lookup_types: frozenset[str] = frozenset()
    forbidden_chars: str = ""
    # SQLite's own worker decides about everything else; servers have no such hook.
    is_server: bool = True

    def quote(self, name: str) -> str:
        mark = self.quote_mark
        return mark + name.replace(mark, mark * 2) + mark


# The closing quote may be missing, so that no text causes repeated scans.
_TEXT = r"'(?:[^']|'')*'?"
_DOUBLE = r'"(?:[^"]|"")*"?'
_BACKTICK = r"`(?:[^`]|``)*`?"
SQLITE = Dialect(
    kind=DatabaseKind.SQLITE,
    label="SQLite",
    parser="sqlite",
    quote_mark="`",  # only read as a name: double quotes can be text
    quoted=re.compile(rf"{_TEXT}|{_DOUBLE}|{_BACKTICK}|\[[^\]]*\]?"),
    functions=frozenset(SQLITE_FUNCTIONS.split()),
    is_server=False,
)
POSTGRESQL = Dialect(
    kind=DatabaseKind.POSTGRESQL,
    label="PostgreSQL",
    parser="postgres",
    quote_mark='"',
    quoted=re.compile(rf"{_TEXT}|{_DOUBLE}"),
    functions=frozenset(POSTGRESQL_FUNCTIONS.split()),
    forbidden_words=frozenset(POSTGRESQL_WORDS),
    lookup_types=frozenset(POSTGRESQL_LOOKUP_TYPES.split()),
    forbidden_chars="$\\`",
)
MYSQL = Dialect(
    kind=DatabaseKind.MYSQL,
    label="MySQL",
    parser="mysql",
    quote_mark="`",
    quoted=re.compile(rf"{_TEXT}|{_DOUBLE}|{_BACKTICK}"),
    functions=frozenset(MYSQL_FUNCTIONS.split()),
    forbidden_words=frozenset(MYSQL_WORDS),
    forbidden_chars="@#\\$",
)
DIALECTS = {dialect.kind: dialect for dialect in (SQLITE, POSTGRESQL, MYSQL)}
GRAMMAR_WORDS = frozenset(GRAMMAR.split())
