"""Queries over the sample shop, from the SQL and titles in intents.toml."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .conversation import LIBRARY
from .intents import Slots, Value, span

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
    by, ja = _group(slots), slots.question.is_japanese
    group, *many = LIBRARY["groups"][by]
    sort = LIBRARY["sorting"][slots.first(LIBRARY["sorting"], "top")]
    lists = ("customer", "product") if intent == "never" else LIBRARY["lists"]
    thing = slots.first(lists, "product" if slots.has("price") else sort[0])
    base, columns, *things = LIBRARY["lists"][thing]
    measure, measured, counter = "", ["", ""], ""
    if intent in ("total", "ranking", "breakdown"):
        grouped = group if intent != "total" else ""
        base, measure, *measured, counter = _measure(slots, by, grouped)
    elif intent in ("average", "date", "kinds"):
        alias = group[0] if intent == "kinds" else "o"
        base = {"c": "customers", "p": "products"}.get(alias, "orders")
    name = measured[0].removeprefix("number of ").replace(" ", "_")
    is_many = (by if intent == "ranking" else thing) in slots.plurals or "many" in slots.plurals
    limit = slots.limit or (TOP if is_many else 1)
    worst, first = slots.has("bottom"), slots.has("first")
    where, about = conditions(slots, "orders" if intent == "never" else base)
    series = by if by in ("month", "year") else f"{name} DESC"
    fields = {
        **{"base": base, "where": where, "columns": columns, "thing": thing},
        **{"group": group, "by": by, "measure": measure, "name": name},
        **{"direction": ("DESC", "ASC")[worst], "limit": min(limit, 100)},
        **{"key": f"{_ALIASES[base][0]}.id", "edge": ("MAX", "MIN")[first]},
        "sorting": f"{sort[1] or _DATES.get(base)} {sort[2]}"
        if intent == "extreme"
        else series,
    }
    one, several = (many[1], f"{many[1]}{limit}件") if ja else (by, f"{limit} {many[0]}")
    all_of = many[ja] if intent == "kinds" else several if limit > 1 else one
    if intent == "extreme" and limit == 1:
        things = [thing, things[1]]
    titles = {
        **{"about": about, "measured": measured[ja], "things": things[ja], "by": one},
        **{"sorted": sort[3 + ja], "many": all_of},
        "best": (("多い", "少ない") if ja else ("best", "worst"))[worst],
        "edge": (("最後", "最初") if ja else ("last", "first"))[first],
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
    held: list[tuple[str, str, str]] = []
    columns = dict.fromkeys(column for column, *_ in slots.values)
    for column in (each for each in columns if each[0] in _ALIASES[base]):
        values = [value for value in slots.values if value[0] == column]
        held.append(_held_to(column, values, slots.has("never")))
    for name in slots.names:
        like = quote(f"%{name.lower()}%")
        named = [f"LOWER({a}.name) LIKE {like}" for a in "cp" if a in _ALIASES[base]]
        either = " OR ".join(named)
        held.append((f"({either})", f"for {name}", f"「{name}」の"))
    column, ja = ("p.price", "価格") if base == "products" else ("o.amount", "金額")
    for sign, figure in slots.bounds if base != "customers" else ():
        than = f"{sign} {figure}"
        held.append((f"{column} {than}", f"with {column[2:]} {than}", f"{ja} {than} の"))
    if (during := span(slots.periods)) and (column := _DATES.get(base, "")):
        when = f"{column} >= '{during.start}' AND {column} < '{during.end}'"
        held.append((when, during.english, f"{during.japanese}の"))
    where = " AND ".join(sql for sql, *_ in held)
    english, japanese = " ".join(h[1] for h in held), "".join(h[2] for h in reversed(held))
    about = japanese if slots.question.is_japanese else english
    return f"\nWHERE {where}" if where else "", about


def quote(*values: str) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _held_to(column: str, values: list[Value], is_negated: bool) -> tuple[str, str, str]:
    is_state = column == "o.status"
    no = "NOT " if is_state and is_negated else ""
    spellings = quote(*(spelling for _, *both in values for spelling in both))
    english = (" or " if is_state else " and ").join(value[1] for value in values)
    japanese = "と".join(value[2] for value in values)
    if is_state:
        english, japanese = f"that were {no.lower()}{english}", f"{japanese}済み"
    else:
        english = f"{'for' if column[0] == 'p' else 'in'} {english}"
    return f"{column} {no}IN ({spellings})", english, f"{japanese}{'以外' if no else ''}の"


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
