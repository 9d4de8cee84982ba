"""Queries over the sample shop, from the SQL and titles in intents.toml."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .conversation import LIBRARY
from .intents import Slots, span

PAGE = 20  # rows of a list
TOP = 5
_ALIASES = {"orders": "ocp", "customers": "c", "products": "p"}
_DATES = {"orders": "o.ordered_on", "customers": "c.joined_on"}


class ShopQuery(NamedTuple):
    """One SELECT statement, with the title of its result."""

    intent: str
    sql: str
    title: str
    counter: str
    slots: Slots

    @property
    def is_value(self) -> bool:
        return self.intent in ("total", "average", "date")

    def with_slots(self, **changes: Any) -> "ShopQuery":
        return query(self.intent, self.slots._replace(**changes))


def query(intent: str, slots: Slots) -> ShopQuery:
    """Fill an intent's SQL and title from the question."""
    by = _group(slots)
    ja = slots.question.is_japanese
    group, *many = LIBRARY["groups"][by]
    sort = LIBRARY["sorting"][slots.first(LIBRARY["sorting"], "top")]
    lists = ("customer", "product") if intent == "never" else LIBRARY["lists"]
    thing = slots.first(lists, "product" if slots.has("price") else sort[0])
    base, columns, *things = LIBRARY["lists"][thing]
    measure = ""
    measured = ["", ""]
    counter = ""
    if intent in ("total", "ranking", "breakdown"):
        grouped = group if intent != "total" else ""
        base, measure, *measured, counter = _measure(slots, by, grouped)
    elif intent in ("average", "date", "kinds"):
        alias = group[0] if intent == "kinds" else "o"
        base = {"c": "customers", "p": "products"}.get(alias, "orders")
    name = measured[0].removeprefix("number of ").replace(" ", "_")
    is_many = (by if intent == "ranking" else thing) in slots.plurals or "many" in slots.plurals
    limit = slots.limit or (TOP if is_many else 1)
    is_worst = slots.has("bottom")
    is_first = slots.has("first")
    where_clause, filter_text = conditions(slots, "orders" if intent == "never" else base)
    sorting = by if by in ("month", "year") else f"{name} DESC"
    if intent == "extreme":
        sorting = f"{sort[1] or _DATES.get(base)} {sort[2]}"
    fields = {
        "base": base,
        "where": where_clause,
        "columns": columns,
        "thing": thing,
        "group": group,
        "by": by,
        "measure": measure,
        "name": name,
        "direction": "ASC" if is_worst else "DESC",
        "limit": min(limit, 100),
        "key": f"{_ALIASES[base][0]}.id",
        "edge": "MIN" if is_first else "MAX",
        "sorting": sorting,
    }
    group_name = many[1] if ja else by
    group_names = group_name
    if intent == "kinds":
        group_names = many[ja]
    elif limit > 1:
        group_names = f"{many[1]}{limit}件" if ja else f"{limit} {many[0]}"
    if intent == "extreme" and limit == 1:
        things = [thing, things[1]]
    titles = {
        "about": filter_text,
        "measured": measured[ja],
        "things": things[ja],
        "by": group_name,
        "sorted": sort[3 + ja],
        "many": group_names,
        "best": (("多い", "少ない") if ja else ("best", "worst"))[is_worst],
        "edge": (("最後", "最初") if ja else ("last", "first"))[is_first],
    }
    title = LIBRARY["titles"][intent][ja].format_map(titles).strip()
    return ShopQuery(intent, select(intent, fields), title, counter, slots)


def select(name: str, fields: Mapping[str, Any]) -> str:
    """Fill the SQL of this name, with the joins its columns need."""
    sql = LIBRARY["sql"][name].format_map({**fields, "base": "BASE"})
    base = f"{fields['base']} {_ALIASES[fields['base']][0]}"
    for table in ("customers", "products") if base == "orders o" else ():
        join = f"\nJOIN {table} {table[0]} ON {table[0]}.id = o.{table[:-1]}_id"
        base += join if re.search(rf"\b{table[0]}\.", sql) else ""
    return str(sql.replace("BASE", base))


def conditions(slots: Slots, base: str) -> tuple[str, str]:
    """Return the WHERE clause for rows of this table, also as text."""
    filters: list[tuple[str, str, str]] = []  # as SQL, in English and in Japanese
    for column in dict.fromkeys(column for column, *_ in slots.values):
        if column[0] in _ALIASES[base]:
            values = [value for value in slots.values if value[0] == column]
            is_state = column == "o.status"
            negation = "NOT " if is_state and slots.has("never") else ""
            spellings = quote(*(spelling for _, *names in values for spelling in names))
            english = (" or " if is_state else " and ").join(value[1] for value in values)
            japanese = "と".join(value[2] for value in values)
            if is_state:
                english = f"that were {negation.lower()}{english}"
                japanese = f"{japanese}済み"
            else:
                english = f"{'for' if column[0] == 'p' else 'in'} {english}"
            japanese = f"{japanese}{'以外' if negation else ''}の"
            filters.append((f"{column} {negation}IN ({spellings})", english, japanese))
    for name in slots.names:
        like = quote(f"%{name.lower()}%")
        matches = [f"LOWER({a}.name) LIKE {like}" for a in "cp" if a in _ALIASES[base]]
        filters.append((f"({' OR '.join(matches)})", f"for {name}", f"「{name}」の"))
    column, ja = ("p.price", "価格") if base == "products" else ("o.amount", "金額")
    for sign, figure in slots.bounds if base != "customers" else ():
        than = f"{sign} {figure}"
        filters.append((f"{column} {than}", f"with {column[2:]} {than}", f"{ja} {than} の"))
    if (during := span(slots.periods)) and (column := _DATES.get(base, "")):
        sql = f"{column} >= '{during.start}' AND {column} < '{during.end}'"
        filters.append((sql, during.english, f"{during.japanese}の"))
    if slots.question.is_japanese:
        text = "".join(japanese for _, _, japanese in reversed(filters))
    else:
        text = " ".join(english for _, english, _ in filters)
    condition = " AND ".join(sql for sql, *_ in filters)
    return f"\nWHERE {condition}" if condition else "", text


def quote(*values: str) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _group(slots: Slots) -> str:
    """Return the grouping; a product sold "in each month" stays a product."""
    if slots.pair:
        return slots.pair[0][0][2:]
    is_product = slots.has("product") and slots.has("top", "sold")
    for unit, words in (("month", ("monthly", "month", "when")), ("year", ("yearly", "year"))):
        if slots.has(*words) and not is_product:
            return unit
    default = "customer" if slots.has("who") else "product"
    return next((name for name in LIBRARY["groups"] if slots.has(name)), default)


def _measure(slots: Slots, by: str, group: str) -> list[str]:
    """Return the measure, which isn't the grouping."""
    counted = [c for c in slots.concepts if c in LIBRARY["measures"] and (c != by or not group)]
    name = next((c for c in counted if c not in ("amount", "price")), "revenue")
    if slots.has("average"):
        name = "price" if slots.has("price") else "amount"
    elif slots.has("revenue") or (slots.has("sold") and not slots.has("count")):
        name = "revenue"
    elif slots.has("quantity"):
        name = "quantity"
    base = LIBRARY["measures"][name][0]
    is_bought = name == "customer" and slots.has("order", "sold") and not group
    if is_bought or (group and base != "orders" and not group.startswith(_ALIASES[base])):
        name = "buyer" if base == "customers" else "revenue"
    return list(LIBRARY["measures"][name])
