"""Structured answers: JSON that fits a schema, filled from tool results.

Unknown values are omitted or null. If the schema forbids both, they are empty.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.engine.json_schema import violations
from agents.engine.loop import INSTRUCTIONS
from agents.engine.text import shorten

from . import results
from .conversation import LIBRARY, Message, Situation, message_text
from .results import Rows

MAX_DEPTH = 8
_BEFORE_SCHEMA = INSTRUCTIONS.partition("{schema}")[0]
_TITLES, _NAMES, _PROSE = ({*words.split()} for words in LIBRARY["fields"].values())
Schema = Mapping[str, Any]
FormRequest = tuple[Schema, Sequence[Message]]


def read(messages: Sequence[Message], response_format: Any) -> FormRequest | None:
    """Return the answer's schema, and the conversation before it."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        question, marker, text = message_text(message).rpartition(_BEFORE_SCHEMA)
        if marker and message["role"] == "user":
            question = question.strip()
            last = [{**message, "content": question}] if question else []
            try:
                return json.JSONDecoder().raw_decode(text)[0], [*messages[:index], *last]
            except ValueError:  # A user wrote this text without a schema.
                break
    schema = (response_format.get("json_schema") or {}).get("schema") if response_format else {}
    return (schema, messages) if schema else None


class Form:
    """Fills a JSON Schema from a question, its answer and tool results."""

    def __init__(self, schema: Schema, situation: Situation) -> None:
        self.schema = schema
        self.question = situation.question.text.strip()
        blocks = re.split(r"\n{2,}", situation.answer)
        prose = [b for b in blocks if not b.startswith(("|", "```", "Sources:", "出典："))]
        self.prose = re.sub(r"\*\*|`| ?\[\d{1,3}\]", "", "\n\n".join(prose)).strip(" \n:：")
        self.marked = [_value(text) for text in re.findall(r"\*\*(.+?)\*\*", situation.answer)]
        good = [finding for finding in situation.findings if not finding.is_error]
        sums = [(f.input, _value(f.text)) for f in good if results.figure(f.text)]
        tables = [rows for f in good if (rows := results.parse(f.text)) and not rows.is_empty]
        tables += [Rows(("expression", "result"), [row]) for row in sums]
        self.rows = [dict(zip(t.columns, row, strict=True)) for t in tables for row in t.rows]

    def value(self) -> Any:
        return self._fill(self.schema, "", MAX_DEPTH)

    def _fill(self, schema: Any, name: str, depth: int, is_required: bool = True) -> Any:
        shapes = list(self._shapes(schema, MAX_DEPTH))
        for shape in shapes if depth else ():
            if shape.get("type") == "object" or "properties" in shape:
                needed = shape.get("required", ())
                inner = {**dict.fromkeys(needed, {}), **shape.get("properties", {})}
                filled = {n: self._fill(p, n, depth - 1, n in needed) for n, p in inner.items()}
                return {
                    n: value
                    for n, value in filled.items()
                    if n in needed or value not in (None, [], {})
                }
            if shape.get("type") == "array" or "items" in shape:
                item = shape.get("items", {})
                items = [value for row in self.rows for value in self._items(item, row)]
                missing = range(shape.get("minItems", 0) - len(items))
                items += [self._fill(item, name, depth - 1) for _ in missing]
                return items[: shape.get("maxItems")]
        for value in self._candidates(shapes, name):
            if (value is None and not is_required) or self._fits(schema, value):
                return value
        return None

    def _shapes(self, schema: Any, depth: int) -> Iterator[Schema]:
        """Yield a part of the schema, its references and its alternatives."""
        if not isinstance(schema, Mapping) or not depth:
            return
        yield schema
        target: Any = self.schema if "$ref" in schema else None
        for key in schema.get("$ref", "").split("/")[1:]:
            target = target.get(key) if isinstance(target, Mapping) else None
        yield from self._shapes(target, depth - 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            for subschema in schema.get(keyword, ()):
                yield from self._shapes(subschema, depth - 1)

    def _fits(self, schema: Any, value: Any) -> bool:
        rules = schema if isinstance(schema, Mapping) else {}
        return not violations({**rules, "$defs": self.schema.get("$defs", {})}, value)

    def _candidates(self, shapes: Sequence[Schema], name: str) -> Iterator[Any]:
        """Yield candidates for a single value; after None, any that fit the schema."""
        rules = {key: rule for shape in reversed(shapes) for key, rule in shape.items()}
        is_number = _is_number(shapes)
        name_words = {*name.split("_")}
        choices = rules.get("enum", ())
        text = f"{self.prose}\n{self.question}".lower()
        yield from (
            choice for choice in choices if str(choice).lower().replace("_", " ") in text
        )
        if len(self.rows) == 1:
            row = self.rows[0]
            if name in row:
                yield row[name]
            if is_number:
                yield from list(row.values())[-1:]
        if name_words & _TITLES:
            yield self.question
        if is_number or name_words & _NAMES:
            yield from self.marked
        max_chars = rules.get("maxLength")
        prose = (self.prose, shorten(self.prose, max_chars) if max_chars else "")
        if name_words & _PROSE or not name:
            yield from prose
        yield from (None, rules.get("const"), *choices, *prose, 0, False, "")
        yield from (rules[bound] for bound in ("minimum", "maximum") if bound in rules)
        yield "—" * rules.get("minLength", 0)

    def _items(self, schema: Any, cells: Mapping[str, Any]) -> Iterator[Any]:
        """Yield a row as an item: cells by column, then the first text or last number."""
        shapes = list(self._shapes(schema, MAX_DEPTH))
        numbers = [c for name, c in cells.items() if results.is_number(c) and name != "id"]
        texts = [cell for cell in cells.values() if isinstance(cell, str)]
        free = {True: numbers[-1:], False: [*texts, list(cells)[-1].replace("_", " ")]}
        fields: Schema = next((s["properties"] for s in shapes if "properties" in s), {})
        kinds = {n: _is_number(list(self._shapes(p, MAX_DEPTH))) for n, p in fields.items()}
        item: Any = {n: cells.get(n, next(iter(free[kind]), None)) for n, kind in kinds.items()}
        item = item if fields else next(iter(free[_is_number(shapes)]), None)
        if self._fits(schema, item):
            yield item


def _is_number(shapes: Sequence[Schema]) -> bool:
    return any(shape.get("type") in ("number", "integer") for shape in shapes)


def _value(text: str) -> Any:
    """Return numeric text as a number, and other text unchanged."""
    figure = results.figure(text)
    if figure is None:
        return text
    return int(figure) if re.fullmatch(r"-?\d{1,300}", figure) else results.whole(float(figure))
