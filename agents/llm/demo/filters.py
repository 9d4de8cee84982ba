"""The conditions in a question: states, places, names and amounts."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date

from . import cues, words
from . import period as periods
from .history import Question
from .request import Filter
from .schema import MONEY, PRICE, Column, Schema, Table

_NOT = re.compile(r"\b(?:not|never|excluding|except|without|other than)\b|除|以外|ていない")
_OVER = re.compile(
    r"\b(?:(?P<more>over|above|more than|greater than|at least|exceeding)"
    r"|(?P<less>under|below|less than|cheaper than|at most))"
    r" [$¥€]?(?P<number>\d[\d,]*(?:\.\d+)?)(?![\d%])"
)
_OVER_JA = re.compile(r"(\d[\d,]*(?:\.\d+)?)円?(以上|以下|未満|超|より[大高多]|より[小安少低])")
_SIGNS_JA = {
    "以上": ">=",
    "以下": "<=",
    "未満": "<",
    "超": ">",
    "より大": ">",
    "より高": ">",
    "より多": ">",
}
_WORD_JA = r"[^\s、。?？「」のはがをにで]{1,20}"
_NAME = re.compile(
    r"[\"“「『](?P<quoted>[^\"”」』]{1,60})[\"”」』]"
    r"|(?<=[^\s.?!] )(?P<capital>[A-ZÀ-Þ][\w'&-]+(?:\s+[A-ZÀ-Þ][\w'&-]+){0,3})"
    r"|\b(?:of|for|from|in|by) (?P<said>[a-z'&-]{3,}(?: [a-z'&-]{3,})?)"
    r"(?=\s*(?:$|[?.!,]|\bin\b|\bby\b))"
    r"|\b(?P<before>[a-z'&-]{3,}) (?=(?P<noun>[a-z]+))"
    rf"|(?P<japanese>{_WORD_JA}(?: {_WORD_JA})?)の(?=(?P<thing>\S{{1,6}}))"
)
_SIGNS = r"[\u3005\u3041-\u30ff\u4e00-\u9fff]{1,20}"
_NAME_JA = re.compile(rf"{_SIGNS}(?: {_SIGNS})?")
_LITTLE_WORDS = """
    all any each every our my your their his her its the a an this that these those some other
    different distinct unique new old single whole entire me us we you they them it who what
    which how many much more most less least than and or not do does did is are was were be been
    have has had can could will would should there here in on of for from by to with without at
    about between during since until per each last first next previous recent past full total
    time times date dates today yesterday now ever far general detail details course stock sale
    world shop store database data system company business table tables list record records
    row rows everyone everything anyone people please share part ones one two three four
    five six seven eight nine ten hundred thousand top best worst bottom cheapest biggest
    largest smallest highest lowest newest latest oldest earliest expensive popular placed made
    year years month months week weeks day days quarter monthly yearly annual daily
    show give tell display compare want need get got see say ask know think i'd i've
