"""JSON that fits a schema, made of what a conversation holds.

What is not known is left out, or null. Only where a schema forbids both does something else
stand in its place: the nearest words or figure of the answer, or at last an empty value. So
an empty list, a 0 or a false in a field that must not be null may mean that nobody knows.
"""

import json
from collections.abc import Mapping
from typing import Any

from . import listing, single
from .known import Known
from .parts import Part, Parts, fields, kind
from .single import NOTHING

LEVELS = 12


def fill(schema: Part, known: Known) -> Any:
    """The value; for a schema that is too deep or too strict, the nearest to one."""
    return _Filling(Parts(schema), known).value(schema, "", LEVELS)


class _Filling:
    def __init__(self, parts: Parts, known: Known) -> None:
        self.parts = parts
        self.known = known

    def value(self, part: Any, name: str, levels: int) -> Any:
        """What is known for this part of the form, or else what has to stand there."""
        found = self._found(part, name, levels)
        return self._forced(part, name, levels) if found is NOTHING else found

    def _found(self, part: Any, name: str, levels: int) -> Any:
        choices = self.parts.choices(part) if levels else ()
        values = (self._chosen(choice, name, levels - 1) for choice in choices)
        return next((value for value in values if value is not NOTHING), NOTHING)

    def _chosen(self, part: Part, name: str, levels: int) -> Any:
        match kind(part):
            case "object":
                found = {k: self._found(p, k, levels) for k, p in fields(part).items()}
                there = {k: value for k, value in found.items() if value is not NOTHING}
                return self._completed(part, there, levels) if there else NOTHING
            case "array":
                items = self._items(part, name)
                return self._bounded(part, items, name, levels) if items else NOTHING
            case _:
                return single.found(part, name, self.known)

    def _forced(self, part: Any, name: str, levels: int) -> Any:
        if levels == 0 or self.parts.may_be_null(part):
            return None
        first = self.parts.choices(part)[0]
        match kind(first):
            case "object":
                return self._completed(first, {}, levels - 1)
            case "array":
                return self._bounded(first, [], name, levels - 1)
            case _:
                return single.forced(first, self.known)

    def _completed(self, part: Part, found: Mapping[str, Any], levels: int) -> dict[str, Any]:
        """What was found, with what must be there beside it, in the order of the schema."""
        required = part.get("required", ())
        return {
            name: found[name] if name in found else self._forced(field, name, levels)
            for name, field in fields(part).items()
            if name in found or name in required
        }

    def _items(self, part: Part, name: str) -> list[Any]:
        """The rows of the first tables that have any for this list."""
        item = part.get("items", {})
        for tables in self.known.groups():
            found = [each for t in tables for each in listing.items(item, name, t, self.parts)]
            if found:
                return found
        return []

    def _bounded(self, part: Part, items: list[Any], name: str, levels: int) -> list[Any]:
        if part.get("uniqueItems"):
            items = list({json.dumps(item): item for item in items}.values())
        missing = range(part.get("minItems", 0) - len(items))
        more = [self._forced(part.get("items", {}), name, levels) for _ in missing]
        return [*items, *more][: part.get("maxItems")]
