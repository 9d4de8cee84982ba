"""The parts of a JSON Schema, one by one: references followed, alternatives apart."""

from collections.abc import Iterable, Mapping
from typing import Any

Part = Mapping[str, Any]

_LEVELS = 8


class Parts:
    """A schema as its parts; they refer to each other by where they stand in it."""

    def __init__(self, root: Part) -> None:
        self.root = root

    def choices(self, part: Any, levels: int = _LEVELS) -> list[Part]:
        """What a value may be, each of one kind; what goes too deep may be anything."""
        if not isinstance(part, Mapping) or levels == 0:
            return [{}]
        part = self._whole(part, levels)
        for word in ("anyOf", "oneOf"):
            if word in part:
                rest = {name: rule for name, rule in part.items() if name != word}
                several = [{**rest, **each} for each in part[word] if isinstance(each, Mapping)]
                return [c for each in several for c in self.choices(each, levels - 1)]
        kinds = part.get("type")
        return [{**part, "type": each} for each in kinds] if isinstance(kinds, list) else [part]

    def may_be_null(self, part: Any) -> bool:
        return any(kind(choice) in ("null", "any") for choice in self.choices(part))

    def _whole(self, part: Part, levels: int) -> Part:
        """The part with what it refers to, and with all that it has to be at once."""
        if levels == 0:
            return {}
        beside = {name: rule for name, rule in part.items() if name not in ("$ref", "allOf")}
        others = [self._at(part["$ref"])] if "$ref" in part else []
        others += [each for each in part.get("allOf", ()) if isinstance(each, Mapping)]
        return _joined([*(self._whole(each, levels - 1) for each in others), beside])

    def _at(self, reference: str) -> Part:
        place: Any = self.root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if isinstance(place, Mapping) else None
        return place if isinstance(place, Mapping) else {}


def kind(part: Part) -> str:
    """The type of its values: `choice` for one of a few, `any` where nothing is said."""
    if isinstance(part.get("type"), str):
        return str(part["type"])
    if "enum" in part or "const" in part:
        return "choice"
    return "object" if "properties" in part else "array" if "items" in part else "any"


def fields(part: Part) -> dict[str, Any]:
    """The fields of an object; what is only required may be anything."""
    return {**part.get("properties", {}), **_only_required(part)}


def _only_required(part: Part) -> dict[str, Any]:
    known = part.get("properties", {})
    return {name: {} for name in part.get("required", ()) if name not in known}


def _joined(parts: Iterable[Part]) -> Part:
    whole: dict[str, Any] = {}
    for part in parts:
        both = {
            "properties": {**whole.get("properties", {}), **part.get("properties", {})},
            "required": [*whole.get("required", ()), *part.get("required", ())],
        }
        whole |= {**part, **{name: value for name, value in both.items() if value}}
    return whole