"""
_KNOWN = frozenset(_LITTLE_WORDS.split())
_KNOWN_JA = re.compile(
    r"全|すべ|店|会社|弊社|当社|うち|私|これ|それ|あれ|今|過去|最|人気|各|毎|年|月|日|期間|通算|一番|上位|下位"
    r"|トップ|ベスト|ワースト|合計|平均|総|数|額|以上|以下|未満|より|順|別|ごと|た$|い$|\d"
)


def find(question: Question, schema: Schema, base: Table, today: date) -> Iterator[Filter]:
    """The conditions that rows of this table can be held to."""
    text = question.plain
    yield from _states(text, schema, base)
    yield from _places(text, schema, base)
    for name in names(question, schema, today):
        yield from _anywhere(name, schema, base)
    yield from _bounds(text, base)


def names(question: Question, schema: Schema, today: date) -> list[str]:
    """What stands where a name would, and is no word that is known."""
    text = " ".join(unicodedata.normalize("NFKC", question.text).split())
    found = [_unknown(match, schema, today) for match in _NAME.finditer(text)]
    found += [] if question.is_japanese else _foreign_names(text, schema)
    return list(dict.fromkeys(name for name in found if name))


def never_ordered(table: Table, ledger: Table, period: periods.Period | None) -> Filter | None:
    """Rows that no row of the ledger refers to, in a period or at all."""
    refers = [c for c in ledger.references if c.reference and c.reference[0] == table.name]
    if not refers:
        return None
    column, dated = refers[0].name, ledger.date
    conditions = [f"{column} IS NOT NULL"]
    if period and dated:
        conditions += [f"{dated.name} >= '{period.start}'", f"{dated.name} < '{period.end}'"]
    taken = f"SELECT {column} FROM {ledger.name} WHERE {' AND '.join(conditions)}"
    noun = ledger.noun
    return Filter(
        sql=f"{table.key} NOT IN ({taken})",
        tables=(table.name,),
        english=f"without any {noun}" + (f" {period.english}" if period else ""),
        japanese=(f"{period.japanese}に" if period else "") + f"{words.japanese(noun)}のない",
    )


def limits_amount(text: str) -> bool:
    return bool(_OVER.search(text) or _OVER_JA.search(text))


def places(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The kind and the spellings of each place that is named, in order."""
    found = [
        (match.start(), place)
        for word, place in words.PLACES.items()
        if (match := re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", text))
    ]
    return list(dict.fromkeys(place for _, place in sorted(found)))


def place_column(kind: str, schema: Schema, base: Table) -> Column | None:
    """The column for this kind of thing that rows of the table have or lead to."""
    columns = [c for table in schema.reach(base.name) for c in table.columns]
    return next((column for column in columns if column.means(kind)), None)


def _states(text: str, schema: Schema, base: Table) -> Iterator[Filter]:
    column = place_column("status", schema, base) or place_column("state", schema, base)
    said = [
        (names, japanese)
        for names, (begins, japanese) in words.STATES.items()
        if any(re.search(rf"(?<![a-z]){re.escape(cue)}", text) for cue in begins.split())
    ]
    if column and said:
        negated = bool(_NOT.search(text))
        spelt = [name for names, _ in said for name in names]
        # One row has one state, so several that are said are one or the other.
        yield Filter(
            sql=f"{column} {'NOT ' * negated}IN ({_quoted(spelt)})",
            tables=(column.table,),
            english=f"that were {'not ' * negated}{' or '.join(names[0] for names, _ in said)}",
            japanese=f"{'または'.join(word for _, word in said)}{'以外' * negated}の",
        )


def _places(text: str, schema: Schema, base: Table) -> Iterator[Filter]:
    found = places(text)
    for kind in dict.fromkeys(kind for kind, _ in found):
        column = place_column(kind, schema, base)
        spellings = [names for of, names in found if of == kind]
        if column:
            yield at_place(column, spellings)


def at_place(column: Column, spellings: Sequence[tuple[str, ...]]) -> Filter:
    """Rows at any of these places, each as it may be spelt."""
    return Filter(
        sql=f"{column} IN ({_quoted([n for names in spellings for n in names])})",
        tables=(column.table,),
        english="in " + " and ".join(names[0] for names in spellings),
        japanese="と".join(names[-1] for names in spellings) + "の",
    )


def _unknown(match: re.Match[str], schema: Schema, today: date) -> str:
    """The name without the known words around it; empty where there is no other word in it."""
    if match["quoted"]:
        return match["quoted"].strip()
    thing = match["noun"] or match["thing"]
    if thing and not _is_thing(thing, schema):
        return ""
    said = match["capital"] or match["said"] or match["before"] or match["japanese"]
    left = said.split()
    while left and _is_known(left[-1].lower(), schema, today):
        left.pop()
    while left and _is_known(left[0].lower(), schema, today):
        left.pop(0)
    return " ".join(left).removesuffix("'s")


def _foreign_names(text: str, schema: Schema) -> list[str]:
    """Names in Japanese script inside an English question, but for words that are known."""
    known = [*cues.EVERY, *(words.pattern(noun) for noun in _nouns(schema))]
    return [
        name
        for name in _NAME_JA.findall(text)
        if not places(name) and not any(word.fullmatch(name) for word in known)
    ]


def _is_thing(text: str, schema: Schema) -> bool:
    """Whether it begins with a table or with money, which a name may come before."""
    nouns = (words.pattern(table.noun) for table in schema.tables)
    return any(noun.match(text) for noun in (*nouns, cues.MONEY))


def _is_known(word: str, schema: Schema, today: date) -> bool:
    plain = word.removesuffix("'s")
    return bool(
        plain in _KNOWN
        or any(words.pattern(noun).search(plain) for noun in _nouns(schema))
        or any(cue.search(plain) for cue in cues.EVERY)
        or periods.find(f"in {plain}", today)
        or places(plain)
        or any(plain.startswith(tuple(c.split())) for c, _ in words.STATES.values())
        or (not plain.isascii() and _KNOWN_JA.search(plain))
    )


def _nouns(schema: Schema) -> list[str]:
    columns = [word for column in schema.columns for word in (column.name, *column.words)]
    return [table.noun for table in schema.tables] + [w for w in columns if len(w) > 2]


def _anywhere(name: str, schema: Schema, base: Table) -> Iterator[Filter]:
    """Rows that have this name in any column that could hold one."""
    tables = schema.reach(base.name)
    columns = [c for table in tables for c in table.columns if c.is_label or c.is_kind]
    if columns:
        yield Filter(
            sql=f"{_quoted([name.lower()])} IN ({', '.join(f'LOWER({c})' for c in columns)})",
            tables=tuple(dict.fromkeys(column.table for column in columns)),
            english=f"for {name}",
            japanese=f"「{name}」の",
            name=name,
        )


def nearest(name: str, schema: Schema, base: Table) -> Filter:
    """Rows that have this name as a part of any column that could hold it."""
    tables = schema.reach(base.name)
    columns = [c for table in tables for c in table.columns if c.is_label]
    like = _quoted([f"%{name.lower()}%"])
    return Filter(
        sql=f"({' OR '.join(f'LOWER({column}) LIKE {like}' for column in columns)})",
        tables=tuple(dict.fromkeys(column.table for column in columns)),
        english=f"for names that contain {name}",
        japanese=f"名前に「{name}」を含むものの",
    )


def _bounds(text: str, base: Table) -> Iterator[Filter]:
    numbers = [column for column in base.columns if column.is_number]
    named = (c for c in numbers if words.pattern(c.words[-1]).search(text))
    column = next(named, None) or base.number(*MONEY, *PRICE)
    for sign, number in _limits(text):
        if column:
            yield Filter(
                sql=f"{column} {sign} {number}",
                tables=(column.table,),
                english=f"with {column.name.replace('_', ' ')} {sign} {number}",
                japanese=f"{words.japanese(column.name)} {sign} {number} の",
            )


def _limits(text: str) -> Iterator[tuple[str, str]]:
    for match in _OVER.finditer(text):
        equal = "=" if match.group().startswith("at ") else ""
        yield (">" if match["more"] else "<") + equal, match["number"].replace(",", "")
    for match in _OVER_JA.finditer(text):
        yield (
            _SIGNS_JA.get(match[2], "<=" if match[2] == "以下" else "<"),
            match[1].replace(",", ""),
        )


def _quoted(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)
